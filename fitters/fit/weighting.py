"""Weights of buckets from variance components; 0 for stray values.

`floor` is w = 1 / (S_j^2 / N + S_0^2): N jobs average their own scatter S_j, but not what the unit and the
task have with each other, S_0. Where rel_var is given, S_0 is sigma_int and S_j^2 the mean over a task's jobs
of rel_var x N (of the task and not of the bucket: the scatter inside a few jobs goes with their mean, and
weights that do would move it). Otherwise both come from the residuals.

The weights need not be exact for the errors to hold: errors propagate rel_var and sigma_int through the fit
as it is weighted.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from fitters.fit.interaction import ASSUMED_SIGMA_INT, LEAST_DOF, estimate_sigma_int
from fitters.fit.rejection import kept_after, kept_room, median_start, ratios
from fitters.fit.solve import Solution, minimise
from fitters.layout.arrays import EMPTY, Floats, Mask
from fitters.layout.buckets import Buckets
from fitters.layout.components import Part, partition

ASSUMED_JOB_SCATTER = 0.5  # Relative scatter of single jobs where it can neither be read nor estimated
MOST_ROUNDS = 8
FLOOR_ROUNDS = 6
LEAST_VARIANCE = 1e-8  # A bucket of exactly equal jobs must not have all the weight


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """Bucket weights, and how they were found."""

    # kind, robust: As in the settings
    kind: str
    robust: str
    # job_scatter, floor: S_j (NaN where rel_var gives it per task) and S_0; NaN unless the kind is ``floor``
    job_scatter: float = float("nan")
    floor: float = float("nan")
    # Where S_0 comes from: ``estimated``, ``assumed`` (fewer than 10 degrees of freedom), ``given``; empty
    # unless ``floor``
    source: Literal["estimated", "assumed", "given", ""] = ""
    rounds: int = 0  # Fits that were made to find the weights
    n_rejected: int = 0  # Buckets with weight 0
    # (shape (n_buckets,) or (0,)) Of the buckets as they came, 0 for the rejected; length 0 for equal weights
    weight: Floats = field(default_factory=lambda: EMPTY)
    # Which buckets are not rejected; None: all; shape (n_buckets,), or None
    kept: Mask | None = None


@dataclass(slots=True)
class _State:
    """State of the rounds: ln k per unit, ln x and variance per bucket, mask of the kept ones."""

    theta: Floats
    ln_ratio: Floats
    variance: Floats
    kept: Mask
    floor: float
    job_scatter: float
    source: Literal["estimated", "assumed", "given", ""]


def find_weights(
    buckets: Buckets, rel_var: Floats, kind: str, robust: str, *, mode: int, sigma_int: float | None
) -> Weighting:
    """Find the weights of all buckets.

    Robust fits start from four alternating medians of ln a, then rejection and fit take turns, up to eight
    times; variance components are estimated again in up to six rounds. Below 10 degrees of freedom nothing is
    rejected.
    """
    weighting = Weighting(kind, robust)
    shared = np.repeat(np.diff(buckets.ptr) >= 2, np.diff(buckets.ptr))
    if robust == "none" and kind not in ("floor", "variance"):
        return replace(weighting, weight=_jobs(buckets) if kind == "jobs" else EMPTY)
    if not shared.any():
        return weighting
    state = _first_state(buckets, rel_var, kind, sigma_int)
    dof = sum(part.dof for part in partition(buckets, EMPTY, EMPTY).parts)
    has_dof = dof >= LEAST_DOF
    if robust != "none" and has_dof:
        state.theta, level = median_start(buckets)
        state.ln_ratio = np.log(buckets.value) + state.theta[buckets.unit] - level
        n_exact = int(np.count_nonzero(shared)) - dof
        state.kept = kept_after(buckets, state.ln_ratio, 1.0 / state.variance, shared, n_exact)
    rounds = 0
    for _ in range(MOST_ROUNDS if robust != "none" else FLOOR_ROUNDS):
        rounds += 1
        before = state.variance, state.kept
        _refit(buckets, rel_var, state, kind, mode=mode, sigma_int=sigma_int)
        if robust != "none" and has_dof:
            state.kept = kept_after(buckets, state.ln_ratio, 1.0 / state.variance, shared)
        quiet = np.abs(np.log(state.variance / before[0])).max() < 0.01
        if quiet and (state.kept == before[1]).all():
            break
    n_rejected = int(np.count_nonzero(~state.kept))
    weighting = replace(
        weighting,
        rounds=rounds,
        n_rejected=n_rejected,
        weight=EMPTY if kind == "none" else state.kept / state.variance,
        kept=state.kept if n_rejected else None,
    )
    if kind in ("floor", "variance"):
        weighting = replace(weighting, floor=state.floor, job_scatter=state.job_scatter, source=state.source)
    return weighting


def _jobs(buckets: Buckets) -> Floats:
    return EMPTY if buckets.jobs is None else buckets.jobs


def _first_state(buckets: Buckets, rel_var: Floats, kind: str, sigma_int: float | None) -> _State:
    n = buckets.n_buckets
    state = _State(
        theta=np.zeros(buckets.n_units),
        ln_ratio=np.zeros(n),
        variance=np.ones(n),
        kept=np.ones(n, bool),
        floor=ASSUMED_SIGMA_INT if sigma_int is None else sigma_int,
        job_scatter=float("nan") if rel_var.size else ASSUMED_JOB_SCATTER,
        source="assumed" if sigma_int is None else "given",
    )
    if kind != "none":
        state.variance = _variance(buckets, rel_var, state, kind)
    return state


def _variance(buckets: Buckets, rel_var: Floats, state: _State, kind: str) -> Floats:
    if kind == "jobs":
        return 1.0 / _jobs(buckets)
    has_own = kind == "variance" and rel_var.size
    of_jobs = rel_var if has_own else job_variance(buckets, rel_var, state.job_scatter)
    return np.maximum(of_jobs + state.floor**2, LEAST_VARIANCE)


def job_variance(buckets: Buckets, rel_var: Floats, job_scatter: float) -> Floats:
    """Return the variance S_j^2 / N of each bucket's mean, with S_j per task if rel_var is known."""
    jobs = buckets.jobs
    if rel_var.size == 0:
        return job_scatter**2 / _jobs(buckets)
    if jobs is None:
        return rel_var
    starts = buckets.ptr[:-1]
    per_job = np.add.reduceat(jobs * jobs * rel_var, starts) / np.add.reduceat(jobs, starts)
    return np.repeat(per_job, np.diff(buckets.ptr)) / jobs


