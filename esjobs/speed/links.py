"""Jobs that would connect a component with the largest one."""

from collections.abc import Callable, Sequence

import numpy as np

from esjobs.speed.fit_input import FitInput
from fitters.layout.arrays import Ints, Mask

ENOUGH_JOBS = 50  # Jobs a bridge needs to be trusted; two independent ones make components comparable


def what_would_link(
    data: FitInput, entered: Mask, component: Ints, min_bucket_jobs: int
) -> Callable[[int, Sequence[str]], str]:
    """Return a function from a component's number and names to the link it lacks to component 0.

    ``component``: of each row's name. ``min_bucket_jobs``: minimum of this fit. The cheapest link is an
    existing bucket with too few jobs whose task is fitted on the other side; otherwise the tasks at most
    names of component 0 are named.
    """
    fitted_in = np.full(len(data.task.names), -1, np.int64)
    fitted_in[data.task.codes[entered]] = component[entered]
    present = fitted_in[data.task.codes]
    # A bucket with enough jobs that did not enter was left out for another reason: more jobs would not help.
    small = ~entered & (data.n_jobs < min_bucket_jobs)
    offered = small & (present >= 0) & (component != present) & ((component == 0) | (present == 0))
    missing: dict[int, tuple[int, str, str]] = {}
    keys = data.keys
    rows = np.flatnonzero(offered)
    other = component[rows] + present[rows]  # One of the two is 0
    # The most jobs first, among these the first task and name: names are sorted, their codes are places.
    order = np.lexsort((data.name.codes[rows], data.task.codes[rows], -data.n_jobs[rows], other))
    number, first = np.unique(other[order], return_index=True)
    for component_of, index in zip(number.tolist(), rows[order[first]].tolist(), strict=True):
        missing[component_of] = (
            min_bucket_jobs - int(data.n_jobs[index]),
            keys.readable(data.task.names[data.task.codes[index]]),
            str(data.name.names[data.name.codes[index]]),
        )
    largest = _largest_tasks(data, entered & (component == 0))

    def link(number: int, names: Sequence[str]) -> str:
        if number in missing:
            jobs, task, name = missing[number]
            return f"{jobs} more jobs of task {task} at {name}; a reliable link needs {ENOUGH_JOBS}"
        if not largest:
            return "the fit contains nothing to link it with"
        who = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
        return f"two tasks with {ENOUGH_JOBS} jobs or more at {who}, for example {' or '.join(largest)}"

    return link


def _largest_tasks(data: FitInput, rows: Mask) -> list[str]:
    # those at most names; a reliable link needs two tasks
    tasks = data.task[rows]
    counts = np.bincount(tasks.codes, minlength=len(tasks.names))
    largest = np.argsort(-counts, kind="stable")[:2]
    return [data.keys.readable(tasks.names[index]) for index in largest if counts[index]]
