"""Waiting, memory and CPU models of a made-up grid, and planted deviations of them and of its volume."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from esjobs.schema.today import WAIT_EDGES_S, WAITED
from esjobs.today.sums import Sums

Floats = NDArray[np.float64]
JOB_SD = 1.3  # Waiting times of jobs of a site, kind and day, in ln
SIZES = {"waiting": 8.0, "throughput": 0.1, "arrivals": 0.0, "memory": 1.4, "unknown cpu": 0.15}
DAYS = 3


@dataclass(frozen=True)
class Shift:
    """Deviation of a metric of a site from day ``start`` on for ``DAYS`` days."""

    metric: str
    site: int
    start: int

    def rows(self, site: NDArray[np.int64], day: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the rows that it touches."""
        touched: NDArray[np.bool_] = (site == self.site) & (day >= self.start) & (day < self.start + DAYS)
        return touched


def shifts(rng: np.random.Generator, sites: Sequence[int], first: int, n_days: int) -> list[Shift]:
    """Return two deviations of each metric, at sites apart."""
    chosen = rng.choice(sites, 2 * len(SIZES), replace=False)
    starts = rng.integers(first, n_days - DAYS - 1, len(chosen))
    return [
        Shift(metric, int(site), int(start))
        for metric, site, start in zip([*SIZES] * 2, chosen, starts, strict=True)
    ]


def with_metrics(sums: Sums, first: int, seed: int, planted: Sequence[Shift]) -> tuple[Sums, Floats]:
    """Return the sums with waiting, memory, CPU models and planted deviations, and what is left of rows."""
    rng = np.random.default_rng([seed, 77])
    site, kind, task, day = (
        *(sums.codes[name] for name in ("site", "kind", "task")),
        sums.day - first,
    )
    n_sites, n_kinds, n_days = len(sums.names["site"]), len(sums.names["kind"]), int(day.max()) + 1
    n = sums.n_jobs.astype(np.int64)
    load = np.zeros((n_kinds, n_days))
    for at in range(1, n_days):
        load[:, at] = 0.8 * load[:, at - 1] + 0.3 * rng.standard_normal(n_kinds)
    center = np.log(3600) + rng.standard_normal(n_sites)[site] + 0.4 * rng.standard_normal(n_kinds)[kind]
    of_day = 0.45 * rng.standard_t(4, (n_sites, n_days)) / np.sqrt(2)
    center = center + load[kind, day] + of_day[site, day] + 0.3 * rng.standard_normal(len(n))
    own = np.exp(0.03 * rng.standard_t(4, (n_sites, n_days)))
    per_core = np.array([1.2, 1.6, 1.9, 1.7, 1.5])[kind] * 2**30
    per_core = per_core * np.exp(0.2 * rng.standard_normal(len(sums.names["task"])))[task]
    per_core = per_core * np.exp(0.05 * rng.standard_normal(n_sites))[site] * own[site, day]
    per_core = per_core * np.exp(0.3 * rng.standard_normal(len(n)) / np.sqrt(np.maximum(n, 1)))
    share = np.clip(rng.beta(0.3, 12, n_sites)[site] * np.exp(0.3 * rng.standard_normal(len(n))), 0, 1)
    keep = np.ones(len(n))
    for one in planted:
        rows, size = one.rows(site, day), SIZES[one.metric]
        if one.metric == "waiting":
            center[rows] += np.log(size)
        elif one.metric == "memory":
            per_core[rows] *= size
        elif one.metric == "unknown cpu":
            share[rows] = np.minimum(share[rows] + size, 1.0)
        else:
            keep[rows] = size
    finished = sums.finished
    cores = np.where(finished, n * np.array([1.0, 8.0, 8.0, 8.0, 1.0])[kind], 0.0)
    whole = replace(
        sums,
        n_memory=np.where(finished, n, 0.0),
        memory_cores=cores,
        memory_b=cores * per_core,
        n_unknown_cpu=rng.binomial(n, share).astype(np.float64),
        waited=_waited(rng, n, center),
    )
    return whole, rng.binomial(n, keep) / np.maximum(n, 1)


def _waited(rng: np.random.Generator, n: NDArray[np.int64], center: Floats) -> Floats:
    from scipy import stats

    below = stats.norm.cdf((np.log(WAIT_EDGES_S) - center[:, None]) / JOB_SD)
    share = np.diff(np.column_stack([np.zeros(len(n)), below, np.ones(len(n))]), axis=1)
    drawn: Floats = rng.multinomial(n, np.maximum(share, 0.0) / share.sum(axis=1, keepdims=True)).astype(
        float
    )
    assert drawn.shape[1] == len(WAITED)
    return drawn
