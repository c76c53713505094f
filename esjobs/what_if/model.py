"""Forecast of the CPU time of a task at a queue, from the same task elsewhere; pure.

The model of a cell (task unit t, queue q) is ln a_tq = A_t - ln k_q + e, with var e = tau² + s²/n: s² the
relative variance of a job, tau what jobs of one task in one queue share beside the speed of the queue.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from esjobs.core.words import HALF_WIDTH_90
from esjobs.what_if.cells import MIN_JOBS, UNKNOWN_COST, Cells, FloatArray, IntArray

LEAST_COVERAGE = 0.85
"""Share of 90 % intervals that must hold in the run itself; below it all intervals are widened."""

ASSUMED_TAU = 0.10
LARGEST_LENGTH_RATIO = 1.2
"""Ratio of events per job beyond which an unknown start-up time forbids a forecast."""

_MEDIAN_CHI2 = 0.4549  # median of chi² with one degree of freedom
_LEAST_CHECKED = 20  # cells below which tau and coverage cannot be estimated
_STRAY = 4.0
_LARGEST_LEVERAGE = 0.95
_PIECE = 1024

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Calibration:
    """Leave-one-out check of the run: shares of 68 and 90 % intervals that held, in ``n_cells`` cells.

    ``widened``: factor on all standard errors; 1 if enough intervals held. Shares are None with few cells.
    """

    n_cells: int
    coverage_68: float | None
    coverage_90: float | None
    widened: float


@dataclass(frozen=True)
class Forecast:
    """ln of the CPU seconds of a mean job, with its standard error, or the reason why there is none.

    ``task_part``: part of the variance that is of this task alone. ``weights``: of queues in the level of the
    task, by number.
    """

    ln_cpu_s: float = float("nan")
    error: float = float("nan")
    task_part: float = 0.0
    job_var: float = 0.0
    n_queues: int = 0
    direction: FloatArray | None = None
    reason: str | None = None

    def interval(self, half_width: float = HALF_WIDTH_90, n_jobs: float | None = None) -> tuple[float, float]:
        """Bounds of the CPU seconds of a mean job; ``n_jobs``: of the mean of so many jobs."""
        error = self.error if n_jobs is None else float(np.sqrt(self.error**2 + self.job_var / n_jobs))
        spread = half_width * error
        return float(np.exp(self.ln_cpu_s - spread)), float(np.exp(self.ln_cpu_s + spread))


@dataclass(frozen=True)
class Model:
    """Cells with their weights, the scatter ``tau`` between task and queue, and the covariance of ln k.

    ``weight``: 0 for cells that tell nothing (few jobs, no factor, mixed, stray). ``residual``: about the
    level of the task. ``tau_assumed``: true with too few cells.
    """

    cells: Cells
    weight: FloatArray
    residual: FloatArray
    tau: float
    tau_assumed: bool
    covariance: FloatArray
    calibration: Calibration

    def forecast(
        self, unit: int, queue: int, events_per_job: float, *, without_task: bool = True
    ) -> Forecast:
        """Forecast the CPU time of a mean job of a unit at a queue, from all other queues that ran it.

        ``without_task``: with factors from which the task is taken out by one linear step of their fit. Cost:
        an eigenvalue problem of the number of queues, unless false.
        """
        cells, about = self.cells, self.cells.units[unit]
        reason = self._obstacle(unit, queue)
        if reason is not None:
            return Forecast(reason=reason)
        used = self._others(unit, queue)
        if not used.size:
            return Forecast(reason="no other comparable queue ran 5 jobs of it")
        if about.decision == UNKNOWN_COST and self._lengths_differ(used, events_per_job):
            return Forecast(reason=f"{UNKNOWN_COST}, and jobs elsewhere have other numbers of events")
        weight = 1.0 / (self.tau**2 + cells.job_var[used] / cells.n_jobs[used])
        weight /= weight.sum()
        direction: FloatArray = np.bincount(cells.queue[used], weight, len(cells.queues)).astype(float)
        direction[queue] -= 1.0
        ln_k, covariance, null = cells.ln_k, self.covariance, 0.0
        if without_task:
            shift, covariance, null = self._without(unit, direction)
            ln_k = ln_k + shift
        if null > 1e-6:
            return Forecast(reason="without this task nothing links the queue to those that ran it")
        level = float(weight @ (cells.ln_cost[used] + ln_k[cells.queue[used]]))
        rho = (about.rho or 0.0) * cells.cost_factor[queue] if cells.rho[used].any() else 0.0
        scatter = float(weight**2 @ (cells.job_var[used] / cells.n_jobs[used]))
        own = self.tau**2 * (1.0 + float((weight**2).sum())) + scatter
        own += self._cost_variance(unit, used, weight, events_per_job, rho)
        common = float(direction @ covariance @ direction)
        wide = self.calibration.widened
        return Forecast(
            level - ln_k[queue] + float(np.log(events_per_job + rho)),
            wide * float(np.sqrt(max(common, 0.0) + own)),
            wide**2 * own,
            self._job_variance(unit, queue),
            int(used.size),
            direction,
        )

    def common_variance(self, directions: FloatArray, shares: FloatArray) -> float:
        """Variance that forecasts of several tasks share by the factors and by the type of the tasks."""
        mean = shares @ directions
        of_type = self.cells.sigma_type**2
        return self.calibration.widened**2 * (float(mean @ self.covariance @ mean) + of_type)

    def _obstacle(self, unit: int, queue: int) -> str | None:
        about = self.cells.units[unit]
        if not np.isfinite(self.cells.ln_k[queue]):
            return "the queue has no speed factor comparable with most others"
        return (about.reason or "it mixes kinds of work") if about.mixed else None

    def _others(self, unit: int, queue: int) -> IntArray:
        cells = self.cells
        able = (cells.unit == unit) & (cells.queue != queue) & _able(cells)
        # of a unit with an unknown start-up time the fit used no cell
        trusted = able & (self.weight > 0)
        return np.flatnonzero(trusted if trusted.any() else able)

    def _lengths_differ(self, used: IntArray, events_per_job: float) -> bool:
        lengths = self.cells.sums["events"][used] / self.cells.n_jobs[used]
        ratio = np.abs(np.log(lengths / events_per_job))
        return bool(ratio.max() > np.log(LARGEST_LENGTH_RATIO))

    def _job_variance(self, unit: int, queue: int) -> float:
        cells = self.cells
        for mine in (cells.queue == queue, cells.unit == unit):
            if mine.any():
                return float(np.average(cells.job_var[mine], weights=cells.n_jobs[mine]))
        return float(np.average(cells.job_var, weights=cells.n_jobs))

    def _cost_variance(
        self, unit: int, used: IntArray, weight: FloatArray, events: float, rho: float
    ) -> float:
        """Variance from the error of the start-up time, where jobs elsewhere have other lengths."""
        about, cells = self.cells.units[unit], self.cells
        if not rho or not about.rho:
            return 0.0
        elsewhere = cells.rho[used] / (cells.sums["events"][used] / cells.n_jobs[used] + cells.rho[used])
        change = rho / (events + rho) - float(weight @ elsewhere)
        return float((change * about.rho_err / about.rho) ** 2)

    def _without(self, unit: int, direction: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Shift of ln k, covariance, and part of the direction that nothing determines, without a unit."""
        cells = self.cells
        rest = _laplacian(np.where(cells.unit == unit, 0.0, self.weight), cells)
        covariance, null = _inverse(rest)
        mine = (cells.unit == unit) & (self.weight > 0)
        pull = np.bincount(
            cells.queue[mine], self.weight[mine] * self.residual[mine], minlength=len(cells.queues)
        )
        return covariance @ pull, covariance, float(np.linalg.norm(null.T @ direction))


