"""The fixed cost of jobs from single jobs: gamma quasi-likelihood, trimmed, with an error by resampling.

A job of n events takes c = L_i (n + rho) seconds on unit i. With q = m / (m + rho), m the mean events of a
job in the task, that is c = M_i (1 + q (n / m - 1)): q = 1 is proportional, q = 0 all fixed, and the search
meets neither infinity nor a boundary.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fitters.layout.arrays import Floats, group_sums

TRIM_LIMIT = 0.5
"""Jobs whose ln residual is further off are left out: another kind of work, a stuck job, a lost file."""

SAMPLES = 100
"""Bootstrap samples: the error of the error is 7 %."""

ROUNDS = 40


@dataclass(frozen=True, slots=True)
class JobCost:
    """One task: q and the slope of ln(c / n) on ln(n), with errors, and how many jobs were used."""

    q: float
    q_err: float
    slope: float
    slope_err: float
    mean_events: float
    n_used: int


@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """Jobs of one task: unit codes 0..n_units-1, x = n / m - 1, CPU time over its unit's mean, ln n, ln c."""

    unit: NDArray[np.intp]
    n_units: int
    x: Floats
    time: Floats
    ln_events: Floats
    ln_time: Floats
    mean_events: float

    @classmethod
    def of(cls, unit: NDArray[np.int32], events: Floats, cpu_s: Floats) -> "Jobs":
        """Scale by means, so that nothing overflows."""
        names, code = np.unique(unit, return_inverse=True)
        peak = float(events.max())
        mean = peak * float(np.mean(events / peak))
        top = np.full(names.size, 0.0)
        np.maximum.at(top, code, cpu_s)
        share = cpu_s / top[code]
        time = share / (np.bincount(code, share) / np.bincount(code))[code]
        return cls(code, names.size, events / mean - 1.0, time, np.log(events), np.log(cpu_s), mean)

    def sums(self, column: Floats) -> Floats:
        """Sum a column over the jobs of each unit."""
        return group_sums(self.unit, column, self.n_units)

    def bounds(self) -> tuple[float, float]:
        """Where 1 + q x stays positive for every job, cut to what can be meant."""
        low, high = float(self.x.min()), float(self.x.max())
        return max(-0.999 / high if high > 0 else -1.0, -1.0), min(-0.999 / low if low < 0 else 3.0, 3.0)

    def derivatives(self, q: float, inside: Floats) -> tuple[float, float]:
        """First and second derivative of the profiled quasi-deviance by q.

        With the levels at their best, M_i = mean of c / (1 + q x), it is
        sum N_i ln M_i + sum ln(1 + q x) + constant, half of the gamma deviance (McCullagh & Nelder,
        Generalized Linear Models, 2nd ed. 1989, ch. 8). `inside` is 1 for jobs that count, 0 for others.
        """
        ratio = self.x / (1.0 + q * self.x)
        z = inside * self.time / (1.0 + q * self.x)
        first, second = z * ratio, z * ratio * ratio
        number, total = self.sums(inside), self.sums(z)
        share = number / np.where(total > 0, total, 1.0)
        total = np.where(total > 0, total, 1.0)
        mean, square = self.sums(first), self.sums(second)
        gradient = float(np.sum(inside * ratio) - np.sum(share * mean))
        curvature = float(np.sum(share * (2.0 * square - mean**2 / total)) - np.sum(inside * ratio * ratio))
        return gradient, curvature

    def cost(self, q: float, inside: Floats) -> float:
        """Half of the profiled quasi-deviance."""
        number, total = self.sums(inside), self.sums(inside * self.time / (1.0 + q * self.x))
        filled = total > 0
        levels = float(np.sum(number[filled] * np.log(total[filled] / number[filled])))
        return levels + float(np.sum(inside * np.log1p(q * self.x)))

    def minimum(self, inside: Floats, start: float | None) -> float:
        """The best q: by Newton's method from `start`, otherwise in the best cell of a grid."""
        low, high = self.bounds()
        if start is not None:
            q = min(max(start, low), high)
            for _ in range(12):
                gradient, curvature = self.derivatives(q, inside)
                if curvature <= 0:
                    break
                step = -gradient / curvature
                q = min(max(q + step, low), high)
                if abs(step) < 1e-7:
                    return q
        grid = np.linspace(low, high, 41)
        best = int(np.argmin([self.cost(q, inside) for q in grid.tolist()]))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 40)])
        for _ in range(50):
            middle = 0.5 * (low + high)
            if self.derivatives(middle, inside)[0] > 0:
                high = middle
            else:
                low = middle
        return 0.5 * (low + high)

    def residuals(self, q: float, inside: Floats) -> Floats:
        """Logarithm of c / (1 + q x) against its mean over those of the unit that count."""
        z = np.log(self.time) - np.log1p(q * self.x)
        number = self.sums(inside)
        return z - (self.sums(inside * z) / np.where(number > 0, number, 1.0))[self.unit]

    def medians(self, q: float, taken: Floats) -> Floats:
        """The same residuals against the median of the jobs taken, each as often as `taken` says."""
        z = np.log(self.time) - np.log1p(q * self.x)
        order = np.lexsort((z, self.unit))
        order = np.repeat(order, taken[order].astype(np.intp))
        number = np.bincount(self.unit[order], minlength=self.n_units)
        first, last = np.cumsum(number) - number, order.size - 1
        middle = z[order[np.minimum(first + np.maximum(number - 1, 0) // 2, last)]]
        middle = 0.5 * (middle + z[order[np.minimum(first + number // 2, last)]])
        return np.asarray(z - middle[self.unit])

    def trimmed(self, taken: Floats, start: float | None) -> tuple[float, Floats]:
        """Minimise and trim in turns until the jobs that count stay the same; return q and who counts."""
        q = self.minimum(taken, start)
        inside = taken * (np.abs(self.medians(q, taken)) <= TRIM_LIMIT)
        for _ in range(ROUNDS):
            q = self.minimum(inside, q)
            again = taken * (np.abs(self.residuals(q, inside)) <= TRIM_LIMIT)
            if np.array_equal(again, inside):
                break
            inside = again
        return q, inside

    def slope(self, inside: Floats) -> float:
        """Least-squares slope of ln(c / n) on ln(n), both centred on their unit; NaN without spread of n."""
        number = np.maximum(self.sums(inside), 1.0)
        u, y = self.ln_events, self.ln_time - self.ln_events
        u = u - (self.sums(inside * u) / number)[self.unit]
        square = float(np.sum(inside * u * u))
        return float(np.sum(inside * u * y)) / square if square > 1e-10 * self.x.size else float("nan")


def job_cost(unit: NDArray[np.int32], events: Floats, cpu_s: Floats, rng: np.random.Generator) -> JobCost:
    """Estimate the fixed cost of one task from its jobs, shape (n,) each.

    The errors are the scatter over 100 bootstrap samples (Efron, Ann. Statist. 7 (1979) 1): the jobs of each
    unit are drawn with replacement, and everything is done again, the trimming too, whose edge moves with q.
    O(n log n) per sample.
    """
    jobs = Jobs.of(unit, events, cpu_s)
    n = jobs.x.size
    everyone = np.ones(n)
    nothing = float("nan")
    if not np.isfinite(jobs.slope(everyone)):
        return JobCost(nothing, nothing, nothing, nothing, jobs.mean_events, n)
    plain = jobs.minimum(everyone, None)
    q, inside = jobs.trimmed(everyone, plain)
    order = np.argsort(jobs.unit, kind="stable")
    number = np.bincount(jobs.unit)
    first, size = (np.cumsum(number) - number)[jobs.unit], number[jobs.unit]
    refits = []
    for _ in range(SAMPLES):
        drawn = order[first + (rng.random(n) * size).astype(np.intp)]
        taken = np.bincount(drawn, minlength=n).astype(np.float64)
        again, part = jobs.trimmed(taken, plain)
        refits.append((again, jobs.slope(part)))
    error = np.nanstd(np.array(refits), axis=0, ddof=1)
    slope, used = jobs.slope(inside), int(inside.sum())
    return JobCost(q, float(error[0]), slope, float(error[1]), jobs.mean_events, used)
