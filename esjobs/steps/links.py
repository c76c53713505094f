"""What would connect a component with the largest one: the jobs that are missing, and where."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from esjobs.steps.fit_input import FitInput, readable_unit

ENOUGH_JOBS = 50
"""Jobs a bridge needs to be trusted; two independent ones make components comparable."""


def what_would_link(
    data: FitInput,
    entered: npt.NDArray[np.bool_],
    component: npt.NDArray[np.int64],
    min_bucket_jobs: int,
) -> Callable[[int, Sequence[str]], str]:
    """A function from a component's number and names to what would link it with component 0.

    ``component``: of the name of every row. The cheapest link is a bucket that exists and has too few jobs:
    its task is fitted on the other side. Otherwise the tasks that run at most names of component 0 are named.
    """
    tasks = data.task.astype(str)
    fitted_in: dict[str, int] = dict(zip(tasks[entered], component[entered].tolist(), strict=True))
    missing: dict[int, tuple[int, str, str]] = {}
    for place in np.flatnonzero(~entered):
        here, there = int(component[place]), fitted_in.get(tasks[place])
        if there is None or here == there or 0 not in (here, there):
            continue
        offer = (min_bucket_jobs - int(data.n_jobs[place]), tasks[place], str(data.name[place]))
        other = here + there
        missing[other] = min(missing.get(other, offer), offer)
    largest = _largest_tasks(tasks[entered & (component == 0)])

    def link(number: int, names: Sequence[str]) -> str:
        if number in missing:
            jobs, task, name = missing[number]
            return (
                f"{jobs} more jobs of task {readable_unit(task)} at {name}; {ENOUGH_JOBS} make a sound bridge"
            )
        if not largest:
            return "nothing is fitted that it could be linked with"
        who = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
        return f"two tasks with {ENOUGH_JOBS} jobs or more at {who}, such as {' or '.join(largest)}"

    return link


def _largest_tasks(tasks: npt.NDArray[np.str_], most: int = 2) -> list[str]:
    found, counts = np.unique(tasks, return_counts=True)
    return [readable_unit(found[place]) for place in np.argsort(-counts, kind="stable")[:most]]
