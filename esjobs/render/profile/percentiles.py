"""Rank of a site, a queue or a CPU model: each metric beside its distribution over all others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from esjobs.core.errors import NoJobsError
from esjobs.core.window import Window
from esjobs.records.jobs.query import METRICS, query_jobs
from esjobs.render.profile.named import Named
from esjobs.store.base import JobStore

LEAST_JOBS = 100  # Others with fewer jobs are not compared with: their numbers are chance

# Metrics of ``esjobs.records.jobs.query`` that are compared, and on which side of the others one is worse off
COMPARED: Mapping[str, Literal["low", "high"]] = {
    "efficiency": "low",
    "failure_rate": "high",
    "lost_share": "high",
    "waiting_s": "high",
    "mem_per_core_gb": "high",
}


@dataclass(frozen=True)
class Percentile:
    """A metric of one name beside those of all others that have jobs enough.

    ``value``: None where its jobs do not tell. ``low``, ``median``, ``high``: quartiles of the others.
    ``worse``: how many of the others are worse off; ``among``: how many others have the metric.
    """

    metric: str
    unit: str
    meaning: str
    value: float | None
    jobs: int
    low: float | None
    median: float | None
    high: float | None
    worse: int
    among: int


def percentiles(store: JobStore, meant: Sequence[Named], window: Window | None) -> list[list[Percentile]]:
    """For each of several names of one kind, each compared metric beside that of all others of its kind.

    A site is held against sites, a queue against queues, a CPU model against CPU models. All jobs
    of the window count, whatever their state. Cost: one query to its jobs for each kind.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    found = []
    for each in meant:
        key = "site" if each.of_site else {"queue": "queue", "cpu_model": "cpu_model"}[each.level]
        if key not in rows:
            rows[key] = _measured(store, key, window)
        found.append(_of_one(each.title, key, rows[key]))
    return found


def _measured(store: JobStore, key: str, window: Window | None) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = query_jobs(store, [key], ["jobs", *COMPARED], window=window).to_pylist()
    except NoJobsError:
        return []
    return rows


def _of_one(title: str, key: str, rows: Sequence[Mapping[str, Any]]) -> list[Percentile]:
    mine: Mapping[str, Any] = next((row for row in rows if row[key] == title), {})
    others = [row for row in rows if row[key] not in (None, title) and row["jobs"] >= LEAST_JOBS]
    everybody = [*filter(None, [mine]), *others]
    about = {metric.name: metric for metric in METRICS}
    return [
        _percentile(about[name].unit, about[name].meaning, name, mine, others)
        for name in COMPARED
        if any(row[name] is not None for row in everybody)
    ]


def _percentile(
    unit: str, meaning: str, name: str, mine: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> Percentile:
    value = mine.get(name)
    values = np.array([row[name] for row in others if row[name] is not None], np.float64)
    if value is None or not len(values):
        worse = 0
    else:
        worse = int(np.sum(values < value if COMPARED[name] == "low" else values > value))
    low, median, high = (
        (float(each) for each in np.quantile(values, (0.25, 0.5, 0.75))) if len(values) else (None,) * 3
    )
    return Percentile(name, unit, meaning, value, mine.get("jobs", 0), low, median, high, worse, len(values))
