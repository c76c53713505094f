"""Core-hours of jobs that did not finish, by their primary error or its category."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.conditions import named, written
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.numbers import core_h, exact_percent, many
from esjobs.core.states import UNFINISHED
from esjobs.core.window import Window
from esjobs.records.answer import Answer
from esjobs.records.errors.categories import ERROR_TABLES, RETRIED, ErrorTable
from esjobs.records.jobs.query import query_jobs
from esjobs.schema.errors import BY
from esjobs.store.base import JobStore
from esjobs.store.merge import coded, encoded, floats

NEW_DAYS = 28
"""Days before a window in which a new error has no job."""
NEW_JOBS, NEW_PLACES = 5, 2
"""A new error has at least so many jobs, on at least so many tasks or nodes."""

UNFINISHED_JOBS = written("state", "=", UNFINISHED)
_HOURS = ("core_h", "lost_core_h", "cancelled_core_h")
_SCHEMA = pa.schema(
    [
        *(("error", pa.string()), ("error_category", pa.string()), ("core_h", pa.float64())),
        *(("share", pa.float64()), ("n_jobs", pa.int64()), ("n_tasks", pa.int64()), ("n_sites", pa.int64())),
        *(("who", pa.string()), ("sentence", pa.string())),
        *(("lost_core_h", pa.float64()), ("cancelled_core_h", pa.float64())),
    ]
)
_NO_CODES = "The records have no error codes."


@dataclass
class _Group:
    """Sums of one error, or of one category."""

    n_jobs: int = 0
    hours: dict[str, float] = field(default_factory=dict)
    tasks: set[str | None] = field(default_factory=set)
    sites: set[str | None] = field(default_factory=set)

    def add(self, error: "_Group") -> None:
        """Add the jobs of an error; unknown hours stay unknown until others are known."""
        self.n_jobs += error.n_jobs
        for name, hours in error.hours.items():
            self.hours[name] = self.hours.get(name, 0.0) + hours
        self.tasks |= error.tasks
        self.sites |= error.sites


def lost(
    store: JobStore, by: str, window: Window | None, where: Sequence[str] = (), *, new: bool = False
) -> Answer:
    """Return the work lost by category or by error, most core-hours first.

    ``core_h``: core-hours of all jobs that did not finish; of these ``lost_core_h`` failed and
    ``cancelled_core_h`` were cancelled. ``share``: of all core-hours but those of the category ``retried``,
    attempts that the system replaced; a job has one error, so that shares add up to 1. ``who`` acts on it.
    ``new``: only errors without a job in the 28 days before the window, of at least 5 jobs in at least 2
    tasks or on 2 nodes.

    Cost: one grouped query (error x site x task), one sum, two more for ``new``. Raises :class:`NoJobsError`
    without any jobs, or any before the window for ``new``, :class:`UsageError` for another grouping, or
    ``new`` without a window.
    """
    if by not in BY:
        raise UsageError(f"lost work has no grouping '{by}'; use {' or '.join(BY)}")
    if new and window is None:
        raise UsageError("new errors are those of a window; specify one, such as 7d or 2025-W26")
    errors = _by_error(_unfinished(store, ("error", "site", "task_id"), ("jobs", *_HOURS), where, window))
    table = ERROR_TABLES.of(store)
    # of all errors, also where only new ones are shown
    total = sum(of.hours.get("core_h", 0.0) for error, of in errors.items() if _is_lost(error, table))
    if new and window is not None:
        fresh = _new_errors(store, {error for error in errors if error is not None}, where, window)
        errors = {error: of for error, of in errors.items() if error in fresh}
    answer = pa.Table.from_pylist(list(_ordered(errors, by, table, total)), schema=_SCHEMA)
    if by == "error_category":
        answer = answer.drop_columns(["error"])
    return Answer(
        answer,
        (*_notes(answer, new=new), *_without_state(store, where, window)),
        title=f"{'new errors' if new else 'lost work'} by {by}",
    )


def _unfinished(
    store: JobStore, by: Sequence[str], metrics: Sequence[str], where: Sequence[str], window: Window | None
) -> pa.Table:
    # conditions on one field are alternatives: a second one on the state would widen the question
    states = () if any(named(each) == "state" for each in where) else (UNFINISHED_JOBS,)
    try:
        table = query_jobs(store, (*by, "state"), metrics, where=(*where, *states), window=window)
    except NoJobsError:
        # raises with the nearest span where there are no jobs at all
        query_jobs(store, (), ("jobs",), where=tuple(where), window=window)
        return pa.table({name: pa.nulls(0) for name in (*by, "state", *metrics)})
    # a condition of the user may let finished jobs through
    return table.filter(pc.is_in(table.column("state"), pa.array(sorted(UNFINISHED), pa.string())))


def _by_error(groups: pa.Table) -> dict[str | None, _Group]:
    """Return the sums of each error, of groups by error, site and task."""
    if not groups.num_rows:
        return {}
    of = encoded(groups)
    error, errors = coded(of, "error")
    jobs = np.bincount(error, of.column("jobs").to_numpy(), len(errors))
    found = {number: _Group(int(jobs[number])) for number in np.unique(error).tolist()}
    for name in _HOURS:
        values = floats(of.column(name))
        # an error without a known value has no entry: unknown is not 0
        present = ~np.isnan(values)
        sums = np.bincount(error[present], values[present], len(errors))
        for number in np.unique(error[present]).tolist():
            found[number].hours[name] = float(sums[number])
    for name in ("site", "task_id"):
        code, texts = coded(of, name)  # 0 is missing
        for each in np.unique(error[code > 0] * len(texts) + code[code > 0]).tolist():
            group = found[each // len(texts)]
            (group.sites if name == "site" else group.tasks).add(texts[each % len(texts)])
    return {errors[number]: group for number, group in found.items()}


def _without_state(store: JobStore, where: Sequence[str], window: Window | None) -> Iterator[str]:
    if any(named(each) == "state" for each in where):
        return
    unknown = (*where, "state is missing")
    try:
        (row,) = query_jobs(store, (), ("jobs", "core_h"), where=unknown, window=window).to_pylist()
    except NoJobsError:
        return
    if row["jobs"]:
        hours = "" if row["core_h"] is None else f", {core_h(row['core_h'])}"
        yield f"not included: {many(row['jobs'], 'job')} of unknown state{hours}"


def _is_lost(error: str | None, table: ErrorTable) -> bool:
    category = table.category(error)
    return category is None or category.name != RETRIED


def _ordered(
    errors: Mapping[str | None, _Group], by: str, table: ErrorTable, total: float
) -> Iterator[dict[str, Any]]:
    groups: dict[str | None, _Group] = {}
    for error, of in errors.items():
        category = table.category(error)
        of_category = None if category is None else category.name
        groups.setdefault(error if by == "error" else of_category, _Group()).add(of)
    found = [_row(name, group, by, table) for name, group in groups.items()]
    for row in sorted(found, key=lambda row: (-(row["core_h"] or 0.0), str(row[by]))):
        counts = row["error_category"] != RETRIED and row["core_h"] is not None and total > 0
        yield {**row, "share": row["core_h"] / total if counts else None}


def _row(name: str | None, group: _Group, by: str, table: ErrorTable) -> dict[str, Any]:
    row: dict[str, Any] = {
        "error": name if by == "error" else None,
        "error_category": None,
        **{hours: group.hours.get(hours) for hours in _HOURS},
        "n_jobs": group.n_jobs,
        "n_tasks": len(group.tasks) or None,
        "n_sites": len(group.sites) or None,
        "sentence": "" if name is not None else _NO_CODES,
    }
    category = table.category(name) if by == "error" else table.categories.get(name or "")
    if category is not None:
        row |= {"error_category": category.name, "who": category.who, "sentence": category.sentence}
    if by == "error" and name is not None:
        row["sentence"] = table.sentence(name)
    return row


def _new_errors(store: JobStore, errors: set[str], where: Sequence[str], window: Window) -> set[str]:
    """Return the errors that the days before the window lack, and that are more than one accident."""
    before = Window(window.start - timedelta(days=NEW_DAYS), window.start)
    try:
        # of all jobs: a month before without failures is an answer, one without jobs is not
        earlier = query_jobs(store, ("error",), ("jobs",), where=tuple(where), window=before).to_pylist()
    except NoJobsError as error:
        raise NoJobsError(
            f"no jobs in the {NEW_DAYS} days before {window}, so nothing shows which errors are new; use a "
            "later window"
        ) from error
    fresh = errors - {row["error"] for row in earlier}
    if not fresh:
        return fresh
    chosen = (*where, written("error", "=", sorted(fresh)))
    n_jobs, tasks, nodes = Counter[str](), defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for row in _unfinished(store, ("error", "task_id", "node"), ("jobs",), chosen, window).to_pylist():
        n_jobs[row["error"]] += row["jobs"]
        tasks[row["error"]] |= {row["task_id"]} - {None}
        nodes[row["error"]] |= {row["node"]} - {None}
    return {
        error
        for error in fresh
        if n_jobs[error] >= NEW_JOBS and max(len(tasks[error]), len(nodes[error])) >= NEW_PLACES
    }


def _notes(answer: pa.Table, *, new: bool) -> Iterator[str]:
    if not answer.num_rows:
        yield "no new errors" if new else "all jobs finished, or their state is unknown"
    total, cancelled = (pc.sum(answer[name]).as_py() for name in ("core_h", "cancelled_core_h"))
    if cancelled and total:
        share = exact_percent(cancelled / total)
        yield f"{core_h(cancelled)} of {core_h(total)} ({share}) are of cancelled jobs"
    without = pc.sum(answer.filter(pc.field("error_category").is_null())["n_jobs"]).as_py()
    if without:
        yield f"{without:,} jobs have no error code; load their records with codes (docs/sources.md)"
