"""Groups of units that few jobs link with the others."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fitters import InputError, linked_groups
from tests.messages import raised

Ints = NDArray[np.int64]


def grid(
    rng: np.random.Generator, tasks: int, units: int, per_task: int, jobs: int
) -> tuple[Ints, Ints, Ints]:
    """Buckets of so many jobs: every task at some of the units."""
    task = np.repeat(np.arange(tasks), per_task)
    unit = np.concatenate([rng.permutation(units)[:per_task] for _ in range(tasks)])
    return task, unit, np.full(task.size, jobs)


def sizes(groups: dict[object, int]) -> list[int]:
    """Units of each group, the largest first."""
    return sorted(np.bincount(list(groups.values())).tolist(), reverse=True)


@pytest.mark.parametrize("jobs", [4, 20, 200])
def test_many_small_buckets_are_a_link(jobs: int) -> None:
    """No bucket of 4 jobs is a bridge, and no two units share 50 jobs; all together they do."""
    groups = linked_groups(*grid(np.random.default_rng(1), 60, 40, 15, jobs))
    assert set(groups.values()) == {0}


@pytest.mark.parametrize("bridge", [10, 200])
def test_what_hangs_on_one_bucket_of_few_jobs_is_a_group_of_its_own(bridge: int) -> None:
    rng = np.random.default_rng(2)
    task, unit, jobs = grid(rng, 60, 30, 12, 5)
    other, partner, number = grid(rng, 30, 12, 8, 30)
    columns = (
        np.concatenate([task, other + 60, [60]]),
        np.concatenate([unit, partner + 30, [3]]),
        np.concatenate([jobs, number, [bridge]]),
    )
    groups = linked_groups(*columns)
    assert sizes(groups) == ([30, 12] if bridge < 50 else [42])
    assert groups[3] == 0
    assert groups[35] == (1 if bridge < 50 else 0)


def test_the_partition_does_not_depend_on_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        task, unit, jobs = grid(rng, 12, 14, 3, 1)
        jobs = rng.integers(1, 90, jobs.size)
        order = rng.permutation(jobs.size)
        assert linked_groups(task, unit, jobs) == linked_groups(task[order], unit[order], jobs[order])


def test_two_groups_that_few_jobs_link_each_do_not_make_one_link() -> None:
    """30 jobs to either of two groups are 60 to both."""
    task = ["core", "core", "a", "a", "a", "b", "b", "b"]
    unit = ["C1", "C2", "C1", "A1", "A2", "C2", "B1", "B2"]
    groups = linked_groups(task, unit, [500, 500, 30, 100, 100, 30, 100, 100])
    assert groups["C1"] == groups["C2"]
    assert groups["A1"] == groups["A2"] != groups["C1"]
    assert groups["B1"] == groups["B2"] != groups["C1"]
    assert groups["A1"] != groups["B1"]


def test_a_unit_of_few_jobs_goes_with_the_group_that_it_hangs_on() -> None:
    """Seven jobs in a task of a thin group, which ten jobs link with the core."""
    task, unit = ["s"] * 3 + ["t"] * 4, ["C1", "C2", "C3", "C1", "A1", "A2", "few"]
    groups = linked_groups(task, unit, [400, 400, 400, 10, 75, 70, 7])
    assert [groups[name] for name in ("C1", "C2", "C3", "A1", "A2", "few")] == [0, 0, 0, 1, 1, 1]
    alone = linked_groups(["s"] * 4, ["C1", "C2", "C3", "few"], [400, 400, 400, 7])
    assert alone["few"] != alone["C1"]


def test_no_rows_are_refused() -> None:
    with raised(InputError):
        linked_groups([], [], [])
