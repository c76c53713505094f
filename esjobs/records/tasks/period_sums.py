"""Sums of a window by week: what tells a task that changes with time from one that does not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from esjobs.records.names.sites import Sites
from fitters.layout.columns import Labels

PERIOD_SUMS = ("n_jobs", "events", "cpu_s")
PERIOD_DAYS = 7
MOST_PERIODS = 8

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class PeriodSums:
    """Sums by ``PERIOD_SUMS`` per task key, name and period (from 0); these may have several rows."""

    task: Labels
    name: Labels
    period: Codes
    sums: Mapping[str, npt.NDArray[np.float64]]

    def __getitem__(self, rows: Any) -> "PeriodSums":
        sums = {column: values[rows] for column, values in self.sums.items()}
        return PeriodSums(self.task[rows], self.name[rows], self.period[rows], sums)

    def renumbered(self, number: Codes) -> "PeriodSums":
        """Return the rows with other numbers of their keys."""
        return replace(self, task=Labels(number[self.task.names], self.task.codes))

    def of_sites(self, sites: Sites) -> "PeriodSums":
        """Return the rows of queues under the names of their sites."""
        return replace(self, name=Labels(*site_labels(self.name, sites)))


def n_periods(days: int) -> int:
    """Return in how many periods a window of so many days is cut: weeks, two at least, eight at most.

    >>> [n_periods(days) for days in (1, 3, 14, 30, 90)]
    [1, 2, 2, 4, 8]
    """
    return min(max(round(days / PERIOD_DAYS), 2), MOST_PERIODS) if days > 1 else 1


def site_labels(queues: Labels, sites: Sites) -> tuple[npt.NDArray[np.object_], Codes]:
    """Return the sorted names of the sites of queues, and the code of each row."""
    of_queue = [sites.of(queue).name for queue in queues.names]
    names = np.array(sorted(set(of_queue)), object)
    code = np.searchsorted(names.astype(str), np.array(of_queue, str)).astype(np.int32)
    return names, code[queues.codes]
