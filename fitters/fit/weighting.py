"""What a bucket counts for: weights from variance components, and less or nothing for stray values.

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
from numpy.typing import NDArray

from fitters.fit.interaction import ASSUMED_SIGMA_INT, LEAST_DOF, estimate_sigma_int
from fitters.fit.rejection import Treatment, kept_room, level_and_ratio, median_start, treat
from fitters.fit.solve import Solution, minimise
from fitters.layout.arrays import EMPTY, Floats
from fitters.layout.buckets import Buckets
from fitters.layout.components import Part, partition
from fitters.robust import TUKEY_LIMIT

ASSUMED_JOB_SCATTER = 0.5
"""Relative scatter of single jobs where it can neither be read nor estimated."""

MOST_ROUNDS = 8
FLOOR_ROUNDS = 6
LEAST_VARIANCE = 1e-8
TUKEY_EFFICIENCY = 0.95

MEANINGS = {
    "none": "every bucket counts the same; S is the relative spread of the buckets",
    "jobs": "number of jobs; S is the relative spread of single jobs",
    "floor": "1 / (S_j^2 / jobs + S_0^2), the inverse relative variance; S is 1 if the errors are right",
    "variance": "1 / (rel_var + S_0^2), the inverse relative variance; S is 1 if the errors are right",
}


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """How buckets are weighted.

    Attributes
    ----------
    kind, robust : str
        As in the settings.
    meaning : str
        What a weight is, and what the S of the result measures.
    job_scatter, floor : float
        S_j (NaN where rel_var gives it per task) and S_0; NaN unless the kind is ``floor``.
    source : str
        Where S_0 comes from: ``estimated``, ``assumed`` (fewer than 10 degrees of freedom), ``given``; empty
        unless ``floor``.
    rounds : int
        Fits that were made to find the weights.
    n_rejected : int
        Buckets with weight 0.
    weight : float64 array, shape (n_buckets,) or (0,)
        Of the buckets as they came, robust part included; length 0 for equal weights.
    kept : bool array, shape (n_buckets,), or None
        Which buckets are not rejected; None: all.
    spread_factor, model_factor, propagated_factor, sandwich_factor : float
        What the weights of Tukey's biweight do to S^2 and the variances, 1 otherwise.
    """

    kind: str
    robust: str
    meaning: str
    job_scatter: float = float("nan")
    floor: float = float("nan")
    source: Literal["estimated", "assumed", "given", ""] = ""
    rounds: int = 0
    n_rejected: int = 0
    weight: Floats = field(default_factory=lambda: EMPTY)
    kept: NDArray[np.bool_] | None = None
    spread_factor: float = 1.0
    model_factor: float = 1.0
    propagated_factor: float = 1.0
    sandwich_factor: float = 1.0


@dataclass(slots=True)
class _State:
    """Where the rounds are: ln k of every unit, ln x and x of every bucket, variances, robust weights."""

    theta: Floats
    ln_ratio: Floats
    variance: Floats
    trust: Floats
    floor: float
    job_scatter: float
    source: Literal["estimated", "assumed", "given", ""]


def find_weights(
    buckets: Buckets,
    rel_var: Floats,
    kind: str,
    robust: str,
    *,
    mode: int,
    sigma_int: float | None,
    threads: int,
) -> Weighting:
    """Find the weights of all buckets.

    Robust fits start from alternating medians of ln a (four sweeps), then weights and fit take turns, at most
    eight times; variance components are worked out anew in each of up to six rounds. Below 10 degrees of
    freedom nothing can be told from a stray value and nothing is rejected. Linear in the buckets, but for the
    sorts of the medians.
    """
    weighting = Weighting(kind, robust, MEANINGS[kind])
    shared = np.repeat(np.diff(buckets.ptr) >= 2, np.diff(buckets.ptr))
    if robust == "none" and kind not in ("floor", "variance"):
        return replace(weighting, weight=_jobs(buckets) if kind == "jobs" else EMPTY)
    if not shared.any():
        return weighting
    state = _first_state(buckets, rel_var, kind, sigma_int)
    dof = _dof(buckets)
    has_dof = dof >= LEAST_DOF
    treatment = Treatment(np.ones(buckets.n_buckets), 1.0, np.zeros(buckets.n_buckets))
    if robust != "none" and has_dof:
        state.theta, level = median_start(buckets)
        state.ln_ratio = np.log(buckets.value) + state.theta[buckets.unit] - level
        n_exact = int(np.count_nonzero(shared)) - dof
        treatment = treat(buckets, state.ln_ratio, 1.0 / state.variance, shared, robust, n_exact)
        state.trust = treatment.trust
    rounds = 0
    for _ in range(MOST_ROUNDS if robust != "none" else FLOOR_ROUNDS):
        rounds += 1
        before = state.variance.copy(), state.trust
        _refit(buckets, rel_var, state, kind, mode=mode, sigma_int=sigma_int, threads=threads)
        if robust != "none" and has_dof:
            treatment = treat(buckets, state.ln_ratio, 1.0 / state.variance, shared, robust)
            state.trust = treatment.trust
        quiet = np.abs(np.log(state.variance / before[0])).max() < 0.01
        if quiet and np.abs(state.trust - before[1]).max() < 0.01:
            break
    kept = state.trust > 0
    n_rejected = int(np.count_nonzero(~kept))
    plain = kind == "none" and robust != "tukey"
    weighting = replace(
        weighting,
        rounds=rounds,
        n_rejected=n_rejected,
        weight=EMPTY if plain else state.trust / state.variance,
        kept=kept if n_rejected else None,
    )
    if kind in ("floor", "variance"):
        weighting = replace(weighting, floor=state.floor, job_scatter=state.job_scatter, source=state.source)
    if robust == "tukey" and has_dof:
        weighting = _with_factors(weighting, state, treatment, shared)
    return weighting


def _jobs(buckets: Buckets) -> Floats:
    return EMPTY if buckets.jobs is None else buckets.jobs


def _dof(buckets: Buckets) -> int:
    split = partition(buckets, EMPTY, EMPTY)
    return sum(part.dof for part in split.parts)


def _first_state(buckets: Buckets, rel_var: Floats, kind: str, sigma_int: float | None) -> _State:
    n = buckets.n_buckets
    state = _State(
        theta=np.zeros(buckets.n_units),
        ln_ratio=np.zeros(n),
        variance=np.ones(n),
        trust=np.ones(n),
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
    of_jobs = (
        rel_var if kind == "variance" and rel_var.size else job_variance(buckets, rel_var, state.job_scatter)
    )
    return np.maximum(of_jobs + state.floor**2, LEAST_VARIANCE)


def job_variance(buckets: Buckets, rel_var: Floats, job_scatter: float) -> Floats:
    """What the scatter of jobs does to each bucket's mean: S_j^2 / N, with S_j per task from rel_var."""
    jobs = buckets.jobs
    if rel_var.size == 0:
        return job_scatter**2 / _jobs(buckets)
    if jobs is None:
        return rel_var
    starts = buckets.ptr[:-1]
    per_job = np.add.reduceat(jobs * jobs * rel_var, starts) / np.add.reduceat(jobs, starts)
    smooth: Floats = np.repeat(per_job, np.diff(buckets.ptr)) / jobs
    return smooth


