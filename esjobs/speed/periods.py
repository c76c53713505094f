"""Rows of a fit cut into the periods of its window."""

from dataclasses import dataclass

import numpy as np

from esjobs.records.tasks.period_sums import MOST_PERIODS, PERIOD_SUMS, PeriodSums
from esjobs.records.tasks.sums import TaskSums
from fitters.layout.arrays import Floats, Ints, Mask


@dataclass(frozen=True)
class Cells:
    """One entry per row and period with jobs. ``row``: position among the rows of the fit."""

    row: Ints
    period: Ints
    n_jobs: Floats
    events: Floats
    cpu_s: Floats

    def of_rows(self, chosen: Mask) -> "Cells":
        """Return the cells of some of the rows, which are counted anew."""
        inside = chosen[self.row]
        row = (np.cumsum(chosen) - 1)[self.row[inside]]
        sums = (column[inside] for column in (self.n_jobs, self.events, self.cpu_s))
        return Cells(row, self.period[inside], *sums)


def cells_of(periods: PeriodSums | None, rows: TaskSums) -> Cells | None:
    """Return the cells of the rows of a level; None if the window has one period."""
    if periods is None or not len(rows):
        return None
    names = rows.name.names.astype(str)
    name = np.searchsorted(names, periods.name.names.astype(str))
    mine = rows.task.names[rows.task.codes].astype(np.int64) << 32 | rows.name.codes
    theirs = periods.task.names[periods.task.codes].astype(np.int64) << 32 | name[periods.name.codes]
    order = np.argsort(mine)
    place = np.minimum(np.searchsorted(mine, theirs, sorter=order), len(rows) - 1)
    row = order[place]
    found = mine[row] == theirs
    key = row[found] * MOST_PERIODS + periods.period[found]
    # a site has a row of each of its queues
    cells, number = np.unique(key, return_inverse=True)
    n_jobs, events, cpu_s = (
        np.bincount(number, periods.sums[name][found], cells.size).astype(np.float64) for name in PERIOD_SUMS
    )
    return Cells(cells // MOST_PERIODS, cells % MOST_PERIODS, n_jobs, events, cpu_s)
