"""Units that hang on the others through one unit only, against removing every unit in turn."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fitters import InputError, find_bridges
from tests.messages import raised

ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("ABCDEFG"), st.sampled_from([10, 90])), min_size=1
)


def parts(rows: list[tuple[int, str, int]], without: str) -> list[set[str]]:
    """Sets of units that common tasks connect when one unit is gone; buckets of few jobs do not count."""
    units = {unit for _, unit, _ in rows} - {without}
    strong = [(task, unit) for task, unit, jobs in rows if jobs >= 50 and unit != without]
    found: list[set[str]] = [{unit} for unit in sorted(units)]
    for (task, unit), (other, partner) in product(strong, strong):
        if task == other and unit != partner:
            mine = next(each for each in found if unit in each)
            theirs = next(each for each in found if partner in each)
            if mine is not theirs:
                mine |= theirs
                found.remove(theirs)
    return found


@given(ROWS)
def test_no_single_unit_cuts_the_core_and_each_cut_is_one(rows: list[tuple[int, str, int]]) -> None:
    task, unit, jobs = zip(*rows, strict=True)
    found = find_bridges(task, unit, jobs)
    core = {name for name, sound in zip(found.name, found.sound, strict=True) if sound}
    for name in found.name:
        holding = [each for each in parts(rows, name) if each & core]
        assert len(holding) <= 1
    for name, cut in zip(found.name, found.via, strict=True):
        if cut is not None:
            assert cut in core
            mine = next(each for each in parts(rows, cut) if name in each)
            assert not mine & (core - {cut})


def test_a_chain_names_what_it_hangs_on_and_few_jobs_are_no_bridge() -> None:
    task = ["t", "t", "t", "u", "u", "v", "v", "w", "w"]
    unit = ["A", "B", "C", "C", "D", "D", "E", "A", "F"]
    found = find_bridges(task, unit, [90] * 8 + [12])
    assert found.name.tolist() == ["A", "B", "C", "D", "E", "F"]
    assert found.via.tolist() == [None, None, None, "C", "C", None]
    assert found.sound.tolist() == [True, True, True, False, False, False]
    assert found.reason[4] == "linked through C only"
    assert "fewer than 50 jobs" in found.reason[5]


def test_bad_input_is_ours() -> None:
    with raised(InputError):
        find_bridges([], [], [])
    with raised(InputError):
        find_bridges(["t"], np.array(["A", "B"]), [1.0])
