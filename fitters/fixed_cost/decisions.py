"""Decision on a task's start-up time: correct, leave (it changes nothing), or exclude the task.

A start-up time that cannot be told from none is not none. What decides is by how much an estimate and its
error can move the ratio of two factors, never whether the estimate differs from 0.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.layout.arrays import Floats, Texts, texts

RATIO_LIMIT = 1.2  # Mean events per job that differ by less between units leave the factors alone
# What the ratio of two factors may move by before it matters: a fraction of what units differ by anyway
EFFECT_LIMIT = 0.02
ERROR_LIMIT = 0.5  # Beyond so large an error of ln(ratio of two factors) linear propagation means nothing
SIGNIFICANCE = 3.0
# Share of the jobs of a task that may be far off the others; more are another kind of work
MOST_TRIMMED = 1 / 3
LEAST_JOBS = 50  # Jobs that an estimate needs to stand alone
LEAST_JOBS_TOGETHER = 20  # Jobs that it needs to count among those of other tasks of its kind
CANNOT_BE_ESTIMATED = "events per job differ and start-up time unknown"
SMALLEST_REST = 1e-3  # A share above 1 - 0.001 is all start-up time; the correction no longer depends on it


def decide(columns: dict[str, NDArray[Any]]) -> dict[str, Texts]:
    """Return decision and reason of each task, from the other columns of a `CostTable`."""
    n = columns["n_jobs"].size
    decision, reason = texts(n), texts(n)
    names = [name for name in columns if name != "name"]
    for index in range(n):
        decision[index], reason[index] = _verdict({name: float(columns[name][index]) for name in names})
    return {"decision": decision, "reason": reason}


def in_events(share: Floats, share_err: Floats, mean_events: Floats) -> tuple[Floats, Floats]:
    """rho and its error from the share f = rho / (m + rho) of the start-up time in a mean job of m events."""
    with np.errstate(invalid="ignore"):
        rest = 1.0 - np.clip(share, 0.0, 1.0 - SMALLEST_REST)
        return mean_events / rest - mean_events, mean_events * share_err / rest**2


def _verdict(row: dict[str, float]) -> tuple[str, str]:
    if row["n_units"] < 2:
        return "equal lengths", "one unit only"
    lengths = f"mean events per job differ by {row['events_ratio']:.2f}x between units"
    if row["events_ratio"] <= RATIO_LIMIT:
        return "equal lengths", lengths
    reach = np.log(row["events_ratio"])
    share, error = row["share"], row["share_err"]
    alone = not row["is_drawn"] and row["n_used"] < LEAST_JOBS
    if alone or not np.isfinite(share) or not np.isfinite(error):
        return "excluded", f"{CANNOT_BE_ESTIMATED}: {_unknown(row)}"
    slope, slope_err = row["slope"], row["slope_err"]
    measured = f"slope {slope:.2f} +- {slope_err:.2f}" if np.isfinite(slope) else "slope of its own unknown"
    drawn = f", share {share:.2f} +- {error:.2f} with tasks of its kind" if row["is_drawn"] else ""
    measured = f"{measured}{drawn}, {lengths}"
    if slope * reach > EFFECT_LIMIT and slope > SIGNIFICANCE * slope_err:
        return "rising", f"CPU time per event rises with events: {measured}"
    if (abs(share) + 2.0 * error) * reach <= EFFECT_LIMIT:
        return "proportional", measured
    if error * reach > ERROR_LIMIT:
        return "excluded", f"{CANNOT_BE_ESTIMATED}: {measured}"
    return ("apply" if share > 0 else "proportional"), measured


def _unknown(row: dict[str, float]) -> str:
    if row["n_jobs"] < LEAST_JOBS:
        return f"{row['n_jobs']:.0f} jobs"
    if not row["n_used"] > 0:
        return "no second moments"
    if row["n_trimmed"] > MOST_TRIMMED * row["n_jobs"]:
        return f"{row['n_trimmed']:.0f} of {row['n_jobs']:.0f} jobs are off any common line"
    if row["n_used"] < LEAST_JOBS:
        return f"{row['n_used']:.0f} of {row['n_jobs']:.0f} jobs usable"
    return "events do not vary inside the units"
