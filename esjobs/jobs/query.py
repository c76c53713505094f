"""The coordinator's ad-hoc question: sums and ratios of the stored jobs by any field of the catalogue."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core import fields
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.query import Count, Metric, Sum, SumWhere
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.jobs.conditions import job_filters, parse_conditions
from esjobs.jobs.resolution import aggregate
from esjobs.store.base import JobStore
from esjobs.store.merge import plain


@dataclass(frozen=True)
class QueryMetric:
    """A number that ``esjobs query`` gives: a sum, or a ratio of sums over the jobs that have every term."""

    name: str
    unit: str
    meaning: str
    over: Metric
    under: Metric | None = None
    scale: float = 1.0


_TERMS_EFFICIENCY = ("cpu_s", "wall_s", "cores")
_TERMS_EVENT = ("cpu_s", "events")

METRICS: tuple[QueryMetric, ...] = (
    QueryMetric("jobs", "jobs", "number of jobs", Count("jobs")),
    QueryMetric("events", "events", "sum of events", Sum("events", "events")),
    QueryMetric("cpu_h", "h", "sum of CPU time", Sum("cpu_s", "cpu_sum"), scale=1 / 3600),
    QueryMetric("wall_h", "h", "sum of wall-clock time", Sum("wall_s", "wall_sum"), scale=1 / 3600),
    QueryMetric(
        "core_h", "core h", "sum of wall-clock time x cores", Sum("core_s", "core_sum"), scale=1 / 3600
    ),
    QueryMetric(
        "efficiency",
        "",
        "sum of CPU time over sum of wall-clock time x cores",
        SumWhere("cpu_s", _TERMS_EFFICIENCY, "efficiency_over"),
        SumWhere("core_s", _TERMS_EFFICIENCY, "efficiency_under"),
    ),
    QueryMetric(
        "cpu_s_per_event",
        "s",
        "sum of CPU time over sum of events",
        SumWhere("cpu_s", _TERMS_EVENT, "event_over"),
        SumWhere("events", _TERMS_EVENT, "event_under"),
    ),
)
"""Every metric, in the order of the documentation."""


def metric(name: str) -> QueryMetric:
    """Look a metric up, or raise :class:`UsageError` that lists them all."""
    for candidate in METRICS:
        if candidate.name == name:
            return candidate
    raise UsageError(f"no metric '{name}'; there are {', '.join(m.name for m in METRICS)}")


def query_jobs(
    store: JobStore,
    by: Sequence[str],
    metrics: Sequence[str],
    *,
    where: Sequence[str] = (),
    window: Window | None = None,
    clean: CleaningRules | None = None,
) -> pa.Table:
    """Group the stored jobs by fields and give the metrics, most jobs first; by day in order of time.

    Columns of groups are called as the fields were asked for: ``queue`` or ``site``.

    All stored jobs count, whatever their state, unless ``clean`` names rules. Ratios are ratios of sums over
    the jobs that have every term; null where no job has. Raises :class:`NoJobsError` when nothing matches.
    """
    chosen = [metric(name) for name in dict.fromkeys(metrics)]
    asked: dict[str, str] = {}
    for name in by:
        asked.setdefault(_key(name), name)
    keys = list(asked)
    wanted: dict[str, Metric] = {"jobs": Count("jobs")}
    for item in chosen:
        for part in (item.over, item.under):
            if part is not None:
                wanted[part.name] = part
    table = aggregate(
        store,
        keys,
        tuple(wanted.values()),
        window,
        where=job_filters(store, where, window),
        drops=clean.drops() if clean else (),
    ).table
    if pc.sum(table.column("jobs")).as_py() in (None, 0):
        raise NoJobsError(_nothing(store, window, where))
    table = plain(table)
    order = [(key, "ascending") for key in keys]
    in_time = any(fields.field(key).type in ("day", "time") for key in keys)
    table = table.sort_by(order if in_time else [("jobs", "descending"), *order])
    columns = [table.column(key) for key in keys] + [_values(table, item) for item in chosen]
    return pa.table(columns, names=[*asked.values(), *(item.name for item in chosen)])


def _key(name: str) -> str:
    field = fields.asked_field(name)
    if not field.groupable:
        raise UsageError(f"jobs cannot be grouped by '{name}'; see: esjobs fields")
    return field.name


def _values(table: pa.Table, item: QueryMetric) -> pa.ChunkedArray:
    over = table.column(item.over.name)
    if item.under is None:
        return over if item.scale == 1.0 else pc.multiply(over, item.scale)
    under = table.column(item.under.name)
    return pc.divide(pc.cast(over, pa.float64()), pc.if_else(pc.greater(under, 0), under, None))


def _nothing(store: JobStore, window: Window | None, where: Sequence[str]) -> str:
    span = store.span()
    if span.first is None or span.last is None:
        return "no jobs are stored; ingest some first: esjobs ingest"
    stored = Window.of_days(span.first.date(), span.last.date())
    condition = f" with {', '.join(where)}" if where else ""
    groupable = [name for name in parse_conditions(where) if fields.field(name).groupable]
    listed = "".join(f"; what there is: esjobs query --by {name}" for name in groupable)
    return f"no jobs{condition} in {window or stored}; the stored jobs lie in {stored}{listed}"
