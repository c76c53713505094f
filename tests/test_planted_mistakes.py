"""Planted mistakes of the benchmark ``mutations``: each still has its place in the fits."""

import pytest

from benchmarks.mutations import MISTAKES, Mistake, with_mistake


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_has_its_place(mistake: Mistake) -> None:
    assert mistake.new in with_mistake(mistake)
