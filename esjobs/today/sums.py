"""Sums of days as arrays: made by the store, a row per day, queue, task and outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.core.arrow import table_schema
from esjobs.core.identity import content_id
from esjobs.core.query import Count, Days, Either, In, Metric, Missing, Moment, Query, Range, Sum
from esjobs.core.states import FAILED, FAILED_KINDS, FINISHED
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.jobs.day_spans import spans
from esjobs.records.jobs.late_jobs import adding, fingerprints_by_day, progress_of
from esjobs.records.names.cpu_models import resolve_names
from esjobs.records.names.sites import Sites
from esjobs.schema.today import DAY_SUMS, OWNERS, WAIT_EDGES_S, WAITED
from esjobs.store.base import Change, JobStore
from esjobs.store.merge import plain

DAYS_BACK = 28
"""Days of the past that an expectation is made of."""
MOST_CATEGORIES = 12
MANY_NEW = 10  # Jobs of a category on one day that are worth a name
OTHER = "other"
_KEYS = ("day", "queue", "task_id", "processing_type", "core_class", *OWNERS)
_PAIR = ("core_s", "cpu_s")
# More CPU time than cores have seconds is an error of the record
_POSSIBLE = (Range("efficiency", le=1.2),)
MEASURED = (_PAIR, _POSSIBLE)  # Fields and filters of jobs whose efficiency counts
_METRICS: tuple[Metric, ...] = (
    Count("n_jobs"),
    Sum("core_s", "core_s"),
    Moment((), "n_measured", having=_PAIR, where=_POSSIBLE),
    Moment(("core_s",), "measured_core_s", having=_PAIR, where=_POSSIBLE),
    Moment(("cpu_s",), "cpu_s", having=_PAIR, where=_POSSIBLE),
    Moment((), "n_memory", having=("max_rss_b", "cores")),
    Moment(("max_rss_b",), "memory_b", having=("cores",)),
    Moment(("cores",), "memory_cores", having=("max_rss_b",)),
    *(
        Moment((), name, where=(Range("queue_s", ge=low, lt=high),))
        for name, low, high in zip(WAITED, (0.0, *WAIT_EDGES_S), (*WAIT_EDGES_S, None), strict=True)
    ),
)
ADDED = (
    *("n_jobs", "core_s", "n_measured", "measured_core_s", "cpu_s"),
    *("n_memory", "memory_b", "memory_cores", "n_unknown_cpu"),
)
"""Columns of ``day_sums`` that are summed, beside the bins of waiting times."""
MOST_UNKNOWN = 500  # CPU strings without a model that a query names; rarer ones count as known


@dataclass(frozen=True)
class Sums:
    """Sums of several days. ``day``: ordinals; ``codes``: by dimension, into ``names``.

    ``waited``: jobs by waiting time, a column per bin.
    """

    day: Ints
    codes: Mapping[str, Ints]
    names: Mapping[str, Sequence[str]]
    n_jobs: Floats
    core_s: Floats
    n_measured: Floats
    measured_core_s: Floats
    cpu_s: Floats
    n_memory: Floats
    memory_b: Floats
    memory_cores: Floats
    n_unknown_cpu: Floats
    waited: Floats

    def rows(self, chosen: Mask) -> "Sums":
        """Return some rows."""
        values = {name: getattr(self, name)[chosen] for name in ("day", *ADDED, "waited")}
        return replace(self, codes={name: code[chosen] for name, code in self.codes.items()}, **values)

    @property
    def finished(self) -> Mask:
        """Rows of finished jobs."""
        rows: Mask = self.codes["outcome"] == 0
        return rows


def make_sums(store: JobStore, window: Window) -> list[Change]:
    """Sum the days of a window whose jobs changed since they were summed; nothing is visible yet.

    Cost: one fingerprint of the window, one grouped query per span of changed days.
    """
    found = store.day_fingerprints(window).to_pylist()
    jobs_of = {row["day"]: row["n_jobs"] for row in found}
    prints = fingerprints_of_days(found)
    columns = ["day", "fingerprint"]
    made = read_table(store, DAY_SUMS, [Days.of_window(window)], columns).group_by(columns).aggregate([])
    existing = fingerprints_by_day(made.to_pylist())
    days_made = progress_of(store, existing, prints, _digest)
    stale, late = sorted(prints.keys() - days_made.fresh), days_made.late
    changes: list[Change] = []
    for day, some in late.items():
        table = _summed(some.store, Window.of_days(day, day))
        changes.append(adding(store).add(DAY_SUMS, str(day), _rows_of(day, table, prints[day])))
    jobs = {day: jobs_of[day] for day in stale if day not in late}
    for span in spans(list(jobs), jobs, store.capabilities().days_per_aggregate):
        table = _summed(store, Window.of_days(span[0], span[-1]))
        changes += [store.replace(DAY_SUMS, str(day), _rows_of(day, table, prints[day])) for day in span]
    return changes


def _rows_of(day: date, table: pa.Table, mark: str) -> list[pa.RecordBatch]:
    rows = table.filter(pc.equal(table.column("day"), day))
    rows = rows.append_column("fingerprint", pa.array([mark] * rows.num_rows, pa.string()))
    batches: list[pa.RecordBatch] = (
        rows.select(DAY_SUMS.column_names).cast(table_schema(DAY_SUMS)).to_batches()
    )
    return batches


def fingerprints_of_days(days: list[dict[str, Any]]) -> dict[date, str]:
    """Return what the sums of days are known by: fingerprints of their jobs, and the columns of the sums."""
    return {row["day"]: _digest(row["day"], row["fingerprint"]) for row in days}


def _digest(day: date, fingerprint: str) -> str:
    del day
    return content_id({"jobs": fingerprint, "layout": DAY_SUMS.layout, "outcomes": OUTCOMES})


def _summed(store: JobStore, window: Window) -> pa.Table:
    keys = (*_KEYS, *OUTCOMES)
    where = (In("state", (*FINISHED, *FAILED)),)
    metrics = (*_METRICS, Moment((), "n_unknown_cpu", where=(_unknown_cpu(store, window),)))
    table = plain(store.aggregate(Query(keys, metrics, window, where, books=False)).table)
    outcomes = pa.array(map(outcome, *(table.column(name).to_pylist() for name in OUTCOMES)), pa.string())
    table = table.append_column("outcome", outcomes)
    grouped = table.group_by([*_KEYS, "outcome"], use_threads=False)
    summed = grouped.aggregate([(name, "sum") for name in (*ADDED, *WAITED)])
    return summed.rename_columns([name.removesuffix("_sum") for name in summed.column_names])


def _unknown_cpu(store: JobStore, window: Window) -> Either:
    """Return the filter of jobs whose record names no CPU, or one of no known model."""
    counted = plain(store.aggregate(Query(("cpu_raw",), (Count("n"),), window, books=False)).table)
    rows = counted.sort_by([("n", "descending"), ("cpu_raw", "ascending")])
    names = [name for name in rows.column("cpu_raw").to_pylist() if name is not None]
    unknown = [name for name, model in zip(names, resolve_names(names), strict=True) if model is None]
    listed = (In("cpu_raw", tuple(unknown[:MOST_UNKNOWN])),) if unknown else ()
    return Either((Missing("cpu_raw"), *listed))


OUTCOMES = ("state", "error", "exit_code")
"""Fields that tell outcomes apart."""
_KIND_OF_STATE = {state: kind for kind, states in FAILED_KINDS.items() for state in states}


def outcome(state: str, error: str | None, code: str | None) -> str:
    """Return the category of an ended job: its state with the primary error, else with the exit code.

    >>> outcome("failed", "pilot:1099", "65"), outcome("failed", None, "65"), outcome("timeout", None, "0:0")
    ('failed, pilot:1099', 'failed, exit code 65', 'timeout')
    """
    if state in FINISHED:
        return FINISHED[0]
    kind = _KIND_OF_STATE[state]
    if error:
        return f"{kind}, {error}"
    return kind if code in (None, "", "0", "0:0") else f"{kind}, exit code {code}"


def read_sums(store: JobStore, window: Window) -> pa.Table:
    """Read the rows of a window, sorted: sums of equal rows must be equal to the last digit."""
    rows = read_table(store, DAY_SUMS, [Days.of_window(window)])
    return rows.sort_by([(name, "ascending") for name in (*_KEYS, "outcome")])


def of_days(table: pa.Table, window: Window) -> pa.Table:
    """Return the rows of some days: names of other days must not change what a night says."""
    day = table.column("day")
    return table.filter(pc.and_(pc.greater_equal(day, window.first_day), pc.less_equal(day, window.last_day)))


def sums_of(table: pa.Table, sites: Sites) -> Sums:
    """Return rows of ``day_sums`` as arrays; a queue without a site is its own."""
    queue, queues = _codes(table.column("queue"))
    of_queue, site_names = _codes(pa.array([sites.of(name).name for name in queues], pa.string()))
    kinds = pa.array(
        [
            ", ".join(filter(None, pair))
            for pair in zip(
                *(table.column(name).to_pylist() for name in ("processing_type", "core_class")), strict=True
            )
        ],
        pa.string(),
    )
    task = table.column("task_id").fill_null("")
    coded = {
        "site": (of_queue[queue], site_names),
        "queue": (queue, queues),
        "kind": _codes(kinds),
        # a task may mix kinds, whose jobs are not alike
        "task": _codes(pc.binary_join_element_wise(task, kinds, pa.scalar("\x1f"))),
        "outcome": _outcomes(table),
        **{name: _owners(table.column(name)) for name in OWNERS},
    }
    numbers = {
        name: table.column(name).fill_null(0).to_numpy().astype(np.float64) for name in (*ADDED, *WAITED)
    }
    waited = np.column_stack([numbers.pop(name) for name in WAITED])
    days = table.column("day").cast(pa.int32()).to_numpy().astype(np.int64) + date(1970, 1, 1).toordinal()
    return Sums(
        days,
        {name: code for name, (code, _) in coded.items()},
        {name: names for name, (_, names) in coded.items()},
        **numbers,
        waited=waited,
    )


def _codes(column: pa.ChunkedArray | pa.Array) -> tuple[Ints, list[str]]:
    column = column.fill_null("")
    names = sorted(pc.unique(column).to_pylist())
    code = pc.index_in(column, value_set=pa.array(names, pa.string()))
    return code.to_numpy(zero_copy_only=False).astype(np.int64), names


def _owners(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Return codes, 0 for jobs without one, and names."""
    code, names = _codes(column)
    return (code, names) if names[:1] == [""] else (code + 1, ["", *names])


