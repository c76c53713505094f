"""Checked buckets to the columns of one fit: one row per unit of A and name, raw and corrected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import fitters
from esjobs.core import tables
from esjobs.core.query import Filter, In
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES
from esjobs.steps.publication import read_table
from esjobs.store.base import JobStore

UNIT = ("task_id", "core_class", "processing_type", "work_kind")
"""What makes a unit of A: one task, one core class, one processing type, one kind of work."""
SUMS = ("n_jobs", "events", "events_sq", "cpu_s", "cpu_s_sq", "events_cpu_s", "core_s")
_BAR = "\x1f"
"""Stands for a bar inside a part of a unit, so that bars always part it."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FitInput:
    """The columns of one fit, aligned; a row is a unit of A (task x core class x type x kind) at one name.

    ``n_jobs`` jobs, ``events`` and ``cpu_s`` their sums, ``core_s`` wall x cores. ``rho``: fixed cost of a
    job that is taken out, in events, 0 where none is; ``events_eff`` = events + rho x jobs. ``rel_var`` and
    ``rel_var_raw``: squared relative standard error of CPU time per event, with and without it, from the
    scatter of the jobs (NaN for a single job). ``mixed``: why the task is set aside as a mixed one, else
    empty; ``unknown``: why its fixed cost is needed and cannot be had, else empty.
    """

    level: str
    processing_type: str
    task: npt.NDArray[np.object_]
    name: npt.NDArray[np.object_]
    n_jobs: npt.NDArray[np.int64]
    events: FloatArray
    cpu_s: FloatArray
    core_s: FloatArray
    rho: FloatArray
    events_eff: FloatArray
    rel_var: FloatArray
    rel_var_raw: FloatArray
    mixed: npt.NDArray[np.object_]
    unknown: npt.NDArray[np.object_]
    n_jobs_unnamed: int
    """Binned jobs that carry no name on this level (no CPU model)."""

    def __len__(self) -> int:
        return len(self.task)

    def keep(self, mask: npt.NDArray[np.bool_]) -> "FitInput":
        """The rows where the mask is true."""
        columns: dict[str, Any] = {
            item.name: getattr(self, item.name)[mask]
            for item in fields(self)
            if item.name not in ("level", "processing_type", "n_jobs_unnamed")
        }
        return FitInput(self.level, self.processing_type, n_jobs_unnamed=self.n_jobs_unnamed, **columns)


def read_buckets(store: JobStore, window: Window, where: Sequence[Filter] = ()) -> pa.Table:
    """The visible buckets of a window under filters on their keys, in the order of their keys.

    Sums of floats depend on their order: with this one the same buckets give the same factors, to the bit.
    """
    days = In("day", tuple(str(day) for day in window.days()))
    buckets = read_table(store, tables.BUCKETS, [days, *where]).combine_chunks()
    keys = [_rank(buckets.column(name)) for name in reversed(tables.BUCKETS.column_names[:6])]
    return buckets.take(pa.array(np.lexsort(keys)))


