"""Tasks with several kinds of work: split if the records name the kind, excluded otherwise.

Sums cannot show a site that ran merge jobs only; single jobs can. They are read for suspicious tasks alone: a
start-up time that no line explains, a wide scatter inside a site, sites that are far apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fitters
from esjobs.core.query import DropRule, Filter, In
from esjobs.core.tables import columns
from esjobs.core.window import Window
from esjobs.records.jobs.resolution import select
from esjobs.records.tasks.keys import KEY, TaskKeys
from esjobs.records.tasks.sums import SUMS, TaskSums, WindowSums, joined, renumbered
from esjobs.speed.bucket_variances import bucket_variances
from esjobs.speed.fixed_costs import correct
from esjobs.speed.jobs_of_tasks import units_of_enough_jobs, without_worst
from esjobs.speed.outlier_records import FoundCosts, costs_without_outliers
from esjobs.store.base import JobStore
from fitters import Labels
from fitters.layout.arrays import Codes, Mask

# Single jobs that are read in one run at most; tasks beyond, the smallest, are judged by their sums
MAX_JOBS_READ = 500_000
WIDE = 0.4  # Scatter of ln(CPU time per event) inside a site above which a task is looked at
FAR = np.log(2.0)  # Distance of a site from the median of its task, in ln, above which a task is looked at
LEFT_OUT = "left out"  # Kind of work of the jobs that are left out of a task which is one without them
_APART = ("split", "part")
_LEAST_JOBS = 20.0  # Jobs of a task below which nothing can be told
_FIELDS = columns("queue cpu_raw cpu_model transformation events cpu_s core_s")
_KEY_OF_JOB = KEY[:3]


@dataclass(frozen=True)
class MixedTask:
    """An examined task.

    ``decision``: ``keep``, ``split``, ``excluded`` or ``part``: kept without its jobs at the queues of
    ``without``, which alone make it look mixed.
    """

    n_jobs: int
    decision: str
    reason: str
    ratio: float
    share: float
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckedBuckets:
    """Sums of a window with mixed tasks split by kind of work, or marked as excluded.

    ``looked_at``: by number of the task key, before any split. ``n_not_read``: suspicious tasks with too many
    jobs to read. ``costs``: start-up times from queues, if no task was split.
    """

    sums: WindowSums
    looked_at: Mapping[int, MixedTask]
    n_not_read: int
    costs: FoundCosts | None = None


def check_buckets(
    store: JobStore,
    sums: WindowSums,
    window: Window,
    drops: tuple[DropRule, ...],
    where: Sequence[Filter],
    min_bucket_jobs: int,
) -> CheckedBuckets:
    """Find the mixed tasks of a window and split or exclude them.

    ``sums``: of the stored buckets, under the filters ``where`` on jobs. Cost: one pass over the sums; one
    selection of the jobs of suspicious tasks, ``MAX_JOBS_READ`` at most.
    """
    rows = sums.levels["queue"]
    found_costs = costs_without_outliers(rows, min_bucket_jobs)
    costs, _ = found_costs
    if costs is None:
        return CheckedBuckets(sums, {}, 0)
    suspects, n_not_read = _suspects(rows, costs)
    jobs = _read(store, window, drops, where, suspects, rows.keys)
    looked_at: dict[int, MixedTask] = {}
    if jobs.num_rows:
        found, kinds = _look(jobs, rows, costs)
        looked_at = {key: task for key, task in found.items() if key in suspects}
        if any(task.decision != "keep" for task in looked_at.values()):
            sums, looked_at = _apart(sums, jobs, looked_at, kinds)
            return CheckedBuckets(sums, looked_at, n_not_read)
    return CheckedBuckets(sums, looked_at, n_not_read, found_costs)


def _suspects(rows: TaskSums, costs: fitters.FixedCosts) -> tuple[dict[int, int], int]:
    names, index = rows.task.names, rows.task.codes
    n_jobs = np.bincount(index, rows.sums["n_jobs"], len(names))
    several = np.bincount(index, minlength=len(names)) > 1
    wanted = several & (n_jobs >= _LEAST_JOBS) & _suspicious(rows, costs)
    order = np.flatnonzero(wanted)[np.argsort(-n_jobs[wanted], kind="stable")]
    chosen: dict[int, int] = {}
    left = MAX_JOBS_READ
    # largest first, and smaller ones into the room that is left
    for task in order:
        if n_jobs[task] <= left:
            chosen[int(names[task])] = int(n_jobs[task])
            left -= int(n_jobs[task])
    return chosen, len(order) - len(chosen)


def _suspicious(rows: TaskSums, costs: fitters.FixedCosts) -> Mask:
    names, index = rows.task.names, rows.task.codes
    found = correct(costs, rows)
    jobs = rows.sums["n_jobs"]
    variance = np.where(found.corrected, found.rel_var - found.rel_var_rho, found.rel_var_raw) * jobs
    scatter = np.sqrt(np.log1p(np.nan_to_num(variance)))
    wide = (scatter > WIDE) & (jobs >= _LEAST_JOBS)
    level = np.log(rows.sums["cpu_s"] / np.where(found.use, found.events_eff, rows.sums["events"]))
    # a bucket of few jobs is far off by chance: by three of its errors more
    doubt = 3.0 * np.sqrt(bucket_variances(rows, found).per_job / jobs)
    far = np.abs(level - fitters.grouped_median(index, level, len(names))[index]) > FAR + np.nan_to_num(doubt)
    outliers = np.bincount(index, wide | far, len(names)) > 0
    unexplained = set(costs.tasks.name[np.isin(costs.tasks.decision.astype(str), ["excluded", "rising"])])
    return np.asarray(outliers | np.array([name in unexplained for name in names], np.bool_))


def _read(
    store: JobStore,
    window: Window,
    drops: tuple[DropRule, ...],
    where: Sequence[Filter],
    suspects: Mapping[int, int],
    keys: TaskKeys,
) -> pa.Table:
    tasks = sorted({str(keys.task_id[key]) for key in suspects})
    wanted = (*where, In("task_id", tuple(tasks)))
    jobs = select(store, (*_KEY_OF_JOB, *_FIELDS), window, where=wanted, drops=drops).read_all()
    jobs = jobs.append_column("work_kind", pa.nulls(jobs.num_rows, pa.string()))
    jobs = jobs.append_column("key", pa.array(keys.numbers(jobs)))
    mine = pc.is_in(jobs.column("key"), pa.array(list(suspects), pa.int32()))
    # Sums and rounding follow the order of the rows: with one that the store does not choose they repeat.
    order = [(name, "ascending") for name in (*_KEY_OF_JOB, "queue", "cpu_model", "events", "cpu_s")]
    return jobs.filter(mine).sort_by(order)


def _look(
    jobs: pa.Table, rows: TaskSums, costs: fitters.FixedCosts
) -> tuple[dict[int, MixedTask], dict[tuple[int, str | None], str]]:
    # Decision per task key that was read, and per kind of those that are split.
    key = np.asarray(jobs.column("key"))
    events, cpu_s = (jobs.column(name).to_numpy(zero_copy_only=False) for name in ("events", "cpu_s"))
    residual = fitters.fixed_cost_residuals(costs, key, events, cpu_s)
    where, residual = units_of_enough_jobs(jobs, rows, costs, key, residual)
    kind = jobs.column("transformation").to_numpy(zero_copy_only=False)
    table = fitters.find_mixtures(key, where, residual, kind=kind).tasks
    complete = {
        number for number, what in zip(table.name.tolist(), table.decision, strict=True) if what == "excluded"
    }
    without = without_worst(key, jobs.column("queue"), where, residual, complete)
    tasks: dict[int, MixedTask] = {}
    kinds: dict[tuple[int, str | None], str] = {}
    jobs_of_task = np.bincount(rows.task.codes, rows.sums["n_jobs"], len(rows.task.names))
    n_jobs = dict(zip(rows.task.names, jobs_of_task, strict=True))
    for index, number in enumerate(table.name.tolist()):
        decision, reason = str(table.decision[index]), str(table.reason[index])
        if number in tasks:
            kinds[number, table.kind[index]] = reason if decision == "excluded" else ""
            continue
        left_out = without.get(number, ()) if decision == "excluded" else ()
        if left_out:
            decision, reason = "part", f"{reason}; kept without its jobs at {', '.join(left_out)}"
        # parts and whole must be of the same jobs, or some would count twice
        if decision in ("split", "part") and table.n_jobs[index] != n_jobs.get(number):
            decision = "excluded"
            reason += "; its jobs have changed since aggregation, so the task cannot be split"
        evidence = float(table.ratio[index]), float(table.share[index])
        tasks[number] = MixedTask(int(table.n_jobs[index]), decision, reason, *evidence, left_out)
    return tasks, kinds


def _apart(
    sums: WindowSums,
    jobs: pa.Table,
    looked_at: dict[int, MixedTask],
    kinds: Mapping[tuple[int, str | None], str],
) -> tuple[WindowSums, dict[int, MixedTask]]:
    # Mark excluded tasks; replace the sums of split ones by sums per kind, under new keys.
    parts = _sums_by_kind(jobs, looked_at, kinds)
    keys = sums.levels["queue"].keys
    numbers = np.arange(len(keys), dtype=np.int32)
    if parts is not None:
        columns = (parts.column(name).to_pylist() for name in KEY)
        keys, numbers = keys.extended(list(zip(*columns, strict=True)))
    levels: dict[str, TaskSums] = {}
    taken_apart = [key for key, task in looked_at.items() if task.decision in _APART]
    periods = replace(sums.periods, without=taken_apart, number=numbers)
    excluded = {key: task.reason for key, task in looked_at.items() if task.decision == "excluded"}
    for level, rows in sums.levels.items():
        aside = [excluded.get(key) for key in rows.task.names.tolist()]
        of_task = fitters.factorise(aside, "mixed") if aside else rows.task
        marked = replace(rows, mixed=Labels(of_task.names, of_task.codes[rows.task.codes]))
        if parts is not None:
            split = np.isin(rows.task.names, taken_apart)
            marked = renumbered(marked[~split[rows.task.codes]], keys, numbers)
            marked = joined(marked, _sums_of_parts(parts, level, keys))
        levels[level] = marked
    n_buckets = int(levels["queue"].n_buckets.sum()) if parts is not None else sums.n_buckets
    renamed = {int(numbers[key]): task for key, task in looked_at.items()}
    return replace(sums, levels=levels, n_buckets=n_buckets, periods=periods), renamed


def _sums_of_parts(parts: pa.Table, level: str, keys: TaskKeys) -> TaskSums:
    named = parts.filter(pc.is_valid(parts.column(level)))
    merged = named.group_by([*KEY, level, "set_aside"], use_threads=False).aggregate(
        [([], "count_all"), *((column, "sum") for column in SUMS)]
    )
    task, codes = np.unique(keys.numbers(merged), return_inverse=True)
    return TaskSums(
        Labels(task.astype(np.int64), codes.astype(np.int32)),
        fitters.factorise(merged.column(level), level),
        {column: np.asarray(merged.column(f"{column}_sum"), np.float64) for column in SUMS},
        np.asarray(merged.column("count_all"), np.int64),
        fitters.factorise(merged.column("set_aside"), "mixed"),
        keys,
        Labels(np.empty(0, object), np.full(merged.num_rows, -1, np.int32)),
    )


def _kinds_of_jobs(
    jobs: pa.Table,
    key: Codes,
    looked_at: Mapping[int, MixedTask],
    kinds: Mapping[tuple[int, str | None], str],
) -> tuple[list[str | None], list[str | None]]:
    kind: list[str | None] = []
    aside: list[str | None] = []
    columns = (jobs.column(name).to_pylist() for name in ("transformation", "queue"))
    for number, transformation, queue in zip(key.tolist(), *columns, strict=True):
        task = looked_at[number]
        if task.decision == "split":
            kind.append(transformation)
            aside.append(kinds.get((number, transformation)) or None)
        else:
            out = queue in task.without
            kind.append(LEFT_OUT if out else None)
            aside.append(task.reason if out else None)
    return kind, aside


def _sums_by_kind(
    jobs: pa.Table, looked_at: Mapping[int, MixedTask], kinds: Mapping[tuple[int, str | None], str]
) -> pa.Table | None:
    key = np.asarray(jobs.column("key"))
    split = np.isin(key, [number for number, task in looked_at.items() if task.decision in _APART])
    if not split.any():
        return None
    mine = jobs.filter(pa.array(split))
    kind, aside = _kinds_of_jobs(mine, key[split], looked_at, kinds)
    events, cpu_s = (pc.cast(mine.column(name), pa.float64()) for name in ("events", "cpu_s"))
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        **{name: mine.column(name) for name in (*_KEY_OF_JOB, "queue", "cpu_model")},
        "work_kind": pa.array(kind, pa.string()),
        "set_aside": pa.array(aside, pa.string()),
        "n_jobs": pa.repeat(pa.scalar(1, pa.int64()), mine.num_rows),
        "events": events,
        "events_sq": pc.multiply(events, events),
        "cpu_s": cpu_s,
        "cpu_s_sq": pc.multiply(cpu_s, cpu_s),
        "events_cpu_s": pc.multiply(events, cpu_s),
        "core_s": mine.column("core_s"),
    }
    grouped = pa.table(columns).group_by([*KEY, "queue", "cpu_model", "set_aside"], use_threads=False)
    summed = grouped.aggregate([(name, "sum") for name in SUMS])
    return summed.rename_columns([name.removesuffix("_sum") for name in summed.column_names])
