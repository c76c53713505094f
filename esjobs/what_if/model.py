"""Forecast of the CPU time of a task at a queue, from the same task elsewhere; pure.

The model of a cell (task unit t, queue q) is ln a_tq = A_t - ln k_q + e, with var e = tau² + s²/n: s² the
relative variance of a job, tau what jobs of one task in one queue share beside the speed of the queue.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from esjobs.core.words import HALF_WIDTH_90, INTERVAL_LEVEL
from esjobs.what_if.cells import MIN_JOBS, Cells
from fitters.layout.arrays import Floats, Ints, Mask
from fitters.threads import one_blas_thread

LARGEST_LENGTH_RATIO = 1.2
"""Ratio of events per job beyond which an unknown start-up time forbids a forecast."""

UNKNOWN_COST = "start-up time unknown"
# of ln a, where a run is too small to tell it
_ASSUMED_TAU = 0.10
_MEDIAN_CHI2 = 0.4549  # median of chi² with one degree of freedom
_LEAST_CHECKED = 20  # cells below which tau and coverage cannot be estimated
# standard errors of its forecast beyond which a cell is kept out of all levels
_STRAY = 4.0
_LARGEST_LEVERAGE = 0.95  # beyond it the other cells do not predict a cell


@dataclass(frozen=True)
class Calibration:
    """Leave-one-out check of a run: share of 90 % intervals that hold; None with few cells.

    ``widened``: factor on all standard errors, so that 90 % of the cells lie in their intervals; at least 1.
    """

    n_cells: int = 0
    coverage_90: float | None = None
    widened: float = 1.0


@dataclass(frozen=True)
class Forecast:
    """ln of the CPU seconds of a mean job with its standard error, or the reason why there is none.

    ``own``: part of the variance that other tasks do not share. ``job_var``: relative variance of a job.
    ``direction``: weights on ln k.
    """

    ln_cpu_s: float = float("nan")
    error: float = float("nan")
    own: float = 0.0
    job_var: float = 0.0
    n_queues: int = 0
    direction: Floats | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Model:
    """Cells with their weights, the scatter ``tau`` between task and queue, and the covariance of ln k.

    ``weight``: 0 for cells that do not count (few jobs, no factor, unusable task, stray). ``residual``: about
    the level of the task. ``calibration.coverage_90`` is None if ``tau`` is assumed.
    """

    cells: Cells
    weight: Floats
    residual: Floats
    tau: float
    covariance: Floats
    calibration: Calibration
    _taken_out: dict[int, tuple[Floats, Floats, Floats]] = field(default_factory=dict, repr=False)

    @one_blas_thread()
    def forecast(
        self, unit: int, queue: int, events_per_job: float, *, without_task: bool = True
    ) -> Forecast:
        """Forecast the CPU time of a mean job of a unit at a queue, from all other queues that ran it.

        ``without_task``: by factors from which the task is taken out by one linear step of their fit. Cost:
        an eigenvalue problem of the number of queues for each unit, unless false.
        """
        cells = self.cells
        able = self._able[unit]
        able = able[cells.queue[able] != queue]
        # a task that the run excludes has weight 0 in the fit, but its cells determine its level
        used = able[self.weight[able] > 0] if cells.aside[unit] == "" else able
        reason = self._obstacle(unit, queue, used, events_per_job)
        if reason is not None:
            return Forecast(reason=reason)
        statistical = cells.job_var[used] / cells.n_jobs[used]
        # many jobs do not help beyond tau: it is the same for all of them
        weight = 1.0 / (self.tau**2 + statistical)
        weight /= weight.sum()
        direction = np.bincount(cells.queue[used], weight, len(cells.queues)).astype(np.float64)
        # ln k enters as the mean over the queues that ran the task minus that of the target; its error, too
        direction[queue] -= 1.0
        ln_k, covariance = cells.ln_k, self.covariance
        if without_task:
            shift, covariance, free = self._without(unit)
            # a difference with a part along directions that nothing determines could have any value
            if np.linalg.norm(free.T @ direction) > 1e-6:
                return Forecast(reason="without this task nothing links the queue to those that ran it")
            ln_k = ln_k + shift
        level = float(weight @ (cells.ln_cost[used] + ln_k[cells.queue[used]]))
        # tau once for the target and once for the mean of the others; jobs of the others alone
        own = float(self.tau**2 * (1.0 + (weight**2).sum()) + weight**2 @ statistical)
        common = max(float(direction @ covariance @ direction), 0.0)
        at = self._at[queue]
        # by as much as the intervals of known cells were too narrow
        wide = self.calibration.widened**2
        return Forecast(
            # start-up time counts as rho events on either side
            level - float(ln_k[queue]) + float(np.log(events_per_job + cells.rho[unit])),
            float(np.sqrt(wide * (common + own))),
            wide * own,
            float(np.average(cells.job_var[at], weights=cells.n_jobs[at])),
            len(used),
            direction,
        )

    def common_variance(self, directions: Floats, shares: Floats) -> float:
        """Variance of a sum of tasks of one type that they share, by the factors and by the type."""
        # tasks of one type err together: first added up, then squared
        mean = shares @ directions
        return self.calibration.widened**2 * float(mean @ self.covariance @ mean + self.cells.sigma_type**2)

    @cached_property
    def _able(self) -> list[Ints]:
        """Cells of each unit from which a forecast can be made."""
        return _members(self.cells.unit, len(self.cells.keys), np.flatnonzero(_able(self.cells)))

    @cached_property
    def _at(self) -> list[Ints]:
        """Cells of each queue."""
        return _members(self.cells.queue, len(self.cells.queues), np.arange(len(self.cells.queue)))

    def _obstacle(self, unit: int, queue: int, used: Ints, events: float) -> str | None:
        cells, decision = self.cells, self.cells.aside[unit]
        if not np.isfinite(cells.ln_k[queue]):
            return "the queue has no speed factor that is comparable with most others"
        # an unknown start-up time harms only where jobs are longer or shorter elsewhere
        if decision not in ("", UNKNOWN_COST):
            return f"{decision}: its jobs are of several kinds"
        if not used.size:
            return f"no other comparable queue ran {MIN_JOBS} jobs of it"
        ratio = np.abs(np.log(cells.sums["events"][used] / cells.n_jobs[used] / events)).max()
        if decision == UNKNOWN_COST and ratio > np.log(LARGEST_LENGTH_RATIO):
            return f"{UNKNOWN_COST}, and jobs elsewhere have other numbers of events"
        return None

    def _without(self, unit: int) -> tuple[Floats, Floats, Floats]:
        """Shift of ln k, covariance, and directions that nothing determines, without a unit."""
        if unit not in self._taken_out:
            cells, mine = self.cells, self.cells.unit == unit
            # one Newton step from the fit: its curvature without the task, and the pull of the task
            covariance, free = _inverse(_by_unit(np.where(mine, 0.0, self.weight), cells))
            pull = np.bincount(
                cells.queue[mine], (self.weight * self.residual)[mine], minlength=len(cells.queues)
            )
            self._taken_out[unit] = covariance @ pull, covariance, free
        return self._taken_out[unit]


@one_blas_thread()
def fit_model(cells: Cells) -> Model:
    """Estimate tau and the covariance of ln k from the cells of a run, and check all of it by leave-one-out.

    tau is such that the median of r²/((1 - h)(tau² + s²/n)) is that of chi² with one degree of freedom; r:
    residual, h: leverage. Cells beyond four errors do not enter the levels; they count in the check. Cost:
    some eigenvalue problems of the number of queues, a matrix of units x queues.
    """
    usable = _able(cells) & (cells.aside[cells.unit] == "")
    # a task of one queue has a level of its own and does not determine factors
    usable &= (np.bincount(cells.unit[usable], minlength=len(cells.keys)) > 1)[cells.unit]
    statistical = cells.job_var / np.maximum(cells.n_jobs, 1.0)
    stray = np.zeros(len(cells.unit), np.bool_)
    tau, assumed, checked, pulls = _ASSUMED_TAU, True, stray, statistical
    # strays depend on tau, and tau on strays: a few turns settle both
    for _ in range(8):
        own = tau**2 + statistical
        weight = np.where(usable & ~stray, 1.0 / own, 0.0)
        covariance, residual, fit_var = _solved(weight, cells)
        leverage = weight * fit_var
        checked = usable & (leverage <= _LARGEST_LEVERAGE)
        if checked.sum() < _LEAST_CHECKED:
            break
        # forecast of a cell from all others: r/(1-h) with variance (1/w)/(1-h); strays are left out anyway
        scale = np.where(stray, own + fit_var, own * np.maximum(1.0 - leverage, 1e-9))
        pulls = residual / np.sqrt(scale)
        stray = usable & (np.abs(pulls) > _STRAY)
        before, assumed = tau, False
        tau = _tau(residual[checked] ** 2 / (1.0 - leverage[checked]), statistical[checked])
        if abs(tau - before) < 1e-4:
            break
    calibration = Calibration() if assumed else _calibration(np.abs(pulls[checked]))
    return Model(cells, weight, residual, tau, covariance, calibration)


def _members(group: Ints, number: int, cells: Ints) -> list[Ints]:
    """Return the cells of each group, in their order."""
    order = cells[np.argsort(group[cells], kind="stable")]
    return np.split(order, np.searchsorted(group[order], np.arange(1, number)))


def _able(cells: Cells) -> Mask:
    able = (cells.n_jobs >= MIN_JOBS) & np.isfinite(cells.ln_k[cells.queue]) & np.isfinite(cells.ln_cost)
    return np.asarray(able, np.bool_)


def _tau(squares: Floats, statistical: Floats) -> float:
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        # the median, not the mean: a few wild cells must not widen all intervals
        above = np.median(squares / np.maximum(middle**2 + statistical, 1e-12)) > _MEDIAN_CHI2
        low, high = (middle, high) if above else (low, middle)
    return 0.5 * (low + high)


def _calibration(size: Floats) -> Calibration:
    widened = max(1.0, float(np.quantile(size, INTERVAL_LEVEL)) / HALF_WIDTH_90)
    return Calibration(len(size), float((size <= HALF_WIDTH_90).mean()), widened)


def _by_unit(weight: Floats, cells: Cells) -> Floats:
    """Return weights as a matrix of units by queues."""
    matrix = np.zeros((len(cells.keys), len(cells.queues)))
    matrix[cells.unit, cells.queue] = weight
    return matrix


def _inverse(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the covariance of ln k, levels eliminated, and the directions that nothing determines."""
    sums = matrix.sum(axis=1, keepdims=True)
    # levels eliminated (Schur complement): what a task says of k is how its queues differ
    information = np.diag(matrix.sum(axis=0)) - matrix.T @ (matrix / np.where(sums > 0, sums, 1.0))
    values, vectors = np.linalg.eigh(information)
    # the common scale of all queues is always free, and that of each set without a common task
    free = values <= 1e-10 * max(float(values[-1]), 1e-300)
    return (vectors * np.where(free, 0.0, 1.0 / np.where(free, 1.0, values))) @ vectors.T, vectors[:, free]


def _solved(weight: Floats, cells: Cells) -> tuple[Floats, Floats, Floats]:
    """Return the covariance of ln k, and per cell the residual and the variance of what the fit says."""
    matrix = _by_unit(weight, cells)
    covariance, _ = _inverse(matrix)
    total = matrix.sum(axis=1)
    total = np.where(total > 0, total, 1.0)
    # cells without a factor have weight 0; a NaN would spread all the same
    value = np.nan_to_num(cells.ln_cost + cells.ln_k[cells.queue])
    level = np.bincount(cells.unit, weight * value, len(cells.keys)) / total
    mean = matrix / total[:, None]
    spread = mean @ covariance
    own = np.einsum("tq,tq->t", spread, mean) + 1.0 / total
    unit, queue = cells.unit, cells.queue
    # variance of the level minus ln k of the cell, which share the errors of factors
    return covariance, value - level[unit], own[unit] + covariance[queue, queue] - 2.0 * spread[unit, queue]