def _rank(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The place of each value among the sorted distinct ones, -1 for null."""
    encoded = column.combine_chunks().dictionary_encode()
    order = np.asarray(pc.array_sort_indices(encoded.dictionary))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    codes = np.asarray(encoded.indices.fill_null(-1), np.int64)
    return np.where(codes < 0, -1, places[codes] if len(places) else -1)


def processing_types(buckets: pa.Table) -> list[str]:
    """The types that get a fit of their own, sorted, then ``all``."""
    found = pc.unique(buckets.column("processing_type")).to_pylist()
    return [*sorted(kind for kind in found if kind is not None), ALL_TYPES]


@dataclass(frozen=True)
class UnitSums:
    """Sums over days: one row per unit of A and name, in the order of the buckets.

    ``task``: the unit's label. ``sums``: by the names of ``SUMS``. ``mixed``: as in :class:`FitInput`.
    """

    task: npt.NDArray[np.object_]
    name: npt.NDArray[np.object_]
    sums: Mapping[str, FloatArray]
    mixed: npt.NDArray[np.object_]

    def entering(self, min_bucket_jobs: int) -> npt.NDArray[np.bool_]:
        """Rows with enough jobs, of tasks that are not set aside as mixed."""
        return np.asarray((self.sums["n_jobs"] >= min_bucket_jobs) & (self.mixed == ""), np.bool_)

    def moments(self, rows: Any = slice(None)) -> dict[str, Any]:
        """The columns that functions of ``fitters`` take for sums over jobs."""
        names = ("n_jobs", "events", "cpu_s", "events_sq", "cpu_s_sq", "events_cpu_s")
        return {name: self.sums[name][rows] for name in names}


def unit_sums(buckets: pa.Table, level: str) -> UnitSums:
    """Merge the days, and the other level, of checked buckets; exact, because they hold sums."""
    named = buckets.filter(pc.is_valid(buckets.column(level)))
    merged = named.group_by([*UNIT, level, "set_aside"], use_threads=False).aggregate(
        [(column, "sum") for column in SUMS]
    )
    sums = {
        column: merged.column(f"{column}_sum").to_numpy(zero_copy_only=False).astype(float) for column in SUMS
    }
    return UnitSums(
        unit_labels(merged),
        merged.column(level).to_numpy(zero_copy_only=False),
        sums,
        pc.fill_null(merged.column("set_aside"), "").to_numpy(zero_copy_only=False),
    )


def unit_labels(table: pa.Table) -> npt.NDArray[np.object_]:
    """One text per row for its unit of A; ``unit_parts`` undoes it, ``readable_unit`` is for people."""
    parts = [pc.replace_substring(pc.fill_null(table.column(column), ""), "|", _BAR) for column in UNIT]
    return np.asarray(pc.binary_join_element_wise(*parts, "|").to_numpy(zero_copy_only=False))


def fixed_costs(rows: UnitSums, min_bucket_jobs: int) -> fitters.FixedCosts | None:
    """The fixed cost of a job in every unit of A, from the rows that enter; None without any.

    Units without a row of enough jobs are worked out from what they have: a variant with other minimum jobs
    may ask for them.
    """
    enough = rows.entering(min_bucket_jobs)
    having = set(rows.task[enough])
    chosen = enough | np.array([task not in having for task in rows.task], np.bool_)
    if not chosen.any():
        return None
    return fitters.estimate_fixed_cost(rows.task[chosen], rows.name[chosen], **rows.moments(chosen))


def fit_input(
    buckets: pa.Table, level: str, processing_type: str, costs: fitters.FixedCosts | None
) -> FitInput:
    """The columns of one fit from checked buckets; ``costs``: of this level, over all types."""
    if processing_type != ALL_TYPES:
        buckets = buckets.filter(pc.equal(buckets.column("processing_type"), processing_type))
    rows = unit_sums(buckets, level)
    n_jobs = rows.sums["n_jobs"]
    total = pc.sum(buckets.column("n_jobs")).as_py() or 0
    corrected: dict[str, Any] = {
        "rho": np.zeros(len(n_jobs)),
        "events_eff": rows.sums["events"],
        "rel_var": np.full(len(n_jobs), np.nan),
        "rel_var_raw": np.full(len(n_jobs), np.nan),
        "unknown": np.full(len(n_jobs), "", object),
    }
    if costs is not None and len(n_jobs):
        found = fitters.correct_fixed_cost(costs, rows.task, rows.name, **rows.moments())
        corrected = {
            "rho": np.where(found.use, found.rho, 0.0),
            "events_eff": np.where(found.use, found.events_eff, rows.sums["events"]),
            "rel_var": np.where(found.use, found.rel_var, found.rel_var_raw),
            "rel_var_raw": found.rel_var_raw,
            "unknown": found.reason,
        }
    return FitInput(
        level=level,
        processing_type=processing_type,
        task=rows.task,
        name=rows.name,
        n_jobs=n_jobs.astype(np.int64),
        events=rows.sums["events"],
        cpu_s=rows.sums["cpu_s"],
        core_s=rows.sums["core_s"],
        mixed=rows.mixed,
        n_jobs_unnamed=int(total - n_jobs.sum()),
        **corrected,
    )


def unit_parts(unit: str) -> tuple[str | None, ...]:
    """Task, core class, processing type and kind of work of a unit of A, None where there is none.

    >>> unit_parts("15350577|single||")
    ('15350577', 'single', None, None)
    """
    return tuple(part.replace(_BAR, "|") or None for part in unit.split("|"))


def readable_unit(unit: str) -> str:
    """A unit of A as people say it.

    >>> readable_unit("15350577|single|simul|"), readable_unit("7|multi||EVNTMerge_tf.py")
    ('15350577 (single-core, simul)', '7 (multi-core, EVNTMerge_tf.py)')
    """
    task, core_class, *kinds = unit_parts(unit)
    return f"{task} ({', '.join([f'{core_class}-core', *filter(None, kinds)])})"
