"""Commands at once on a file: one works, the other is told who does, nothing is lost."""

from collections.abc import Iterator

import pytest

from tests.races.commands import Place
from tests.races.rounds import Installation

ROUNDS = [
    (("ingest", "run"), "mixed", 1),
    (("ingest", "undo"), "killed", 2),
    (("rebuild", "rebuild"), "killed", 3),
    (("corepower", "flag"), "mixed", 4),
    (("prune", "fit"), "killed", 5),
    (("ingest", "ingest", "aggregate", "run"), "mixed", 6),
]
"""Some of the pairs; ``benchmarks.races`` plays all of them, many times."""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("races")
    played = Installation(Place(f"duckdb:{folder / 'jobs.duckdb'}"), folder)
    yield played
    played.close()


@pytest.mark.parametrize(("commands", "mode", "seed"), ROUNDS, ids=str)
def test_at_once(installation: Installation, commands: tuple[str, ...], mode: str, seed: int) -> None:
    played = installation.play(commands, mode, seed)
    assert played.faults == []