def _refit(
    buckets: Buckets,
    rel_var: Floats,
    state: _State,
    kind: str,
    *,
    mode: int,
    sigma_int: float | None,
    threads: int,
) -> None:
    """Fit with the present weights; then residuals and variances of all buckets from that fit."""
    kept = state.trust > 0
    all_kept = bool(kept.all())
    inside = buckets if all_kept else buckets.keep(kept)
    weight = state.trust / state.variance
    weight, scatter = (
        (weight, rel_var) if all_kept else (weight[kept], rel_var[kept] if rel_var.size else rel_var)
    )
    split = partition(inside, weight, scatter, threads)
    parts: list[Part] = []
    solutions: list[Solution] = []
    for part in split.parts:
        solution = minimise(part, mode, state.theta[part.units])
        if not solution.converged:
            solution = minimise(part, mode)
        if solution.converged:
            parts.append(part)
            solutions.append(solution)
            state.theta[part.units] = solution.theta
    ratio = level_and_ratio(buckets, state.theta, state.trust / state.variance, mode)
    state.ln_ratio = np.log(ratio)
    if kind not in ("floor", "variance"):
        return
    dof = sum(part.dof for part in parts)
    if rel_var.size:
        interaction = estimate_sigma_int(tuple(parts), tuple(solutions), sigma_int)
        state.floor, state.source = interaction.value, _known(interaction.source)
    elif dof >= LEAST_DOF:
        used = kept & np.repeat(np.diff(buckets.ptr) >= 2, np.diff(buckets.ptr))
        job, floor = components_of(buckets, ratio - 1.0, state.variance, used, sigma_int)
        state.job_scatter, state.floor = float(np.sqrt(job)), float(np.sqrt(floor))
        state.source = "estimated" if sigma_int is None else "given"
    state.variance = _variance(buckets, rel_var, state, kind)


def _known(source: str) -> Literal["estimated", "assumed", "given", ""]:
    return source if source in ("estimated", "assumed", "given") else ""  # type: ignore[return-value]


def components_of(
    buckets: Buckets,
    residual: Floats,
    variance: Floats,
    used: NDArray[np.bool_],
    sigma_int: float | None = None,
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


def _with_factors(
    weighting: Weighting, state: _State, treatment: Treatment, shared: NDArray[np.bool_]
) -> Weighting:
    """Correct what weights that depend on the residuals do to errors (Huber, Robust Statistics, 1981, 7.6).

    S^2 leaves the weights of the biweight out again; at the normal law the mean then has 95 % efficiency. The
    sandwich needs the derivative of the biweight's score, (1 - u^2) (1 - 5 u^2), not its weight.

    All of this holds for many buckets. With few tasks a unit, or few units a task, Tukey's weights lose more
    than 5 % and errors come out too small: by 3 % with 20 tasks of 8 units, by 15 % with 3 tasks of 20, by
    40 % with tasks of 3. ``reject`` has no such loss.
    """
    kept = shared & (state.trust > 0)
    trust, base = state.trust[kept], 1.0 / state.variance[kept]
    squares = base * (np.exp(state.ln_ratio[kept]) - 1.0) ** 2
    u = treatment.pull[shared] / TUKEY_LIMIT
    slope = np.where(np.abs(u) < 1, (1 - u * u) * (1 - 5 * u * u), 0.0)
    weighted = float(np.sum(trust * squares))
    mean = float(np.sum(base * trust) / np.sum(base))
    return replace(
        weighting,
        spread_factor=float(np.sum(squares)) / weighted if weighted > 0 else 1.0,
        model_factor=mean / TUKEY_EFFICIENCY,
        propagated_factor=mean**2 / float(np.sum(base * trust**2) / np.sum(base)) / TUKEY_EFFICIENCY,
        sandwich_factor=float(np.sum(trust) / np.sum(slope)) ** 2,
    )
