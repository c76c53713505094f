"""Rows of ``residuals`` and the pulls of a fit."""

from collections.abc import Iterator

import numpy as np

from esjobs.publish.publication import finite
from esjobs.speed.factors import METHODS, Fit
from fitters import Labels
from fitters.layout.arrays import Floats, Ints, Mask

SHOWN_TASKS = 25  # Tasks of most jobs whose buckets are kept
WORST = 10  # The buckets that deviate most, in their own standard deviations, are kept whatever their task
_EDGES = np.linspace(-5.0, 5.0, 21)


def residual_rows(fit: Fit) -> Iterator[dict[str, object]]:
    """Yield one row per bucket of the largest tasks, and of the ten most deviating ones with their rank."""
    table, rows = fit.buckets, fit.rows
    if table is None:
        return
    rank = _ranks(table.pull)
    shown = _largest(fit.data.task[rows], fit.data.n_jobs[rows]) | (rank > 0)
    corrected = METHODS[fit.factors.method].corrected
    effective = fit.data.events_eff if corrected else fit.data.events
    for bucket in np.flatnonzero(shown):
        row = rows[bucket]
        task_id, core_class, task_type, work_kind = fit.data.keys.parts(table.task[bucket])
        events, ratio = fit.data.events[row], table.ratio[bucket]
        # back from events with the start-up time to those of the record
        expected = table.value[bucket] / ratio * effective[row] / events
        yield {
            "task_id": task_id,
            "core_class": core_class,
            "task_type": task_type,
            "work_kind": work_kind,
            "name": table.name[bucket],
            "n_jobs": int(fit.data.n_jobs[row]),
            "events_per_job": float(events / fit.data.n_jobs[row]),
            "cpu_s_per_event": float(fit.data.cpu_s[row] / events),
            "expected_cpu_s_per_event": finite(expected),
            "deviation": finite(1 / ratio - 1),
            "pull": finite(-table.pull[bucket]),
            "rho": float(fit.data.rho[row]) if corrected else 0.0,
            "status": table.status[bucket],
            "rank": int(rank[bucket]) or None,
        }


def _ranks(pull: Floats) -> Ints:
    # without a pull a bucket has no rank
    size = np.nan_to_num(np.abs(pull), nan=-1.0)
    worst = np.argsort(-size, kind="stable")[:WORST]
    rank = np.zeros(len(pull), np.int64)
    rank[worst] = np.arange(1, len(worst) + 1)
    rank[size < 0] = 0
    return rank


def _largest(task: Labels, n_jobs: Ints) -> Mask:
    jobs = np.bincount(task.codes, n_jobs, len(task.names))
    is_shown = np.zeros(len(jobs), np.bool_)
    is_shown[np.argsort(-jobs, kind="stable")[:SHOWN_TASKS]] = True
    return is_shown[task.codes]


def pull_width(fit: Fit) -> float | None:
    """Return the width of the pulls of a fit; None without degrees of freedom."""
    pulls = _pulls(fit)
    return float(np.std(pulls)) if pulls.size else None


def pull_rows(fit: Fit) -> Iterator[dict[str, object]]:
    """Yield the histogram of the pulls, one row per bar; nothing without degrees of freedom."""
    pulls = _pulls(fit)
    if pulls.size:
        # Outliers count in the first and last bar
        counts = np.histogram(np.clip(pulls, _EDGES[0], _EDGES[-1]), _EDGES)[0].tolist()
        for low, high, count in zip(_EDGES[:-1], _EDGES[1:], counts, strict=True):
            yield {"low": float(low), "high": float(high), "n_buckets": count}


def _pulls(fit: Fit) -> Floats:
    table = fit.buckets
    if table is None:
        return np.empty(0)
    pulls: Floats = table.pull[(table.status == "used") & np.isfinite(table.pull)]
    return pulls
