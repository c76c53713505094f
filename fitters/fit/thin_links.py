"""Units, or groups of units, that only a few jobs link with the others.

Factors of a group that is linked with the others by ten jobs are as wrong as these ten jobs, all of them the
same way: each has an error that says so, together they are no more than one measurement.
"""

import numpy as np

from fitters.layout.arrays import Codes, Floats, Ints, Mask, group_sums
from fitters.layout.columns import factorise_pair, read_numbers

LEAST_LINKING_JOBS = 50.0  # Jobs that a link of two groups needs; as many as a unit needs for a verdict


def linked_groups(task: object, unit: object, n_jobs: object) -> dict[object, int]:
    """Return the group number of every unit; 0 is the group of most units.

    Two groups have as many linking jobs in a task as the one with fewer there. Groups with 50 linking jobs
    over all tasks are united; so is a group with 50 to all others together, with the one it has most with.
    What remains has fewer; a single such unit joins the group of several with most linking jobs. Each step is
    linear in the buckets.

    Raises :class:`InputError`: no rows, different lengths, text in a number.

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
    index = np.empty(label.size, np.int64)
    index[order] = np.arange(label.size)
    return {name: int(index[group]) for name, group in zip(units.names.tolist(), label, strict=True)}


def _joined(label: Ints, table: "_Table", inside: Mask, group: int) -> tuple[Ints, "_Table"]:
    table.done[inside] = True
    if inside.sum() < 2:
        return label, table
    return np.where(inside[label], group, label), table.joined(inside, group)


class _Table:
    def __init__(self, task: Codes, group: Codes, jobs: Floats, n_tasks: int, n_groups: int) -> None:
        self.task, self.group, self.jobs = task, group, jobs
        self.n_tasks, self.n_groups = n_tasks, n_groups
        self.done = np.zeros(n_groups, bool)
        others = group_sums(task, jobs, n_tasks)[task] - jobs
        self.linkable = group_sums(group, np.minimum(jobs, others), n_groups) >= LEAST_LINKING_JOBS

    def grown(self, seed: int) -> Mask:
        """Return the mask of groups that linking jobs unite with the seed."""
        inside = np.zeros(self.n_groups, bool)
        inside[seed] = True
        new = inside
        present = np.zeros(self.n_tasks)
        while new.any():
            rows = new[self.group]
            present += group_sums(self.task[rows], self.jobs[rows], self.n_tasks)
            linking = group_sums(self.group, np.minimum(self.jobs, present[self.task]), self.n_groups)
            new = (linking >= LEAST_LINKING_JOBS) & ~inside
            inside = inside | new
        return inside

    def nearest(self, group: int) -> Mask:
        """Return the mask of the group and of the one with most jobs linking it."""
        present = group_sums(self.task, np.where(self.group == group, self.jobs, 0.0), self.n_tasks)
        linking = group_sums(self.group, np.minimum(self.jobs, present[self.task]), self.n_groups)
        linking[group] = -1.0
        inside = np.zeros(self.n_groups, bool)
        inside[[group, int(np.argmax(linking))]] = True
        return inside

    def with_lone_units(self, label: Ints, core: int) -> Ints:
        """A unit alone joins the group of several with which it has most linking jobs."""
        size = np.bincount(label, minlength=self.n_groups)
        several = [core, *(int(group) for group in np.flatnonzero(size > 1) if group != core)]
        linking = np.zeros((len(several), self.n_groups))
        for number, group in enumerate(several):
            present = group_sums(self.task, np.where(self.group == group, self.jobs, 0.0), self.n_tasks)
            both = np.minimum(self.jobs, present[self.task])
            # Of equally many with two groups the one with more jobs of its tasks is taken.
            both += 1e-9 * np.where(self.group == group, 0.0, present[self.task])
            linking[number] = group_sums(self.group, both, self.n_groups)
        nearest = np.array(several)[linking.argmax(axis=0)]
        return np.where((size[label] == 1) & (nearest[label] != core), nearest[label], label)

    def joined(self, inside: Mask, group: int) -> "_Table":
        """Return the table with the groups of some units merged into one."""
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
