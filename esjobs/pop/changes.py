"""Change points in the speed or efficiency of applications.

Method of :mod:`fitters`: daily means of ln(elapsed time) and ln(parallel efficiency) of runs of one
application on one number of CPUs, errors from the spread of runs on one day, steps above the significance
threshold.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

import numpy as np

import fitters
from fitters import Series, Step

Row = Mapping[str, Any]

LEAST_DAYS = 8
"""Days with runs required."""
_LEAST_SPREAD = 0.01  # Of runs of one day: one run a day shows none, and is not exact
METRICS = ("elapsed_s", "parallel_efficiency")


def change_rows(runs: Iterable[Row], significance: float, smallest: float) -> Iterator[dict[str, Any]]:
    """Yield one row per change; ``runs``: rows of ``pop`` of main regions; ``smallest``: relative change."""
    sets: dict[tuple[Any, ...], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run["application"] is not None and run["cpus"]:
            key = run["source"], run["application"], run["region"], run["cpus"]
            sets[key][run["time"].date().toordinal()].append(run)
    for key, days in sorted(sets.items()):
        named = dict(zip(("source", "application", "region", "cpus"), key, strict=True))
        for metric in METRICS:
            series = _series(days, metric)
            if series is None:
                continue
            for step in fitters.find_steps(series, series.scale, significance):
                if step.exceeds(math.log1p(smallest)):
                    row = {**named, "metric": metric, **_described(step, metric)}
                    yield {**row, "n_days": len(series.day)}


def _series(days: Mapping[int, list[Row]], metric: str) -> Series | None:
    """Return daily means of ln of a metric, None for too few days."""
    values = {
        day: [math.log(run[metric]) for run in runs if run[metric] is not None and run[metric] > 0]
        for day, runs in days.items()
    }
    values = {day: logs for day, logs in sorted(values.items()) if logs}
    if len(values) < LEAST_DAYS:
        return None
    spread = _spread(list(values.values()))
    day = np.array(list(values), np.int64)
    return Series(
        day,
        np.array([float(np.mean(logs)) for logs in values.values()]),
        np.array([spread / math.sqrt(len(logs)) for logs in values.values()]),
        # what lasts for days is not told apart from one run a day: the scale of the series takes it in
        np.full(len(values), spread / 10),
        fitters.fading(day),
    )


def _spread(days: list[list[float]]) -> float:
    squares = sum(float(np.var(logs) * len(logs)) for logs in days)
    free = sum(len(logs) - 1 for logs in days)
    return max(_LEAST_SPREAD, math.sqrt(squares / free) if free else 0.0)


def _described(step: Step, metric: str) -> dict[str, Any]:
    worse = step.size > 0 if metric == "elapsed_s" else step.size < 0
    return {
        "day": date.fromordinal(step.day),
        "day_low": date.fromordinal(step.day_low),
        "day_high": date.fromordinal(step.day_high),
        "change": math.expm1(step.size),
        "change_err": math.exp(step.size) * step.error,
        "significance": step.significance,
        "kind": "regression" if worse else "improvement",
    }
