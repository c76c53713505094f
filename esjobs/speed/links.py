"""What would connect a component with the largest one: the jobs that are missing, and where."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from esjobs.speed.fit_input import FitInput

ENOUGH_JOBS = 50
"""Jobs a bridge needs to be trusted; two independent ones make components comparable."""


def what_would_link(
    data: FitInput,
    entered: npt.NDArray[np.bool_],
    component: npt.NDArray[np.int64],
    min_bucket_jobs: int,
) -> Callable[[int, Sequence[str]], str]:
    """A function from a component's number and names to what would link it with component 0.

    ``component``: of the name of every row. ``min_bucket_jobs``: what a bucket needed to enter this fit. The
    cheapest link is a bucket that exists and has too few jobs: its task is fitted on the other side.
    Otherwise the tasks that run at most names of component 0 are named.
    """
    fitted_in = np.full(len(data.task.names), -1, np.int64)
    fitted_in[data.task.codes[entered]] = component[entered]
    there = fitted_in[data.task.codes]
    # A bucket with enough jobs that did not enter was left out for another reason: more jobs would not help.
    small = ~entered & (data.n_jobs < min_bucket_jobs)
    offered = small & (there >= 0) & (component != there) & ((component == 0) | (there == 0))
    missing: dict[int, tuple[int, str, str]] = {}
    keys = data.keys
    rows = np.flatnonzero(offered)
    other = component[rows] + there[rows]
    # The most jobs first, among these the first task and name: names are sorted, their codes are places.
    order = np.lexsort((data.name.codes[rows], data.task.codes[rows], -data.n_jobs[rows], other))
    number, first = np.unique(other[order], return_index=True)
    for component_of, place in zip(number.tolist(), rows[order[first]].tolist(), strict=True):
        missing[component_of] = (
            min_bucket_jobs - int(data.n_jobs[place]),
            keys.readable(data.task.names[data.task.codes[place]]),
            str(data.name.names[data.name.codes[place]]),
        )
    largest = _largest_tasks(data, entered & (component == 0))

    def link(number: int, names: Sequence[str]) -> str:
        if number in missing:
            jobs, task, name = missing[number]
            return f"{jobs} more jobs of task {task} at {name}; {ENOUGH_JOBS} make a sound bridge"
        if not largest:
            return "nothing is fitted that it could be linked with"
        who = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
        return f"two tasks with {ENOUGH_JOBS} jobs or more at {who}, such as {' or '.join(largest)}"

    return link


def _largest_tasks(data: FitInput, rows: npt.NDArray[np.bool_], most: int = 2) -> list[str]:
    """The tasks that run at most names, in words."""
    tasks = data.task[rows]
    counts = np.bincount(tasks.codes, minlength=len(tasks.names))
    largest = np.argsort(-counts, kind="stable")[:most]
    return [data.keys.readable(tasks.names[place]) for place in largest if counts[place]]
