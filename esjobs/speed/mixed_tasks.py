"""Tasks that hold several kinds of work: split where the records name the kind, set aside otherwise.

Sums cannot see a site that ran merge jobs only; single jobs can. They are read for the tasks that the sums
make suspicious, and for no others: a fixed cost that no line explains, a wide scatter inside a site, sites
that are far apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import fitters
from esjobs.core import fields
from esjobs.core.arrow import schema_of
from esjobs.core.query import DropRule, Filter, In, Select
from esjobs.core.window import Window
from esjobs.names.cpu_models import resolve_names
from esjobs.speed.fixed_costs import correct, fixed_costs
from esjobs.speed.unit_sums import SUMS, FloatArray, UnitSums, WindowSums, joined
from esjobs.speed.units import UNIT, unit_labels, unit_parts
from esjobs.store.base import JobStore
from fitters import Labels

MAX_JOBS_READ = 500_000
"""Single jobs that are read in one run at most; tasks beyond, the smallest, are judged by their sums."""

WIDE = 0.4
"""Scatter of ln(CPU time per event) inside a site above which a task is looked at."""
FAR = np.log(2.0)
"""Distance of a site from the median of its task, in ln, above which a task is looked at."""
_LEAST_JOBS = 20.0
"""Jobs of a task below which nothing can be told."""

_FIELDS = (
    "task_id",
    "core_class",
    "processing_type",
    "site",
    "cpu_raw",
    "transformation",
    "events",
    "cpu_s",
    "core_s",
)
_UNIT_OF_JOB = UNIT[:3]


@dataclass(frozen=True)
class MixedTask:
    """A unit of A that was looked at: ``decision`` is ``keep``, ``split`` or ``set aside``."""

    n_jobs: int
    decision: str
    reason: str
    ratio: float
    share: float


@dataclass(frozen=True)
class CheckedBuckets:
    """The sums of a window with its mixed tasks taken apart, by kind of work, or marked as set aside.

    ``looked_at``: by unit of A, before any split. ``n_not_read``: suspicious tasks whose jobs were too many
    to be read.
    """

    sums: WindowSums
    looked_at: Mapping[str, MixedTask]
    n_not_read: int


def check_buckets(
    store: JobStore,
    sums: WindowSums,
    window: Window,
    drops: tuple[DropRule, ...],
    where: Sequence[Filter],
    min_bucket_jobs: int,
) -> CheckedBuckets:
    """Find the mixed tasks of a window and take them apart.

    ``sums``: of the buckets as they are stored, under the filters ``where`` on jobs. Cost: one pass over the
    sums; one selection of the jobs of suspicious tasks, ``MAX_JOBS_READ`` at most.
    """
    rows = sums.levels["site"]
    costs = fixed_costs(rows, min_bucket_jobs)
    if costs is None:
        return CheckedBuckets(sums, {}, 0)
    suspects, n_not_read = _suspects(rows, costs)
    jobs = _read(store, window, drops, where, suspects)
    looked_at: dict[str, MixedTask] = {}
    if jobs.num_rows:
        found, kinds = _look(jobs, rows, costs)
        looked_at = {unit: task for unit, task in found.items() if unit in suspects}
        sums = _apart(sums, jobs, looked_at, kinds)
    return CheckedBuckets(sums, looked_at, n_not_read)


def _suspects(rows: UnitSums, costs: fitters.FixedCosts) -> tuple[dict[str, int], int]:
    """Units of A to be looked at with their jobs, and how many more there are."""
    names, place = rows.task.names, rows.task.codes
    n_jobs = np.bincount(place, rows.sums["n_jobs"], len(names))
    several = np.bincount(place, minlength=len(names)) > 1
    wanted = several & (n_jobs >= _LEAST_JOBS) & _odd(rows, costs)
    order = np.flatnonzero(wanted)[np.argsort(-n_jobs[wanted], kind="stable")]
    chosen: dict[str, int] = {}
    left = MAX_JOBS_READ
    for task in order:
        if n_jobs[task] <= left:
            chosen[str(names[task])] = int(n_jobs[task])
            left -= int(n_jobs[task])
    return chosen, len(order) - len(chosen)


def _odd(rows: UnitSums, costs: fitters.FixedCosts) -> npt.NDArray[np.bool_]:
    """Per unit of A, whether its sums leave a doubt."""
    names, place = rows.task.names, rows.task.codes
    found = correct(costs, rows)
    jobs = rows.sums["n_jobs"]
    variance = np.where(found.corrected, found.rel_var - found.rel_var_rho, found.rel_var_raw) * jobs
    scatter = np.sqrt(np.log1p(np.nan_to_num(variance)))
    wide = (scatter > WIDE) & (jobs >= _LEAST_JOBS)
    level = np.log(rows.sums["cpu_s"] / np.where(found.use, found.events_eff, rows.sums["events"]))
    far = np.abs(level - _medians(place, level, len(names))[place]) > FAR
    odd = np.bincount(place, wide | far, len(names)) > 0
    unexplained = set(costs.tasks.name[np.isin(costs.tasks.decision.astype(str), ["set aside", "rising"])])
    return np.asarray(odd | np.array([name in unexplained for name in names], np.bool_))


def _medians(group: npt.NDArray[np.int32], values: FloatArray, n: int) -> FloatArray:
    order = np.lexsort((values, group))
    start = np.searchsorted(group[order], np.arange(n))
    size = np.bincount(group, minlength=n)
    ordered = values[order]
    return np.asarray((ordered[start + (size - 1) // 2] + ordered[start + size // 2]) / 2)


def _read(
    store: JobStore,
    window: Window,
    drops: tuple[DropRule, ...],
    where: Sequence[Filter],
    suspects: Mapping[str, int],
) -> pa.Table:
    tasks = sorted({str(unit_parts(unit)[0]) for unit in suspects})
    select = Select(_FIELDS, window, (*where, In("task_id", tuple(tasks))), drops)
    jobs = pa.Table.from_batches(
        store.select(select), schema=schema_of(fields.field(name) for name in _FIELDS)
    )
    models = pa.array(resolve_names(jobs.column("cpu_raw").to_pylist()), pa.string())
    jobs = jobs.append_column("cpu_model", models).append_column(
        "work_kind", pa.nulls(len(models), pa.string())
    )
    mine = pc.is_in(pa.array(unit_labels(jobs), pa.string()), pa.array(list(suspects), pa.string()))
    # Sums and rounding follow the order of the rows: with one that the store does not choose they repeat.
    keys = [(name, "ascending") for name in (*_UNIT_OF_JOB, "site", "cpu_model", "events", "cpu_s")]
    return jobs.filter(mine).sort_by(keys)


def _look(
    jobs: pa.Table, rows: UnitSums, costs: fitters.FixedCosts
) -> tuple[dict[str, MixedTask], dict[tuple[str, str | None], str]]:
    """What became of every unit of A that was read, and of the kinds of those that are split."""
    unit = unit_labels(jobs)
    where = pc.binary_join_element_wise(
        jobs.column("site"), pc.fill_null(jobs.column("cpu_model"), ""), "|"
    ).to_numpy(zero_copy_only=False)
    events, cpu_s = (jobs.column(name).to_numpy(zero_copy_only=False) for name in ("events", "cpu_s"))
    residual = fitters.fixed_cost_residuals(costs, unit, events, cpu_s)
    kind = jobs.column("transformation").to_numpy(zero_copy_only=False)
    table = fitters.find_mixtures(unit, where, residual, kind=kind).tasks
    wholes: dict[str, MixedTask] = {}
    kinds: dict[tuple[str, str | None], str] = {}
    jobs_of_task = np.bincount(rows.task.codes, rows.sums["n_jobs"], len(rows.task.names))
    n_jobs = dict(zip(rows.task.names, jobs_of_task, strict=True))
    for place, name in enumerate(table.name):
        decision, reason = str(table.decision[place]), str(table.reason[place])
        if name in wholes:
            kinds[name, table.kind[place]] = reason if decision == "set aside" else ""
            continue
        if decision == "split" and table.n_jobs[place] != n_jobs.get(name):
            decision = "set aside"
            reason += "; its jobs changed since they were aggregated, so that it cannot be split"
        wholes[name] = MixedTask(
            int(table.n_jobs[place]), decision, reason, float(table.ratio[place]), float(table.share[place])
        )
    return wholes, kinds


def _apart(
    sums: WindowSums,
    jobs: pa.Table,
    looked_at: Mapping[str, MixedTask],
    kinds: Mapping[tuple[str, str | None], str],
) -> WindowSums:
    """Mark what is set aside; put sums by kind in the place of what is split."""
    parts = _sums_by_kind(jobs, looked_at, kinds)
    levels: dict[str, UnitSums] = {}
    for level, rows in sums.levels.items():
        seen = [looked_at.get(unit) for unit in rows.task.names]
        split = np.array([task is not None and task.decision == "split" for task in seen], np.bool_)
        aside = [task.reason if task is not None and task.decision == "set aside" else None for task in seen]
        marked = replace(rows, mixed=_per_row(aside, rows.task))
        if parts is not None:
            marked = joined(marked[~split[rows.task.codes]], _sums_of_parts(parts, level))
        levels[level] = marked
    n_buckets = int(levels["site"].n_buckets.sum()) if parts is not None else sums.n_buckets
    return WindowSums(levels, n_buckets, sums.n_jobs)


def _per_row(reasons: Sequence[str | None], task: Labels) -> Labels:
    """A text for each task, or None, as labels of the rows."""
    of_task = fitters.factorise(list(reasons), "mixed") if reasons else task
    return Labels(of_task.names, of_task.codes[task.codes])


def _sums_of_parts(parts: pa.Table, level: str) -> UnitSums:
    """The sums by kind of one level."""
    named = parts.filter(pc.is_valid(parts.column(level)))
    merged = named.group_by([*UNIT, level, "set_aside"], use_threads=False).aggregate(
        [([], "count_all"), *((column, "sum") for column in SUMS)]
    )
    return UnitSums(
        fitters.factorise(unit_labels(merged), "task"),
        fitters.factorise(merged.column(level), level),
        {column: np.asarray(merged.column(f"{column}_sum"), np.float64) for column in SUMS},
        np.asarray(merged.column("count_all"), np.int64),
        fitters.factorise(merged.column("set_aside"), "mixed"),
    )


def _sums_by_kind(
    jobs: pa.Table, looked_at: Mapping[str, MixedTask], kinds: Mapping[tuple[str, str | None], str]
) -> pa.Table | None:
    unit = unit_labels(jobs)
    split = np.array([name in looked_at and looked_at[name].decision == "split" for name in unit], np.bool_)
    if not split.any():
        return None
    mine = jobs.filter(pa.array(split))
    kind = mine.column("transformation")
    aside = [kinds.get(pair) or None for pair in zip(unit[split], kind.to_pylist(), strict=True)]
    events, cpu_s = (pc.cast(mine.column(name), pa.float64()) for name in ("events", "cpu_s"))
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        **{name: mine.column(name) for name in (*_UNIT_OF_JOB, "site", "cpu_model")},
        "work_kind": kind,
        "set_aside": pa.array(aside, pa.string()),
        "n_jobs": pa.repeat(pa.scalar(1, pa.int64()), mine.num_rows),
        "events": events,
        "events_sq": pc.multiply(events, events),
        "cpu_s": cpu_s,
        "cpu_s_sq": pc.multiply(cpu_s, cpu_s),
        "events_cpu_s": pc.multiply(events, cpu_s),
        "core_s": mine.column("core_s"),
    }
    keys = [*UNIT, "site", "cpu_model", "set_aside"]
    grouped = pa.table(columns).group_by(keys, use_threads=False)
    summed = grouped.aggregate([(name, "sum") for name in SUMS])
    return summed.rename_columns([name.removesuffix("_sum") for name in summed.column_names])
