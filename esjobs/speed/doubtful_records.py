"""Names whose records are in doubt, with the reason: no verdict rests on them."""

import numpy as np

from esjobs.core.numbers import percent
from esjobs.records.tasks.sums import TaskSums
from fitters.layout.arrays import Floats, Mask, Texts

MOST_CUT = 0.5  # Share of the jobs of a name in cut-off tasks beyond which the rest says nothing of it
LARGEST_CORE_USE = 1.1  # CPU time over wall time x cores: above it core counts are wrong
_LEAST_JOBS = 20  # Of a name in a core class, for its core use to count


def record_doubts(rows: TaskSums, outliers: Texts) -> Texts:
    """Return why the records of each name are in doubt, by its code; empty where they are not.

    ``outliers``: the same for names whose jobs contradict their tasks, which come last.
    """
    if not len(rows):
        return outliers
    found = outliers
    for reason in (_cut_off(rows), _core_counts(rows)):
        found = np.where(reason != "", reason, found)
    return found


def core_use(rows: TaskSums, chosen: Mask) -> Floats:
    """Return the median CPU time over wall time x cores of each name, in the chosen rows, weighted by jobs.

    By code of the name; NaN without jobs.
    """
    chosen = chosen & (rows.sums["core_s"] > 0)
    jobs, name = rows.sums["n_jobs"][chosen], rows.name.codes[chosen]
    use = rows.sums["cpu_s"][chosen] / rows.sums["core_s"][chosen]
    order = np.lexsort((use, name))
    total = np.bincount(name, jobs, len(rows.name.names))
    ends = np.cumsum(total)
    place = np.searchsorted(np.cumsum(jobs[order]), ends - 0.5 * total)
    result = np.full(len(total), np.nan)
    several = total >= _LEAST_JOBS
    result[several] = use[order][place[several]]
    return result


def _core_counts(rows: TaskSums) -> Texts:
    reason = np.full(len(rows.name.names), "", object)
    of_row = rows.keys.core_class[rows.task.names][rows.task.codes].astype(str)
    for core_class in ("single", "multi"):
        use = core_use(rows, of_row == core_class)
        for code in np.flatnonzero(np.nan_to_num(use) > LARGEST_CORE_USE):
            reason[code] = (
                f"CPU time is {use[code]:.2f} times wall time x cores in its {core_class}-core jobs, as if "
                "core counts were wrong"
            )
    return reason


def _cut_off(rows: TaskSums) -> Texts:
    n_names = len(rows.name.names)
    cut = rows.cut.codes >= 0
    jobs = np.bincount(rows.name.codes, rows.sums["n_jobs"], n_names)
    lost = np.bincount(rows.name.codes, rows.sums["n_jobs"] * cut, n_names)
    reason = np.full(n_names, "", object)
    for code in np.flatnonzero(lost > MOST_CUT * jobs):
        row = np.flatnonzero(cut & (rows.name.codes == code))[0]
        reason[code] = (
            f"{percent(lost[code] / jobs[code])} of its jobs are of tasks whose long jobs are "
            f"{rows.cut.names[rows.cut.codes[row]]}"
        )
    return reason
