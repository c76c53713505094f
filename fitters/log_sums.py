"""The scatter of ln(CPU time) at given events, from sums of logarithms over jobs."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fitters.buckets import Floats
from fitters.columns import read_numbers
from fitters.job_sums import Rows, group_sums
from fitters.mixture_results import Evidence, nothing
from fitters.modes import Grouped, least_group, least_points, sigma_limit


@dataclass(frozen=True, slots=True)
class LogSums:
    """Columns of sums over the jobs of a row, n events and c CPU time in s.

    Attributes
    ----------
    ln_events, ln_cpu_s
        Sums of ln n and of ln c.
    ln_events_sq, ln_cpu_s_sq, ln_events_ln_cpu_s
        Sums of (ln n)^2, (ln c)^2 and ln n x ln c. NaN where unknown.
    """

    ln_events: object
    ln_cpu_s: object
    ln_events_sq: object
    ln_cpu_s_sq: object
    ln_events_ln_cpu_s: object


@dataclass(frozen=True, slots=True, eq=False)
class Logs:
    """Centred sums of squares of ln n and ln c inside each row, shape (n,); NaN where unknown."""

    xx: Floats
    xy: Floats
    yy: Floats

    @classmethod
    def read(cls, sums: LogSums, rows: Rows) -> "Logs":
        """Centre the sums of the rows that are used; raises `InputError` for columns that cannot be read."""
        n, given = rows.n_rows, {name: getattr(sums, name) for name in sums.__slots__}
        columns = [read_numbers(column, name, n)[rows.place] for name, column in given.items()]
        x, y, x_sq, y_sq, product = columns
        with np.errstate(all="ignore"):
            xx, yy = x_sq - x * x / rows.jobs, y_sq - y * y / rows.jobs
            xy = product - x * y / rows.jobs
            good = np.isfinite(xx + yy + xy) & (xx >= -1e-6 * x_sq) & (yy >= -1e-6 * y_sq)
            xx, yy = np.maximum(xx, 0.0), np.maximum(yy, 0.0)
            good &= xy * xy <= xx * yy * (1 + 1e-6) + 1e-9 * (x_sq * yy + xx * y_sq + 1e-9)
        return cls(*(np.where(good, column, nothing) for column in (xx, xy, yy)))

    def take(self, rows: NDArray[np.intp]) -> "Logs":
        """Some of the rows."""
        return Logs(self.xx[rows], self.xy[rows], self.yy[rows])

    def evidence(
        self, part: NDArray[np.intp], unit: NDArray[np.int32], jobs: Floats, n: int
    ) -> list[Evidence]:
        """Evidence per part 0 .. n-1 from the standard deviation at given events of each of its units.

        Mixed if the median over the jobs and the pooled one exceed 0.5, the latter also sqrt(0.16 + 3 /
        sqrt(N)), which N jobs of sigma 0.3 reach in fewer than 1 % of all tasks when every hundredth job is
        stuck and takes 3 to 30 times as long (found with toys).
        """
        known = np.isfinite(self.xx) & (jobs > 1)
        part, unit, jobs = part[known], unit[known], jobs[known]
        xx, xy, yy = self.xx[known], self.xy[known], self.yy[known]
        down = group_sums(part, xx, n)
        slope = np.divide(group_sums(part, xy, n), down, out=np.zeros(n), where=down > 1e-9)[part]
        squares = np.maximum(yy - 2.0 * slope * xy + slope * slope * xx, 0.0)
        keys, row = np.unique(np.stack([part, unit.astype(np.intp)]), axis=1, return_inverse=True)
        row, size = row.ravel(), keys.shape[1]
        number = group_sums(row, jobs, size)
        free = np.maximum(number - group_sums(row, np.ones(row.size), size), 1.0)
        variance = group_sums(row, squares, size) / free
        ptr = np.searchsorted(keys[0], np.arange(n + 1)).tolist()
        return [_evidence(variance[a:b], number[a:b]) for a, b in pairwise(ptr)]


def _evidence(variance: Floats, jobs: Floats) -> Evidence:
    tested = jobs >= least_group
    variance, jobs = variance[tested], jobs[tested]
    total = float(jobs.sum())
    if total < least_points:
        return Evidence(remark="too few jobs to tell")
    sigma = float(Grouped.of(np.zeros(jobs.size, np.intp), np.sqrt(variance), jobs).medians()[0])
    pooled = float(np.sqrt(np.sum(variance * jobs) / total))
    limit = float(np.sqrt(max(sigma_limit**2, 0.16 + 3.0 / np.sqrt(total))))
    if sigma > sigma_limit and pooled > limit:
        return Evidence(sigma=sigma, mixed=f"sigma {pooled:.2f}, half of the jobs in units above {sigma:.2f}")
    return Evidence(sigma=sigma)
