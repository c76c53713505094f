"""Tasks that hold several kinds of work: split where the records name the kind, set aside otherwise.

Sums cannot see a site that ran merge jobs only; single jobs can. They are read for the tasks that the sums
make suspicious, and for no others: a fixed cost that no line explains, a wide scatter inside a site, sites
that are far apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import fitters
from esjobs.analysis.cpu_models import resolve_names
from esjobs.core import fields
from esjobs.core.arrow import schema_of
from esjobs.core.query import DropRule, Filter, In, Select
from esjobs.core.window import Window
from esjobs.steps.fit_input import (
    SUMS,
    UNIT,
    FloatArray,
    UnitSums,
    fixed_costs,
    unit_labels,
    unit_parts,
    unit_sums,
)
from esjobs.store.base import JobStore

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
    """Buckets with two columns more, ``work_kind`` and ``set_aside`` (why; null: they may be fitted).

    ``looked_at``: by unit of A, before any split. ``n_not_read``: suspicious tasks whose jobs were too many
    to be read. Of split tasks the days are merged and only the sums of ``SUMS`` are kept.
    """

    buckets: pa.Table
    looked_at: Mapping[str, MixedTask]
    n_not_read: int


def check_buckets(
    store: JobStore,
    buckets: pa.Table,
    window: Window,
    drops: tuple[DropRule, ...],
    where: Sequence[Filter],
    min_bucket_jobs: int,
) -> CheckedBuckets:
    """Find the mixed tasks of a window and take them apart.

    ``buckets``: as they are stored, under the filters ``where`` on jobs. Cost: one pass over the buckets; one
    selection of the jobs of suspicious tasks, ``MAX_JOBS_READ`` at most.
    """
    plain = whole(buckets)
    rows = unit_sums(plain, "site")
    costs = fixed_costs(rows, min_bucket_jobs)
    if costs is None:
        return CheckedBuckets(plain, {}, 0)
    suspects, n_not_read = _suspects(rows, costs)
    jobs = _read(store, window, drops, where, suspects)
    looked_at: dict[str, MixedTask] = {}
    if jobs.num_rows:
        found, kinds = _look(jobs, rows, costs)
        looked_at = {unit: task for unit, task in found.items() if unit in suspects}
        plain = _apart(plain, jobs, looked_at, kinds)
    return CheckedBuckets(plain, looked_at, n_not_read)


def whole(buckets: pa.Table) -> pa.Table:
    """Buckets as a fit takes them when no task is mixed."""
    plain = buckets.select([*UNIT[:3], "site", "cpu_model", *SUMS])
    nothing = pa.nulls(plain.num_rows, pa.string())
    return plain.append_column("work_kind", nothing).append_column("set_aside", nothing)


def _suspects(rows: UnitSums, costs: fitters.FixedCosts) -> tuple[dict[str, int], int]:
    """Units of A to be looked at with their jobs, and how many more there are."""
    names, place = np.unique(rows.task.astype(str), return_inverse=True)
    n_jobs = np.bincount(place, rows.sums["n_jobs"])
    several = np.bincount(place) > 1
    wanted = several & (n_jobs >= _LEAST_JOBS) & _odd(rows, costs, names, place)
    order = np.flatnonzero(wanted)[np.argsort(-n_jobs[wanted], kind="stable")]
    chosen: dict[str, int] = {}
    left = MAX_JOBS_READ
    for task in order:
        if n_jobs[task] <= left:
            chosen[str(names[task])] = int(n_jobs[task])
            left -= int(n_jobs[task])
    return chosen, len(order) - len(chosen)


def _odd(
    rows: UnitSums, costs: fitters.FixedCosts, names: npt.NDArray[np.str_], place: npt.NDArray[np.intp]
) -> npt.NDArray[np.bool_]:
    """Per unit of A, whether its sums leave a doubt."""
    found = fitters.correct_fixed_cost(costs, rows.task, rows.name, **rows.moments())
    jobs = rows.sums["n_jobs"]
    variance = np.where(found.corrected, found.rel_var - found.rel_var_rho, found.rel_var_raw) * jobs
    scatter = np.sqrt(np.log1p(np.nan_to_num(variance)))
    wide = (scatter > WIDE) & (jobs >= _LEAST_JOBS)
    level = np.log(rows.sums["cpu_s"] / np.where(found.use, found.events_eff, rows.sums["events"]))
    far = np.abs(level - _medians(place, level, len(names))[place]) > FAR
    odd = np.bincount(place, wide | far, len(names)) > 0
    unexplained = set(costs.tasks.name[np.isin(costs.tasks.decision.astype(str), ["set aside", "rising"])])
    return np.asarray(odd | np.array([name in unexplained for name in names], np.bool_))


def _medians(group: npt.NDArray[np.intp], values: FloatArray, n: int) -> FloatArray:
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
    n_jobs = dict(zip(rows.task, np.zeros(len(rows.task)), strict=True))
    for task, number in zip(rows.task, rows.sums["n_jobs"], strict=True):
        n_jobs[task] += number
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
    buckets: pa.Table,
    jobs: pa.Table,
    looked_at: Mapping[str, MixedTask],
    kinds: Mapping[tuple[str, str | None], str],
) -> pa.Table:
    """Mark what is set aside; put sums by kind in the place of what is split."""
    label = unit_labels(buckets)
    decision = [looked_at[name].decision if name in looked_at else "keep" for name in label]
    reason = [
        looked_at[name].reason if what == "set aside" else None
        for name, what in zip(label, decision, strict=True)
    ]
    position = buckets.schema.get_field_index("set_aside")
    marked = buckets.set_column(position, "set_aside", pa.array(reason, pa.string()))
    kept = marked.filter(pa.array([what != "split" for what in decision], pa.bool_()))
    parts = _sums_by_kind(jobs, looked_at, kinds)
    return kept if parts is None else pa.concat_tables([kept, parts.select(kept.column_names)])


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
