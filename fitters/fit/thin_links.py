"""Which units hang on most others by a few jobs only, alone or as a group.

Factors of a group that is linked with the others by ten jobs are as wrong as these ten jobs, all of them the
same way: each has an error that says so, together they are no more than one measurement.
"""

import numpy as np
from numpy.typing import NDArray

from fitters.layout.arrays import Floats, group_sums
from fitters.layout.columns import factorise_pair, read_numbers

LEAST_LINKING_JOBS = 50.0
"""Jobs that a link of two groups needs; as many as a unit needs for a verdict."""


def linked_groups(task: object, unit: object, n_jobs: object) -> dict[object, int]:
    """Number of the group of every unit; 0 is the group of most units.

    Parameters
    ----------
    task, unit, n_jobs
        Labels and jobs of each bucket, one for every pair of task and unit.

    Raises
    ------
    InputError
        No rows, different lengths, text in a number.

    Notes
    -----
    Two groups have as many linking jobs in a task as the one that has fewer there. Groups that are linked
    by 50 over all tasks become one. So does a group that has 50 with all others together: it joins the
    one that it has most with. What is left are groups that have fewer with all others together, and units
    of few jobs; such a unit counts to a group of several that it has more linking jobs with than with any
    other. Each step is linear in the buckets, and takes in all that it can.

    >>> task, unit = ["t", "t", "u", "u", "u"], ["A", "B", "B", "C", "D"]
    >>> linked_groups(task, unit, [90, 90, 10, 80, 80])
    {'A': 0, 'B': 0, 'C': 1, 'D': 1}
    """
    tasks, units, n = factorise_pair(task, unit)
    jobs = read_numbers(n_jobs, "n_jobs", n)
    named = (tasks.codes >= 0) & (units.codes >= 0)
    table = _Table(tasks.codes[named], units.codes[named], jobs[named], tasks.names.size, units.names.size)
    label = np.arange(units.names.size)
    of_unit = group_sums(units.codes[named], jobs[named], label.size)
    by_jobs = np.argsort(-of_unit, kind="stable")
    while True:
        for seed in by_jobs:
            group = int(label[seed])
            if table.done[group] or not table.linkable[group]:
                continue
            inside = table.grown(group)
            if inside[label].all():
                return dict.fromkeys(units.names.tolist(), 0)
            label, table = _joined(label, table, inside, group)
        size = np.bincount(label, minlength=label.size)
        core = int(np.lexsort((-group_sums(label, of_unit, label.size), -size))[0])
        open_groups = np.unique(label[table.linkable[label] & (label != core)])
        if not open_groups.size:
            break
        group = int(open_groups[np.argmax(group_sums(label, of_unit, label.size)[open_groups])])
        label, table = _joined(label, table, table.nearest(group), group)
        table.done[group] = False
    label = table.with_lone_units(label, core)
    size = np.bincount(label, minlength=label.size)
    order = np.lexsort((-group_sums(label, of_unit, label.size), -size))
    place = np.empty(label.size, np.int64)
    place[order] = np.arange(label.size)
    return {name: int(place[group]) for name, group in zip(units.names.tolist(), label, strict=True)}


def _joined(
    label: NDArray[np.int64], table: "_Table", inside: NDArray[np.bool_], group: int
) -> tuple[NDArray[np.int64], "_Table"]:
    table.done[inside] = True
    if inside.sum() < 2:
        return label, table
    return np.where(inside[label], group, label), table.joined(inside, group)


class _Table:
    """Jobs of every pair of task and group; a group that was grown is ``done``."""

    def __init__(
        self, task: NDArray[np.int32], group: NDArray[np.int32], jobs: Floats, n_tasks: int, n_groups: int
    ) -> None:
        self.task, self.group, self.jobs = task, group, jobs
        self.n_tasks, self.n_groups = n_tasks, n_groups
        self.done = np.zeros(n_groups, bool)
        others = group_sums(task, jobs, n_tasks)[task] - jobs
        self.linkable = group_sums(group, np.minimum(jobs, others), n_groups) >= LEAST_LINKING_JOBS

    def grown(self, seed: int) -> NDArray[np.bool_]:
        """The groups that are one with the seed."""
        inside = np.zeros(self.n_groups, bool)
        inside[seed] = True
        new = inside
        there = np.zeros(self.n_tasks)
        while new.any():
            rows = new[self.group]
            there += group_sums(self.task[rows], self.jobs[rows], self.n_tasks)
            linking = group_sums(self.group, np.minimum(self.jobs, there[self.task]), self.n_groups)
            new = (linking >= LEAST_LINKING_JOBS) & ~inside
            inside = inside | new
        return inside

    def nearest(self, group: int) -> NDArray[np.bool_]:
        """The group, and the one with which it has most linking jobs."""
        there = group_sums(self.task, np.where(self.group == group, self.jobs, 0.0), self.n_tasks)
        linking = group_sums(self.group, np.minimum(self.jobs, there[self.task]), self.n_groups)
        linking[group] = -1.0
        inside = np.zeros(self.n_groups, bool)
        inside[[group, int(np.argmax(linking))]] = True
        return inside

    def with_lone_units(self, label: NDArray[np.int64], core: int) -> NDArray[np.int64]:
        """The labels with each unit that is alone in the group of several that it hangs on most."""
        size = np.bincount(label, minlength=self.n_groups)
        several = [core, *(int(group) for group in np.flatnonzero(size > 1) if group != core)]
        linking = np.zeros((len(several), self.n_groups))
        for number, group in enumerate(several):
            there = group_sums(self.task, np.where(self.group == group, self.jobs, 0.0), self.n_tasks)
            both = np.minimum(self.jobs, there[self.task])
            # As many with either: it hangs on what has more jobs of its tasks.
            both += 1e-9 * np.where(self.group == group, 0.0, there[self.task])
            linking[number] = group_sums(self.group, both, self.n_groups)
        nearest = np.array(several)[linking.argmax(axis=0)]
        return np.where((size[label] == 1) & (nearest[label] != core), nearest[label], label)

    def joined(self, inside: NDArray[np.bool_], group: int) -> "_Table":
        """The same with these groups as one."""
        of_group = np.where(inside[self.group], group, self.group).astype(np.int64)
        pairs, row = np.unique(of_group * self.n_tasks + self.task, return_inverse=True)
        table = _Table(
            (pairs % self.n_tasks).astype(np.int32),
            (pairs // self.n_tasks).astype(np.int32),
            group_sums(row, self.jobs, pairs.size),
            self.n_tasks,
            self.n_groups,
        )
        table.done = self.done
        return table