def fit_model(cells: Cells) -> Model:
    """Estimate tau and the covariance of ln k from the cells of a run, and check all of it by leave-one-out.

    tau is such that the median of r²/((1 - h)(tau² + s²/n)) is that of chi² with one degree of freedom. Cells
    beyond four errors do not enter the levels; they count in the check. Cost: some eigenvalue problems of the
    number of queues.
    """
    clear = np.zeros(len(cells.keys), np.bool_)
    clear[[number for number, unit in cells.units.items() if unit.clear]] = True
    usable = _able(cells) & clear[cells.unit]
    alone = np.bincount(cells.unit[usable], minlength=len(cells.keys)) < 2
    usable &= ~alone[cells.unit]
    stray = np.zeros(len(cells.unit), np.bool_)
    statistical = cells.job_var / np.maximum(cells.n_jobs, 1.0)
    tau, assumed = ASSUMED_TAU, True
    for step in range(8):
        weight = np.where(usable & ~stray, 1.0 / (tau**2 + statistical), 0.0)
        covariance, residual, fit_var = _solved(weight, cells)
        leverage = weight * fit_var
        checked = usable & (leverage <= _LARGEST_LEVERAGE)
        if checked.sum() < _LEAST_CHECKED:
            break
        before, assumed = tau, False
        tau = _tau(residual[checked] ** 2 / (1.0 - leverage[checked]), statistical[checked])
        stray = usable & (np.abs(_pulls(residual, leverage, fit_var, tau**2 + statistical)) > _STRAY)
        if step > 1 and abs(tau - before) < 1e-4:
            break
    pulls = _pulls(residual, leverage, fit_var, tau**2 + statistical)[checked]
    return Model(
        cells, weight, residual, tau, assumed, covariance, _calibration(np.empty(0) if assumed else pulls)
    )