def _jobs_of_outcomes(table: pa.Table) -> dict[str, int]:
    counts = table.select(["outcome", "n_jobs"]).group_by("outcome").aggregate([("n_jobs", "sum")])
    return dict(zip(*(counts.column(name).to_pylist() for name in ("outcome", "n_jobs_sum")), strict=True))


def _outcomes(table: pa.Table) -> tuple[Ints, list[str]]:
    """Return codes of outcomes: 0 finished, then categories of failures by number of jobs; rare ones last.

    Many of a category on the last day count as on all: one that is new must not be among the rest.
    """
    column = table.column("outcome")
    of = _jobs_of_outcomes(table)
    last = _jobs_of_outcomes(table.filter(pc.equal(table.column("day"), pc.max(table.column("day")))))
    of |= {name: max(of[name], n * DAYS_BACK) for name, n in last.items() if n >= MANY_NEW}
    of.pop(FINISHED[0], None)
    ordered = sorted(of, key=lambda name: (-of[name], name))
    names = [FINISHED[0], *ordered[: MOST_CATEGORIES - 1]]
    if len(ordered) >= MOST_CATEGORIES:
        names.append(OTHER)
    code = pc.index_in(column, value_set=pa.array(names, pa.string())).fill_null(len(names) - 1)
    return code.to_numpy(zero_copy_only=False).astype(np.int64), names
