"""Cleaned rows of jobs or of sums over jobs, and the scatter inside each (task, unit)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.errors import InputError
from fitters.layout.arrays import Codes, Floats, Ints, Mask, group_sums, kept_rows
from fitters.layout.buckets import JOBS_LIMIT, VALUE_LIMIT
from fitters.layout.columns import factorise_pair, read_numbers

# A centred sum of squares below this share of the plain one is round-off: a spread of 1e-5 of the mean
ROUND_OFF = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Usable rows, in the order of the input."""

    # task_names, unit_names: All that occurred, sorted
    task_names: NDArray[Any]
    unit_names: NDArray[Any]
    # task, unit: Positions in them; shape (n,)
    task: Codes
    unit: Codes
    # jobs, events, cpu_s: Number of jobs and their sums of events and of CPU time (s); shape (n,)
    jobs: Floats
    events: Floats
    cpu_s: Floats
    # shape (n,), or None: Sums of events^2, CPU time^2, events x CPU time; NaN where unknown. None: not
    # given.
    squares: tuple[Floats, Floats, Floats] | None
    input_row: Ints  # Input row of each; shape (n,)
    n_rows: int  # Rows that came in: ``n_rows == n + sum(dropped.values())``
    dropped: Mapping[str, int]  # Rows by reason

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

        A row is dropped for the first reason that holds. Raises :class:`InputError`: no rows, different
        lengths, text in a number, some but not all `squares`.
        """
        tasks, units, n = factorise_pair(task, unit)
        columns = [
            np.ones(n) if jobs is None else read_numbers(jobs, "n_jobs", n),
            read_numbers(events, "events", n),
            read_numbers(cpu_s, "cpu_s", n),
        ]
        supplied = [column is not None for column in squares]
        if any(supplied) and not all(supplied):
            raise InputError("specify all of events_sq, cpu_s_sq and events_cpu_s, or none")
        if all(supplied):
            names = ("events_sq", "cpu_s_sq", "events_cpu_s")
            columns += [read_numbers(c, name, n) for c, name in zip(squares, names, strict=True)]
        count, number, time = columns[:3]
        reasons = (
            ("task missing", tasks.codes < 0),
            ("unit missing", units.codes < 0),
            ("events not positive", ~(number > 0)),
            ("cpu_s not positive", ~(time > 0)),
            ("outside 1e-100..1e100", _outside(number) | _outside(time)),
            ("jobs not positive", ~((count > 0) & (count <= JOBS_LIMIT))),
        )
        keep, dropped = kept_rows(n, reasons)
        kept = [column[keep] for column in columns]
        return cls(
            task_names=tasks.names,
            unit_names=units.names,
            task=tasks.codes[keep],
            unit=units.codes[keep],
            jobs=kept[0],
            events=kept[1],
            cpu_s=kept[2],
            squares=(kept[3], kept[4], kept[5]) if all(supplied) else None,
            input_row=np.flatnonzero(keep),
            n_rows=n,
            dropped=MappingProxyType(dropped),
        )


def _outside(values: Floats) -> Mask:
    return (values < 1 / VALUE_LIMIT) | (values > VALUE_LIMIT)


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """One row per (task, unit): sums over its jobs, and centred sums of squares."""

    # task, unit: Codes of the rows they were made from, sorted by task, then unit; shape (m,)
    task: Codes
    unit: Codes
    # jobs, events, cpu_s: shape (m,)
    jobs: Floats
    events: Floats
    cpu_s: Floats
    # nn, nc, cc: shape (m,): Sums of (n - mean n)^2, (n - mean n)(c - mean c) and (c - mean c)^2 over the
    # jobs, n events and c CPU time (s). NaN where second moments are missing or contradict each other
    # (Cauchy-Schwarz).
    nn: Floats
    nc: Floats
    cc: Floats
    row: Ints  # For every input row of `Rows` the row here

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
            # differences of large sums: what is left of equal values is round-off, and may be negative
            nn = events_sq - events**2 / jobs
            cc = cpu_sq - cpu_s**2 / jobs
            nc = product - events * cpu_s / jobs
            nothing = nn <= ROUND_OFF * events_sq
            possible = (nn >= -1e-6 * events_sq) & (cc >= -1e-6 * cpu_sq)
            nn = np.where(nothing, 0.0, nn)
            cc = np.where(cc <= ROUND_OFF * cpu_sq, 0.0, cc)
            slack = 1e-6 * (nn * cc + ROUND_OFF * events_sq * cc)
            # Cauchy and Schwarz: sums that break it were not taken over the same jobs
            possible &= nothing | (nc**2 <= nn * cc + slack)
            possible &= np.isfinite(events_sq) & np.isfinite(cpu_sq) & np.isfinite(product)
            nn, cc = np.where(possible, nn, np.nan), np.where(possible, cc, np.nan)
            nc = np.where(possible, np.where(nothing, 0.0, nc), np.nan)
        task = (keys // n_units).astype(np.int32)
        return cls(task, (keys % n_units).astype(np.int32), jobs, events, cpu_s, nn, nc, cc, row)

    def relative_variance(self, rho: Floats) -> Floats:
        """Return the relative variance of one job's CPU time about L (n + rho), shape (m,).

        NaN for one job or without second moments; divided by the jobs it is that of the mean (delta method:
        Cochran, Sampling Techniques, 3rd ed. 1977, ch. 6).
        """
        level = self.cpu_s / (self.events + rho * self.jobs)
        several = self.jobs > 1
        with np.errstate(all="ignore"):
            squares = np.maximum(self.cc - 2 * level * self.nc + level**2 * self.nn, 0.0)
            mean = self.cpu_s / self.jobs
            return np.where(several, squares / mean**2 / np.where(several, self.jobs - 1, 1.0), np.nan)
