"""Buckets of many days to the columns of one fit: one row per unit of A and name, with its scatter."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core import tables
from esjobs.core.query import Filter, In
from esjobs.core.window import Window
from esjobs.steps.publication import read_table
from esjobs.store.base import JobStore

ALL_TYPES = "all"
"""The literal for every processing type together; ingest refuses it as a value."""
_UNIT = ("task_id", "core_class", "processing_type")
_BAR_IN_TASK = "\x1f"
"""Stands for a bar inside a task id, so that the first two bars of a unit always part it."""
_SUMS = ("n_jobs", "events", "events_sq", "cpu_s", "cpu_s_sq", "events_cpu_s", "core_s")

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FitInput:
    """The columns of one fit, aligned; a row is a unit of A (task x core class x type) at one name.

    ``n_jobs`` jobs, ``events`` and ``cpu_s`` their sums, ``core_s`` wall x cores, ``rel_var`` the squared
    relative standard error of CPU time per event from the scatter of the jobs (NaN for a single job).
    """

    level: str
    processing_type: str
    task: npt.NDArray[np.object_]
    name: npt.NDArray[np.object_]
    n_jobs: npt.NDArray[np.int64]
    events: FloatArray
    cpu_s: FloatArray
    core_s: FloatArray
    rel_var: FloatArray
    n_jobs_unnamed: int
    """Binned jobs that carry no name on this level (no CPU model)."""

    def __len__(self) -> int:
        return len(self.task)

    def keep(self, mask: npt.NDArray[np.bool_]) -> "FitInput":
        """The rows where the mask is true."""
        columns: dict[str, Any] = {
            name: getattr(self, name)[mask]
            for name in ("task", "name", "n_jobs", "events", "cpu_s", "core_s", "rel_var")
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


def fit_input(buckets: pa.Table, level: str, processing_type: str) -> FitInput:
    """Merge the days (and the other level) of the buckets of one type; exact, because they hold sums.

    The relative variance of a ratio of sums a = C/E over N jobs is
    N/(N-1) x (S_cc - 2 a S_nc + a² S_nn) / C², the delta method (Cochran, Sampling Techniques, ch. 6).
    """
    if processing_type != ALL_TYPES:
        buckets = buckets.filter(pc.equal(buckets.column("processing_type"), processing_type))
    named = buckets.filter(pc.is_valid(buckets.column(level)))
    unnamed = (pc.sum(buckets.column("n_jobs")).as_py() or 0) - (pc.sum(named.column("n_jobs")).as_py() or 0)
    merged = named.group_by([*_UNIT, level], use_threads=False).aggregate(
        [(column, "sum") for column in _SUMS]
    )
    sums = {
        column: merged.column(f"{column}_sum").to_numpy(zero_copy_only=False).astype(float)
        for column in _SUMS
    }
    task_id, core_class, kind = (pc.fill_null(merged.column(column), "") for column in _UNIT)
    task = pc.binary_join_element_wise(
        pc.replace_substring(task_id, "|", _BAR_IN_TASK), core_class, kind, "|"
    )
    return FitInput(
        level=level,
        processing_type=processing_type,
        task=task.to_numpy(zero_copy_only=False),
        name=merged.column(level).to_numpy(zero_copy_only=False),
        n_jobs=sums["n_jobs"].astype(np.int64),
        events=sums["events"],
        cpu_s=sums["cpu_s"],
        core_s=sums["core_s"],
        rel_var=_relative_variance(sums),
        n_jobs_unnamed=int(unnamed),
    )


def _relative_variance(sums: dict[str, FloatArray]) -> FloatArray:
    jobs, mean = sums["n_jobs"], sums["cpu_s"] / sums["events"]
    squares = sums["cpu_s_sq"] - 2 * mean * sums["events_cpu_s"] + mean**2 * sums["events_sq"]
    scatter = np.maximum(squares, 0.0)
    several = jobs > 1
    correction = np.divide(jobs, jobs - 1, out=np.full_like(jobs, np.nan), where=several)
    return np.asarray(correction * scatter / sums["cpu_s"] ** 2)


def readable_unit(unit: str) -> str:
    """A unit of A, ``task|core class|type``, as people say it.

    >>> readable_unit("15350577|single|simul")
    '15350577 (single-core, simul)'
    """
    task, core_class, kind = unit.split("|", 2)
    task = task.replace(_BAR_IN_TASK, "|")
    return f"{task} ({core_class}-core{f', {kind}' if kind else ''})"