def _refit(
    buckets: Buckets, rel_var: Floats, state: _State, kind: str, *, mode: int, sigma_int: float | None
) -> None:
    """Fit with the present weights; update residuals and variances of all buckets."""
    kept = state.kept
    weight, inside, scatter = 1.0 / state.variance, buckets, rel_var
    if not kept.all():
        inside = buckets.keep(kept)
        weight, scatter = weight[kept], rel_var[kept] if rel_var.size else rel_var
    split = partition(inside, weight, scatter)
    parts: list[Part] = []
    solutions: list[Solution] = []
    for part in split.parts:
        solution = minimise(part, mode, state.theta[part.units], settled=False)
        # a start that was near may have become a bad one: from the convex start instead
        if not solution.converged:
            solution = minimise(part, mode, settled=False)
        if solution.converged:
            parts.append(part)
            solutions.append(solution)
            state.theta[part.units] = solution.theta
    # of all buckets, the rejected ones too: they may come back
    ratio = ratios(buckets, state.theta, kept / state.variance, mode)
    state.ln_ratio = np.log(ratio)
    if kind not in ("floor", "variance"):
        return
    dof = sum(part.dof for part in parts)
    if rel_var.size:
        interaction = estimate_sigma_int(tuple(parts), tuple(solutions), sigma_int, state.floor)
        state.floor = interaction.value
        state.source = "" if interaction.source == "unknown" else interaction.source
    elif dof >= LEAST_DOF:
        used = kept & np.repeat(np.diff(buckets.ptr) >= 2, np.diff(buckets.ptr))
        job, floor = components_of(buckets, ratio - 1.0, state.variance, used, sigma_int)
        state.job_scatter, state.floor = float(np.sqrt(job)), float(np.sqrt(floor))
        state.source = "estimated" if sigma_int is None else "given"
    state.variance = _variance(buckets, rel_var, state, kind)


def components_of(
    buckets: Buckets, residual: Floats, variance: Floats, used: Mask, sigma_int: float | None = None
) -> tuple[float, float]:
    """S_j^2 and S_0^2 from squared residuals, neither below 0.

    Least squares of r^2 / (1 - w / W_task - w / W_unit), whose expectation is the bucket's variance, on 1 / N
    and 1, each row divided by its present variance.
    """
    room = kept_room(buckets, 1.0 / variance, used)
    inverse_jobs = 1.0 / _jobs(buckets)[used]
    v = variance[used]
    target = residual[used] ** 2 / room[used] / v
    columns = np.stack([inverse_jobs / v, 1.0 / v])
    if sigma_int is not None:
        target = target - sigma_int**2 / v
        return max(float(columns[0] @ target / (columns[0] @ columns[0])), 0.0), sigma_int**2
    normal, right = columns @ columns.T, columns @ target
    determinant = float(normal[0, 0] * normal[1, 1] - normal[0, 1] ** 2)
    if determinant > 1e-9 * float(normal[0, 0] * normal[1, 1]):
        job = float(normal[1, 1] * right[0] - normal[0, 1] * right[1]) / determinant
        floor = float(normal[0, 0] * right[1] - normal[0, 1] * right[0]) / determinant
        if job >= 0 and floor >= 0:
            return job, floor
    alone = [float(right[index] / normal[index, index]) for index in (0, 1)]
    # the better of the two fits with one component: the larger decrease of the squares
    if right[0] * alone[0] > right[1] * alone[1]:
        return alone[0], 0.0
    return 0.0, alone[1]