def _able(cells: Cells) -> Mask:
    able = (cells.n_jobs >= MIN_JOBS) & np.isfinite(cells.ln_k[cells.queue]) & np.isfinite(cells.ln_cost)
    return np.asarray(able, np.bool_)


def _pulls(residual: FloatArray, leverage: FloatArray, fit_var: FloatArray, own: FloatArray) -> FloatArray:
    """Return errors of forecasts of each cell from all others, in standard errors: r/(1-h), (1/w)/(1-h)."""
    kept = np.sqrt(own * np.maximum(1.0 - leverage, 1e-9))
    left_out = np.sqrt(own + fit_var)
    return np.asarray(residual / np.where(leverage > 0, kept, left_out))


def _tau(squares: FloatArray, statistical: FloatArray) -> float:
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        above = np.median(squares / np.maximum(middle**2 + statistical, 1e-12)) > _MEDIAN_CHI2
        low, high = (middle, high) if above else (low, middle)
    return 0.5 * (low + high)


def _calibration(pulls: FloatArray) -> Calibration:
    if not pulls.size:
        return Calibration(0, None, None, 1.0)
    size = np.abs(pulls)
    within = float((size <= HALF_WIDTH_90).mean())
    widened = 1.0
    if within < LEAST_COVERAGE:
        widened = float(np.quantile(size, 0.90)) / HALF_WIDTH_90
    return Calibration(len(size), float((size <= 1.0).mean()), within, widened)


def _pieces(weight: FloatArray, cells: Cells) -> Iterator[tuple[int, FloatArray]]:
    """Yield weights as matrices of units by queues, some units at a time."""
    for first in range(0, len(cells.keys), _PIECE):
        mine = (cells.unit >= first) & (cells.unit < first + _PIECE) & (weight > 0)
        matrix = np.zeros((min(_PIECE, len(cells.keys) - first), len(cells.queues)))
        matrix[cells.unit[mine] - first, cells.queue[mine]] = weight[mine]
        yield first, matrix


def _laplacian(weight: FloatArray, cells: Cells) -> FloatArray:
    """Return the inverse covariance of ln k with the levels of the units eliminated."""
    total = np.zeros((len(cells.queues), len(cells.queues)))
    for _, matrix in _pieces(weight, cells):
        sums = matrix.sum(axis=1, keepdims=True)
        total += np.diag(matrix.sum(axis=0)) - matrix.T @ (matrix / np.where(sums > 0, sums, 1.0))
    return total


def _inverse(laplacian: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the pseudo-inverse, and the directions that nothing determines (one per component)."""
    values, vectors = np.linalg.eigh(laplacian)
    free = values <= 1e-10 * max(float(values[-1]), 1e-300)
    scale = np.where(free, 0.0, 1.0 / np.where(free, 1.0, values))
    return (vectors * scale) @ vectors.T, vectors[:, free]


def _solved(weight: FloatArray, cells: Cells) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the covariance of ln k, and per cell the residual and the variance of what the fit says."""
    covariance, _ = _inverse(_laplacian(weight, cells))
    total = np.bincount(cells.unit, weight, len(cells.keys))
    safe = np.where(total > 0, total, 1.0)
    value = np.nan_to_num(cells.ln_cost + cells.ln_k[cells.queue])
    level = np.bincount(cells.unit, weight * value, len(cells.keys)) / safe
    fit_var = np.full(len(cells.unit), np.inf)
    for first, matrix in _pieces(weight, cells):
        mine = np.flatnonzero((cells.unit >= first) & (cells.unit < first + _PIECE))
        unit, queue = cells.unit[mine] - first, cells.queue[mine]
        mean = matrix / safe[first : first + len(matrix), None]
        spread = mean @ covariance
        own = np.einsum("tq,tq->t", spread, mean)
        fit_var[mine] = (
            1.0 / safe[cells.unit[mine]] + covariance[queue, queue] - 2.0 * spread[unit, queue] + own[unit]
        )
    return covariance, value - level[cells.unit], fit_var
