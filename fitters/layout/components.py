"""Connected components: sets of units linked by common tasks."""

from dataclasses import dataclass

import numpy as np

from fitters.layout.arrays import EMPTY, Codes, Floats, Ints, Mask
from fitters.layout.buckets import Buckets
from fitters.layout.kernels import unit_roots


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Buckets of one component that carry information, in a layout of its own."""

    number: int  # The component's number in the result
    # units, tasks: Positions in the whole `Buckets` of this part's units and tasks
    units: Ints
    tasks: Ints
    # ptr, unit, value, weight, rel_var: As the kernels read them; `unit` counts inside the part. `weight` is
    # of length 0 for equal weights, `rel_var` of length 0 if none is known.
    ptr: Ints
    unit: Codes
    value: Floats
    weight: Floats
    rel_var: Floats

    @property
    def n_units(self) -> int:
        """Number of units; all get a factor."""
        return int(self.units.size)

    @property
    def n_tasks(self) -> int:
        """Number of tasks with two units or more."""
        return int(self.tasks.size)

    @property
    def n_buckets(self) -> int:
        """Number of buckets of these tasks."""
        return int(self.value.size)

    @property
    def dof(self) -> int:
        """Degrees of freedom: buckets minus tasks minus units plus one for the free scale."""
        return self.n_buckets - self.n_tasks - self.n_units + 1


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Component of each unit and task, and the parts that can be fitted."""

    # unit_component, task_component: Component of every unit and task that entered, numbered from 0 by
    # falling number of units, then of buckets, then by the first unit
    unit_component: Ints
    task_component: Ints
    n_components: int
    # The components that have a task shared by two units, in the order of their numbers
    parts: tuple[Part, ...]
    # bool array or None: Buckets of tasks with two units or more; None if these are all
    bucket_used: Mask | None


def partition(buckets: Buckets, weight: Floats, rel_var: Floats) -> Partition:
    """Label the components of the bipartite graph of units and tasks; lay out each part.

    Labels come from all buckets; then tasks with a single unit are excluded: their level fits them exactly. A
    unit without a bucket is a component. Linear in the buckets; nothing is copied for a single component.
    """
    ptr, unit = buckets.ptr, buckets.unit
    roots = unit_roots(ptr, unit, buckets.n_units)
    # roots are the smallest units of their components
    first_unit, labels = np.unique(roots, return_inverse=True)
    raw = first_unit.size
    task_label = labels[unit[ptr[:-1]]]
    sizes = np.diff(ptr)
    n_units = np.bincount(labels, minlength=raw)
    n_buckets = np.bincount(task_label, sizes, raw)
    order = np.lexsort((first_unit, -n_buckets, -n_units))
    rank = np.empty(raw, np.int64)
    rank[order] = np.arange(raw)
    unit_component, task_component = rank[labels], rank[task_label]
    shared = sizes >= 2
    bucket_used = None if shared.all() else np.repeat(shared, sizes)
    parts = _parts(buckets, weight, rel_var, unit_component, task_component, shared, raw)
    return Partition(unit_component, task_component, raw, parts, bucket_used)


def _parts(
    buckets: Buckets,
    weight: Floats,
    rel_var: Floats,
    unit_component: Ints,
    task_component: Ints,
    shared: Mask,
    n_components: int,
) -> tuple[Part, ...]:
    used_tasks = np.flatnonzero(shared)
    if n_components == 1 and used_tasks.size and used_tasks[-1] == used_tasks.size - 1:
        # tasks of one unit come last, so that the others are one piece, which is not copied
        ptr = buckets.ptr[: used_tasks.size + 1]
        end = int(ptr[-1])
        columns = (ptr, buckets.unit[:end], buckets.value[:end], weight[:end], rel_var[:end])
        return (Part(0, np.arange(buckets.n_units), used_tasks, *columns),)
    used_tasks = used_tasks[np.argsort(task_component[used_tasks], kind="stable")]
    sizes = np.diff(buckets.ptr)[used_tasks]
    ends = np.cumsum(sizes)
    # positions of the used buckets, task after task: start of the task plus a running number inside it
    where = np.arange(int(sizes.sum())) + np.repeat(buckets.ptr[used_tasks] - (ends - sizes), sizes)
    unit_order = np.argsort(unit_component, kind="stable")
    unit_start = np.searchsorted(unit_component[unit_order], np.arange(n_components + 1))
    local = np.empty(buckets.n_units, np.int32)
    local[unit_order] = np.arange(buckets.n_units) - unit_start[unit_component[unit_order]]
    task_start = np.searchsorted(task_component[used_tasks], np.arange(n_components + 1))
    bounds = np.concatenate([[0], ends])
    unit, value = local[buckets.unit[where]], buckets.value[where]
    weight = weight[where] if weight.size else weight
    rel_var = rel_var[where] if rel_var.size else rel_var
    parts = []
    for number in np.unique(task_component[used_tasks]).tolist():
        low, high = task_start[number], task_start[number + 1]
        inside = slice(bounds[low], bounds[high])
        parts.append(
            Part(
                number=number,
                units=unit_order[unit_start[number] : unit_start[number + 1]].astype(np.int64),
                tasks=used_tasks[low:high].astype(np.int64),
                ptr=bounds[low : high + 1] - bounds[low],
                unit=unit[inside],
                value=value[inside],
                weight=weight[inside] if weight.size else EMPTY,
                rel_var=rel_var[inside] if rel_var.size else EMPTY,
            )
        )
    return tuple(parts)
