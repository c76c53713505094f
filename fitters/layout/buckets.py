"""Cleaned and merged bucket means in the layout that the fits read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.errors import InputError
from fitters.layout.arrays import Codes, Floats, Ints, Mask
from fitters.layout.columns import Labels, factorise_pair, read_numbers
from fitters.layout.kernels import count, gather, sort_rows

# Values (and sums) outside 1/limit .. limit are no times per event, and their squares must stay finite.
VALUE_LIMIT = 1e100
SPREAD_LIMIT = 1e12  # A value this factor away from its task's median is no measurement of the same work
JOBS_LIMIT = 1e15


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """One mean per (task, unit), cleaned, merged and ordered by task; made by `Buckets.from_columns`."""

    # shape (n_tasks,): Tasks that have at least one bucket left: sorted, those of one input row after the
    # others
    task_names: NDArray[Any]
    # shape (n_units,): Every unit that occurred in the input, also those whose rows were all dropped, sorted
    unit_names: NDArray[Any]
    # shape (n_tasks + 1,): Buckets of task t are ``ptr[t]:ptr[t + 1]``; inside a task they are sorted by
    # unit
    ptr: Ints
    unit: Codes  # Position in `unit_names`; shape (n_buckets,)
    value: Floats  # CPU time per event, in the unit of the input; shape (n_buckets,)
    # jobs, rel_var: shape (n_buckets,), or None: Number of jobs; variance of the mean divided by the mean
    # squared (NaN: unknown). None: not given.
    jobs: Floats | None
    rel_var: Floats | None
    # Input rows merged into each bucket; None if nothing was merged; shape (n_buckets,), or None
    rows: Codes | None
    n_rows: int  # Rows that came in. ``n_rows == used rows + sum(dropped.values())``.
    dropped: Mapping[str, int] = field(default_factory=dict)  # Rows by reason
    # Reason why a unit has no bucket at all, by position in `unit_names`
    unit_reasons: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def from_columns(
        cls,
        task: object,
        unit: object,
        value: object = None,
        *,
        cpu_s: object = None,
        events: object = None,
        jobs: object = None,
        rel_var: object = None,
    ) -> "Buckets":
        """Clean and merge columns of equal length, one row per measurement.

        ``task``, ``unit``: labels in a list, NumPy array, pandas or Arrow column (categorical ones are not
        expanded). ``value``: CPU time per event; or ``cpu_s`` and ``events``, sums whose ratio is the value.
        ``jobs``: number of jobs. ``rel_var``: (standard error / value)^2, NaN if unknown.

        A row is used or dropped for the first reason that holds, see `_reasons`; after merging also for
        ``value 1e12 times off its task``. Rows of one (task, unit) are merged: sums if given, else the mean
        weighted with jobs. The merged rel_var is that of a weighted sum of independent rows, sum(m^2 rel_var)
        / sum(m)^2 with m = cpu_s, or jobs x value; an unknown one beside known ones takes their mean per job,
        divided by its jobs. Linear in the rows and a sort inside each task; about 12 bytes per row are kept,
        8 more for each of jobs and rel_var.

        Raises :class:`InputError`: no rows, different lengths, text in a number, neither value nor both sums.

        >>> sums = {"cpu_s": [6.0, 8.0, 2.0], "events": [3, 2, 3]}
        >>> buckets = Buckets.from_columns(["t", "t", "t"], ["B", "A", "A"], **sums)
        >>> buckets.unit_names.tolist(), buckets.value.tolist()
        (['A', 'B'], [2.0, 2.0])
        """
        tasks, units, n = factorise_pair(task, unit)
        raw = _Raw.read(value, cpu_s, events, jobs, rel_var, n)
        keep, dropped = _clean(tasks, units, raw)
        sizes, shared_first = _shared_first(tasks, keep)
        order, unit_codes, ptr, repeated = sort_rows(tasks.codes, units.codes, sizes, keep, shared_first)
        task_names = tasks.names if shared_first is None else tasks.names[shared_first]
        unit_names = units.names
        del tasks, units, keep, sizes  # bytes a row at the peak are what large fits run out of
        merged = _merge(raw, order, ptr, unit_codes, repeated)
        del raw, order, ptr, unit_codes
        buckets = _without_impossible(merged, dropped)
        used = np.flatnonzero(np.diff(buckets["ptr"]))
        return cls(
            task_names=task_names[used],
            unit_names=unit_names,
            ptr=np.append(buckets["ptr"][used], buckets["unit"].size),
            unit=buckets["unit"],
            value=buckets["value"],
            jobs=buckets["jobs"],
            rel_var=buckets["rel_var"],
            rows=buckets["rows"],
            n_rows=n,
            dropped=MappingProxyType(dropped.rows),
            unit_reasons=MappingProxyType(dropped.units_without(buckets["unit"], unit_names.size)),
        )

    def keep(self, chosen: Mask) -> "Buckets":
        """Return the chosen buckets and count the rows of the others; units keep their positions.

        >>> buckets = Buckets.from_columns(["t", "t", "u"], ["A", "B", "A"], [1.0, 2.0, 3.0])
        >>> fewer = buckets.keep(np.array([True, False, True]))
        >>> fewer.value.tolist(), dict(fewer.dropped), dict(fewer.unit_reasons)
        ([1.0, 3.0], {'rejected as outlier': 1}, {1: 'rejected as outlier'})
        """
        gone = ~chosen
        if not gone.any():
            return self
        ends = np.concatenate([[0], np.cumsum(chosen)])[self.ptr]
        used = np.flatnonzero(np.diff(ends))
        unit = self.unit[chosen]
        lost = np.setdiff1d(np.unique(self.unit[gone]), unit)
        reason = "rejected as outlier"
        dropped = int(gone.sum() if self.rows is None else self.rows[gone].sum())
        return Buckets(
            task_names=self.task_names[used],
            unit_names=self.unit_names,
            ptr=np.append(ends[used], unit.size).astype(np.int64),
            unit=unit,
            value=self.value[chosen],
            jobs=None if self.jobs is None else self.jobs[chosen],
            rel_var=None if self.rel_var is None else self.rel_var[chosen],
            rows=None if self.rows is None else self.rows[chosen],
            n_rows=self.n_rows,
            dropped=MappingProxyType({**self.dropped, reason: self.dropped.get(reason, 0) + dropped}),
            unit_reasons=MappingProxyType({**self.unit_reasons, **dict.fromkeys(lost.tolist(), reason)}),
        )

    @property
    def n_tasks(self) -> int:
        """Number of tasks with a bucket."""
        return int(self.task_names.size)

    @property
    def n_units(self) -> int:
        """Number of units, with or without a bucket."""
        return int(self.unit_names.size)

    @property
    def n_buckets(self) -> int:
        """Number of (task, unit) pairs."""
        return int(self.value.size)


@dataclass(frozen=True, slots=True, eq=False)
class _Raw:
    values: Floats
    sums: tuple[Floats, Floats] | None
    jobs: Floats | None
    rel_var: Floats | None

    @classmethod
    def read(
        cls, value: object, cpu_s: object, events: object, jobs: object, rel_var: object, n: int
    ) -> "_Raw":
        """Check and convert the columns; the value is given, or CPU seconds over events."""
        sums = None
        if value is not None and cpu_s is None and events is None:
            values = read_numbers(value, "value", n)
        elif value is None and cpu_s is not None and events is not None:
            sums = read_numbers(cpu_s, "cpu_s", n), read_numbers(events, "events", n)
            with np.errstate(all="ignore"):
                values = sums[0] / sums[1]
        else:
            raise InputError("specify either value, or both cpu_s and events")
        counts = None if jobs is None else read_numbers(jobs, "jobs", n)
        return cls(values, sums, counts, None if rel_var is None else read_numbers(rel_var, "rel_var", n))


class _Dropped:
    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.first_reason: dict[int, str] = {}

    def count(self, reason: str, n_rows: int, units: Codes) -> None:
        self.rows[reason] = n_rows
        for unit in np.unique(units).tolist():
            self.first_reason.setdefault(unit, reason)

    def units_without(self, unit: Codes, n_units: int) -> dict[int, str]:
        if not self.rows:
            return {}
        return {lost: self.first_reason[lost] for lost in np.flatnonzero(count(unit, n_units) == 0).tolist()}


def _clean(tasks: Labels, units: Labels, raw: _Raw) -> tuple[Mask | None, _Dropped]:
    """Return the mask of usable rows (None: all), and the dropped ones by reason."""
    dropped = _Dropped()
    if _all_good(tasks, units, raw):
        return None, dropped
    keep = np.ones(len(tasks), bool)
    for reason, failing in _reasons(tasks, units, raw):
        hit = failing & keep  # a row counts under the first reason only
        if hit.any():
            dropped.count(reason, int(np.count_nonzero(hit)), units.codes[hit])
            keep &= ~hit
        del failing, hit
    return (keep if dropped.rows else None), dropped


def _all_good(tasks: Labels, units: Labels, raw: _Raw) -> bool:
    # From minima and maxima alone: no array as long as the input is made.
    if tasks.codes.min() < 0 or units.codes.min() < 0:
        return False
    least = np.nextafter(0.0, 1.0)
    bounds = [
        (raw.values, 1 / VALUE_LIMIT, VALUE_LIMIT),
        (raw.jobs, least, JOBS_LIMIT),
        (raw.rel_var, 0.0, VALUE_LIMIT),
    ]
    bounds += [(column, least, VALUE_LIMIT) for column in raw.sums or ()]
    # comparisons with NaN, which a minimum hands on, are False
    return all(
        bool(column.min() >= low and column.max() <= high)
        for column, low, high in bounds
        if column is not None
    )


def _reasons(tasks: Labels, units: Labels, raw: _Raw) -> Iterator[tuple[str, Mask]]:
    # One mask at a time: each is as long as the input.
    values, sums = raw.values, raw.sums
    yield "task missing", tasks.codes < 0
    yield "unit missing", units.codes < 0
    if sums is not None:
        yield "events not positive", ~(sums[1] > 0)
    finite = np.isfinite(values)
    if sums is not None:
        finite &= np.isfinite(sums[0]) & np.isfinite(sums[1])
    yield "value not finite", ~finite
    del finite
    yield "value not positive", values <= 0 if sums is None else sums[0] <= 0
    inside = (values >= 1 / VALUE_LIMIT) & (values <= VALUE_LIMIT)
    if sums is not None:
        inside &= (sums[0] <= VALUE_LIMIT) & (sums[1] <= VALUE_LIMIT)
    yield "value outside 1e-100..1e100", ~inside
    del inside
    if raw.jobs is not None:
        yield "jobs not positive", ~((raw.jobs > 0) & (raw.jobs <= JOBS_LIMIT))
    if raw.rel_var is not None:
        yield "rel_var negative or infinite", (raw.rel_var < 0) | (raw.rel_var > VALUE_LIMIT)


def _shared_first(tasks: Labels, keep: Mask | None) -> tuple[Ints, Ints | None]:
    # Kept rows per task, and the order that puts tasks of one row last (None: already so): all that can be
    # fitted is then one slice of the columns.
    rows = count(tasks.codes, tasks.names.size)
    order = np.argsort(rows == 1, kind="stable")
    in_order = not rows.size or not (rows == 1).any() or not (order[1:] < order[:-1]).any()
    kept = rows if keep is None else count(tasks.codes[keep], tasks.names.size)
    return kept, None if in_order else order


def _merge(raw: _Raw, order: Codes, ptr: Ints, unit: Codes, repeated: int) -> dict[str, Any]:
    values, sums, jobs, rel_var = raw.values, raw.sums, raw.jobs, raw.rel_var
    if repeated == 0:
        return {
            "ptr": ptr,
            "unit": unit,
            "value": gather(values, order),
            "jobs": None if jobs is None else gather(jobs, order),
            "rel_var": None if rel_var is None else gather(rel_var, order),
            "rows": None,
        }
    fresh = np.ones(order.size, bool)
    fresh[1:] = unit[1:] != unit[:-1]
    fresh[ptr[:-1][ptr[:-1] < order.size]] = True
    starts = np.flatnonzero(fresh)

    def total(column: Floats) -> Floats:
        return np.add.reduceat(column, starts)

    share = np.ones(order.size) if jobs is None else gather(jobs, order)
    mass = share * gather(values, order) if sums is None else gather(sums[0], order)
    rows = np.diff(np.append(starts, order.size)).astype(np.int32)
    merged_var = None
    if rel_var is not None:
        merged_var = _merge_variance(gather(rel_var, order), share, mass, starts, rows)
    merged = total(mass) / total(share) if sums is None else total(mass) / total(gather(sums[1], order))
    return {
        "ptr": np.searchsorted(starts, ptr).astype(np.int64),
        "unit": unit[starts],
        "value": np.where(rows == 1, gather(values, order)[starts], merged),
        "jobs": None if jobs is None else total(share),
        "rel_var": merged_var,
        "rows": rows,
    }


def _merge_variance(
    rel_var: Floats, share: Floats, mass: Floats, starts: NDArray[np.intp], rows: Codes
) -> Floats:
    valid = np.isfinite(rel_var)
    weight = np.where(valid, share, 0.0)
    per_job_sum = np.add.reduceat(np.where(valid, share * share * rel_var, 0.0), starts)
    known_sum = np.add.reduceat(weight, starts)
    per_job = np.full(starts.size, np.nan)
    np.divide(per_job_sum, known_sum, out=per_job, where=known_sum > 0)
    filled = np.where(valid, rel_var, np.repeat(per_job, rows) / share)
    peak = np.repeat(np.maximum.reduceat(mass, starts), rows)
    part = mass / peak  # between 0 and 1, so that squares neither overflow nor vanish
    merged: Floats = np.add.reduceat(part * part * filled, starts) / np.add.reduceat(part, starts) ** 2
    return merged


def _without_impossible(buckets: dict[str, Any], dropped: _Dropped) -> dict[str, Any]:
    # Drop values too far from their task's median; only tasks of absurd spread are examined.
    ptr, value = buckets["ptr"], buckets["value"]
    if value.size == 0 or value.max() <= SPREAD_LIMIT * value.min():
        return buckets
    filled = np.flatnonzero(np.diff(ptr))
    low = np.minimum.reduceat(value, ptr[filled])
    high = np.maximum.reduceat(value, ptr[filled])
    wild = filled[high / low > SPREAD_LIMIT]
    if wild.size == 0:
        return buckets
    keep = np.ones(value.size, bool)
    for task in wild.tolist():
        inside = slice(ptr[task], ptr[task + 1])
        logs = np.log(value[inside])
        keep[inside] = np.abs(logs - np.median(logs)) <= np.log(SPREAD_LIMIT)
    gone = ~keep
    if not gone.any():
        return buckets
    rows = buckets["rows"]
    n_rows = int(gone.sum() if rows is None else rows[gone].sum())
    dropped.count("value 1e12 times off its task", n_rows, buckets["unit"][gone])
    kept = {name: None if array is None else array[keep] for name, array in buckets.items() if name != "ptr"}
    return {**kept, "ptr": np.concatenate([[0], np.cumsum(keep)])[ptr]}
