"""Results of a stored run for tasks, for fits of the same jobs by day or by machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from esjobs.core.query import In
from esjobs.core.words import ALL_TYPES
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.records.tasks.keys import Parts
from esjobs.records.tasks.sums import FloatArray
from esjobs.schema.speed import FACTORS, FITS, TASK_RESULTS
from esjobs.store.base import JobStore

# Decisions about tasks that such a fit can follow; of the others single jobs would have to be read again.
_USABLE = ("kept", "corrected")


@dataclass(frozen=True)
class KnownOfTasks:
    """Results of a run: start-up times (in events); factors and interaction by level.

    ``aside``: decision about each task that cannot be used.
    """

    run: StoredRun
    rho: Mapping[Parts, float]
    aside: Mapping[Parts, str]
    factors: Mapping[str, Mapping[str, float]]
    sigma_int: Mapping[str, float | None]

    @classmethod
    def of_run(cls, store: JobStore, run: StoredRun) -> "KnownOfTasks":
        """Read it; three tables, few columns."""
        mine = In("run", (run.run,))
        columns = ["task_id", "core_class", "task_type", "decision", "rho"]
        tasks = read_table(store, TASK_RESULTS, [mine], columns).to_pylist()
        rho, aside = _decisions(tasks)
        of_all = [mine, In("processing_type", (ALL_TYPES,)), In("method", (run.headline or "",))]
        rows = read_table(store, FACTORS, of_all, ["level", "name", "k", "component"]).to_pylist()
        factors: dict[str, dict[str, float]] = {}
        for row in rows:
            if row["component"] == 0 and row["k"] is not None:
                factors.setdefault(row["level"], {})[row["name"]] = row["k"]
        fits = read_table(store, FITS, of_all, ["level", "sigma_int"]).to_pylist()
        sigma_int = {row["level"]: row["sigma_int"] for row in fits}
        return cls(run, rho, aside, factors, sigma_int)


def _decisions(tasks: Iterable[Mapping[str, Any]]) -> tuple[dict[Parts, float], dict[Parts, str]]:
    """Return the start-up times of corrected tasks, and the decisions about those that cannot be used."""
    rho: dict[Parts, float] = {}
    aside: dict[Parts, str] = {}
    for row in tasks:
        key = row["task_id"], row["core_class"], row["task_type"]
        if row["decision"] not in _USABLE:
            aside[key] = row["decision"]
        elif row["decision"] == "corrected" and row["rho"] is not None:
            rho[key] = row["rho"]
    return rho, aside


def job_variance(sums: Mapping[str, FloatArray], effective: FloatArray) -> FloatArray:
    """Return the relative variance of a job's CPU time about its expectation; NaN for one job.

    ``sums``: of buckets, by ``SUMS``; ``effective``: events including the start-up time.
    """
    n = sums["n_jobs"]
    slope = sums["cpu_s"] / effective
    # sum((t - <t> - b (e - <e>))^2) over the jobs of a bucket, from its sums
    squares = (
        (sums["cpu_s_sq"] - sums["cpu_s"] ** 2 / n)
        - 2.0 * slope * (sums["events_cpu_s"] - sums["events"] * sums["cpu_s"] / n)
        + slope**2 * (sums["events_sq"] - sums["events"] ** 2 / n)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(squares, 0.0) / (n - 1.0) / (sums["cpu_s"] / n) ** 2
    return np.where(n > 1, variance, np.nan)
