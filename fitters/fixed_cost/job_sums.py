"""Rows of jobs or of sums over jobs, cleaned, and the scatter inside each (task, unit)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.errors import InputError
from fitters.layout.arrays import Floats, group_sums
from fitters.layout.buckets import JOBS_LIMIT, VALUE_LIMIT
from fitters.layout.columns import factorise_pair, read_numbers

ROUND_OFF = 1e-10
"""A centred sum of squares below this share of the plain one is round-off: a spread of 1e-5 of the mean."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that can be used, in the order of the input.

    Attributes
    ----------
    task_names, unit_names : arrays of labels
        All that occurred, sorted.
    task, unit : int32 arrays, shape (n,)
        Positions in them.
    jobs, events, cpu_s : float64 arrays, shape (n,)
        Number of jobs and their sums of events and of CPU time (s).
    squares : three float64 arrays, shape (n,), or None
        Sums of events^2, CPU time^2, events x CPU time; NaN where unknown. None: not given.
    input_row : int64 array, shape (n,)
        Input row of each.
    n_rows : int
        Rows that came in: ``n_rows == n + sum(dropped.values())``.
    dropped : mapping reason -> rows
    """

    task_names: NDArray[Any]
    unit_names: NDArray[Any]
    task: NDArray[np.int32]
    unit: NDArray[np.int32]
    jobs: Floats
    events: Floats
    cpu_s: Floats
    squares: tuple[Floats, Floats, Floats] | None
    input_row: NDArray[np.int64]
    n_rows: int
    dropped: Mapping[str, int]

    @classmethod
    def read(
        cls,
        task: object,
        unit: object,
        jobs: object,
        events: object,
        cpu_s: object,
        squares: tuple[object, object, object] = (None, None, None),
    ) -> "Rows":
        """Read columns of equal length; without `jobs` each row is one job.

        A row is used or dropped under the first of these reasons that holds: ``task missing``, ``unit
        missing``, ``events not positive``, ``cpu_s not positive`` (missing values included), ``outside
        1e-100..1e100``, ``jobs not positive``.

        Raises
        ------
        InputError
            No rows, different lengths, text in a number, some but not all of the three `squares`.
        """
        tasks, units, n = factorise_pair(task, unit)
        columns = [
            np.ones(n) if jobs is None else read_numbers(jobs, "n_jobs", n),
            read_numbers(events, "events", n),
            read_numbers(cpu_s, "cpu_s", n),
        ]
        given = [column is not None for column in squares]
        if any(given) and not all(given):
            raise InputError("give all of events_sq, cpu_s_sq and events_cpu_s, or none of them")
        if all(given):
            names = ("events_sq", "cpu_s_sq", "events_cpu_s")
            columns += [read_numbers(c, name, n) for c, name in zip(squares, names, strict=True)]
        count, number, time = columns[:3]
        keep, dropped = np.ones(n, bool), {}
        for reason, failing in (
            ("task missing", tasks.codes < 0),
            ("unit missing", units.codes < 0),
            ("events not positive", ~(number > 0)),
            ("cpu_s not positive", ~(time > 0)),
            ("outside 1e-100..1e100", _outside(number) | _outside(time)),
            ("jobs not positive", ~((count > 0) & (count <= JOBS_LIMIT))),
        ):
            hit = failing & keep
            if hit.any():
                dropped[reason] = int(hit.sum())
                keep &= ~hit
        kept = [column[keep] for column in columns]
        return cls(
            task_names=tasks.names,
            unit_names=units.names,
            task=tasks.codes[keep],
            unit=units.codes[keep],
            jobs=kept[0],
            events=kept[1],
            cpu_s=kept[2],
            squares=(kept[3], kept[4], kept[5]) if all(given) else None,
            input_row=np.flatnonzero(keep),
            n_rows=n,
            dropped=MappingProxyType(dropped),
        )


def _outside(values: Floats) -> NDArray[np.bool_]:
    outside: NDArray[np.bool_] = (values < 1 / VALUE_LIMIT) | (values > VALUE_LIMIT)
    return outside


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """One row per (task, unit): sums over its jobs, and centred sums of squares.

    Attributes
    ----------
    task, unit : int32 arrays, shape (m,)
        Codes of the rows they were made from, sorted by task, then unit.
    jobs, events, cpu_s : float64 arrays, shape (m,)
    nn, nc, cc : float64 arrays, shape (m,)
        Sums of (n - mean n)^2, (n - mean n)(c - mean c) and (c - mean c)^2 over the jobs, n events and c CPU
        time (s). NaN where second moments are missing or contradict each other (Cauchy-Schwarz).
    row : int64 array
        For every input row of `Rows` the row here.
    """

    task: NDArray[np.int32]
    unit: NDArray[np.int32]
    jobs: Floats
    events: Floats
    cpu_s: Floats
    nn: Floats
    nc: Floats
    cc: Floats
    row: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows) -> "Scatter":
        """Merge the rows of each (task, unit) by sums; without second moments a row of one job has its own.

        >>> one = {"task": ["t"] * 3, "unit": ["A"] * 3, "jobs": None, "events": [1, 2, 3]}
        >>> scatter = Scatter.of(Rows.read(**one, cpu_s=[2.0, 4.0, 6.0]))
        >>> scatter.nn.tolist(), scatter.nc.tolist(), scatter.cc.tolist()
        ([2.0], [4.0], [8.0])
        """
        n_units = max(rows.unit_names.size, 1)
        key = rows.task.astype(np.int64) * n_units + rows.unit
        keys, row = np.unique(key, return_inverse=True)
        m = keys.size

        def total(column: Floats) -> Floats:
            return group_sums(row, column, m)

        jobs, events, cpu_s = total(rows.jobs), total(rows.events), total(rows.cpu_s)
        squares = rows.squares
        if squares is None:
            single = np.where(rows.jobs == 1, 1.0, np.nan)
            squares = (rows.events**2 * single, rows.cpu_s**2 * single, rows.events * rows.cpu_s * single)
        with np.errstate(all="ignore"):
            events_sq, cpu_sq, product = (total(column) for column in squares)
            nn = events_sq - events**2 / jobs
            cc = cpu_sq - cpu_s**2 / jobs
            nc = product - events * cpu_s / jobs
            nothing = nn <= ROUND_OFF * events_sq
            possible = (nn >= -1e-6 * events_sq) & (cc >= -1e-6 * cpu_sq)
            nn = np.where(nothing, 0.0, nn)
            cc = np.where(cc <= ROUND_OFF * cpu_sq, 0.0, cc)
            slack = 1e-6 * (nn * cc + ROUND_OFF * events_sq * cc)
            possible &= nothing | (nc**2 <= nn * cc + slack)
            possible &= np.isfinite(events_sq) & np.isfinite(cpu_sq) & np.isfinite(product)
            nn, cc = np.where(possible, nn, np.nan), np.where(possible, cc, np.nan)
            nc = np.where(possible, np.where(nothing, 0.0, nc), np.nan)
        task = (keys // n_units).astype(np.int32)
        return cls(task, (keys % n_units).astype(np.int32), jobs, events, cpu_s, nn, nc, cc, row)

    def relative_variance(self, rho: Floats) -> Floats:
        """Relative variance of one job's CPU time about L (n + rho), shape (m,).

        sum (c - L (n + rho))^2 / ((jobs - 1) mean c^2) with L = sum c / sum (n + rho); NaN for one job or
        without second moments. Divided by the jobs it is that of the mean, by the delta method (Cochran,
        Sampling Techniques, 3rd ed. 1977, ch. 6).
        """
        level = self.cpu_s / (self.events + rho * self.jobs)
        several = self.jobs > 1
        with np.errstate(all="ignore"):
            squares = np.maximum(self.cc - 2 * level * self.nc + level**2 * self.nn, 0.0)
            mean = self.cpu_s / self.jobs
            return np.where(several, squares / mean**2 / np.where(several, self.jobs - 1, 1.0), np.nan)
