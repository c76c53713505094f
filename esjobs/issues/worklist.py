"""Issues as a list of work: names in the order of what their jobs lost."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from esjobs.core.arguments import Names, listed
from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.numbers import count, many
from esjobs.core.query import Count, Days, Filter, In, Maximum, Metric, Minimum, Query, Sum, SumProduct
from esjobs.core.window import Window
from esjobs.publish.publication import finite, read_table
from esjobs.schema.issues import ISSUE_DAYS, ISSUES, SEVERITIES
from esjobs.store.base import JobStore

BY = (
    "user",
    "project",
    "queue",
    "application",
    "processing_type",
    "cpu_model",
    "job_name",
    "detector",
    "job",
)
"""Fields by which issues are grouped."""
_JOB = ("source", "job_id")
_HOURS = ("lost_node_h", "node_h", "weighted_node_h", "idle_core_h", "idle_gpu_h")
_VALUES = ("value_low", "value_high")
_ORDER = ("lost_node_h", "weighted_node_h", "idle_core_h", "n_jobs")


def work_list(
    store: JobStore,
    by: Sequence[str] = ("user",),
    *,
    window: Window | None = None,
    where: Mapping[str, Names] | None = None,
    least: str = "minor",
) -> pa.Table:
    """Return one row per name with issues, those of most lost node-hours first.

    ``n_jobs``: jobs, not findings. Hours are sums over jobs of the largest of any finding; by ``detector``,
    or of one, they are those of its findings, which overlap with those of others. ``value_low``,
    ``value_high``: extreme values, by ``detector`` only. ``worst``: highest severity; ``first``, ``last``:
    ends of such jobs. Equal losses: node-hours x weight of the severity. Cost: one grouped query. Raises
    :class:`UsageError` for an unknown field, :class:`NoResultError` without issues.
    """
    keys, chosen = _keys(by), where or {}
    filters: list[Filter] = [In("severity", SEVERITIES[SEVERITIES.index(least) :])]
    filters += [In(name, listed(values)) for name, values in chosen.items()]
    metrics = _of_findings() if "detector" in (*keys, *chosen) else _of_jobs()
    query = Query(keys, metrics, window, tuple(filters), over=ISSUES)
    rows = [_row(row) for row in store.aggregate(query).table.to_pylist()]
    if not rows:
        raise NoResultError(_why_none(store, window, least))
    rows.sort(key=lambda row: (*(-(row[name] or 0.0) for name in _ORDER), *(str(row[key]) for key in keys)))
    return pa.Table.from_pylist(rows, _schema(keys, metrics))


def _why_none(store: JobStore, window: Window | None, least: str) -> str:
    days = [] if window is None else [Days.of_window(window)]
    n_days = read_table(store, ISSUE_DAYS, days, ["day"]).num_rows
    if not n_days:
        return "no issues found here; run: esjobs detect"
    counted = counted_only(store, window)
    found = f"no issues of severity {least} or above found here in {many(n_days, 'examined day')}"
    return f"{found}. {counted}" if counted else found


RECURRING = 3
"""Least jobs of one name in which an issue recurs."""


def recurring(
    store: JobStore, what: str, name: str, *, window: Window | None = None, least: str = "minor"
) -> list[Mapping[str, Any]]:
    """Return issues of a user or project that recur over jobs of one name, as rows of :func:`work_list`."""
    try:
        rows = work_list(store, ("job_name", "detector"), window=window, where={what: name}, least=least)
    except NoResultError:
        return []
    return [row for row in rows.to_pylist() if row["job_name"] and row["n_jobs"] >= RECURRING]


def left_out(
    store: JobStore, window: Window | None, where: Mapping[str, Names] | None, least: str
) -> str | None:
    """Return a sentence about findings of a lower severity than the listed ones; None without any."""
    lower = SEVERITIES[: SEVERITIES.index(least)]
    # all severities are listed: only what never became a row is left out
    if not lower:
        return counted_only(store, window)
    filters = [In("severity", lower), *(In(name, listed(values)) for name, values in (where or {}).items())]
    found = store.aggregate(Query((), (Count("n"),), window, tuple(filters), over=ISSUES)).table.to_pylist()
    n = sum(row["n"] for row in found)
    return f"{many(n, 'finding')} below {least} not listed: --min-severity {lower[0]}" if n else None


def counted_only(store: JobStore, window: Window | None = None) -> str | None:
    """Return a sentence about findings without rows, those of severity info in jobs without series."""
    days = [] if window is None else [Days.of_window(window)]
    of_days = read_table(store, ISSUE_DAYS, days, ["infos"]).column("infos").to_pylist()
    counts = sum((Counter(json.loads(each)) for each in of_days if each), Counter[str]())
    if not counts:
        return None
    rules = ", ".join(f"{rule} {count(n)}" for rule, n in counts.most_common())
    return f"Of severity info, in jobs without time series, only counted: {rules}"


def _keys(by: Sequence[str]) -> tuple[str, ...]:
    for name in by:
        if name not in BY:
            raise UsageError(f"unknown field '{name}'; use one of: {', '.join(BY)}")
    return tuple(key for name in by for key in (_JOB if name == "job" else (name,)))


_COMMON = (Maximum("severity_rank", "rank"), Minimum("end_time", "first"), Maximum("end_time", "last"))


def _of_findings() -> tuple[Metric, ...]:
    # a rule finds a job once: its findings are jobs
    sums = tuple(Sum(name, name) for name in _HOURS)
    return (Count("n_jobs"), *sums, Minimum("value", "value_low"), Maximum("value", "value_high"), *_COMMON)


def _of_jobs() -> tuple[Metric, ...]:
    idle = tuple(Sum(f"job_{name}", name) for name in ("lost_node_h", "idle_core_h", "idle_gpu_h"))
    # only the worst finding of a job counts it
    size = tuple(SumProduct(name, "n_jobs", name) for name in ("node_h", "weighted_node_h"))
    return (Sum("n_jobs", "n_jobs"), *idle, *size, *_COMMON)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: finite(row[name]) for name in (*_HOURS, *_VALUES) if name in row}
    return {**row, **numbers, "worst": SEVERITIES[int(row["rank"])]}


def _schema(keys: Sequence[str], metrics: Sequence[Metric]) -> pa.Schema:
    names = {metric.name for metric in metrics}
    hours = [(name, pa.float64()) for name in (*_HOURS, *_VALUES) if name in names]
    return pa.schema(
        [
            *((key, pa.string()) for key in keys),
            ("n_jobs", pa.int64()),
            ("worst", pa.string()),
            *hours,
            ("first", pa.timestamp("us", tz="UTC")),
            ("last", pa.timestamp("us", tz="UTC")),
        ]
    )
