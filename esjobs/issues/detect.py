"""The step: footprints, measures and issues of the jobs of some days, a day at a time.

A job with time series is judged on the day on which its series end, with its record; every other job on the
day on which it ended, by its record alone.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.identity import content_id
from esjobs.core.query import Count, Days, Query, Sum
from esjobs.core.report import RunReport
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.issues.block_jobs import block_jobs, day_blocks
from esjobs.issues.facts import Facts, fields_needed
from esjobs.issues.in_force import Judging
from esjobs.issues.judging import eligibility, judged
from esjobs.issues.measuring import Batch, measurements
from esjobs.issues.rows import aligned, issue_rows, measure_rows
from esjobs.issues.series_jobs import jobs_without_series
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.records.jobs.row_spool import RowSpool
from esjobs.records.series.blocks import Block
from esjobs.schema.issues import FOOTPRINTS, ISSUE_DAYS, ISSUES, MEASURES, TABLES
from esjobs.schema.series import SERIES
from esjobs.store.base import Change, Hide, JobStore

_log = logging.getLogger(__name__)
Progress = Callable[[str, int, int], None]


@dataclass
class _Books:
    """What became of the jobs of a day."""

    n_jobs: int = 0
    n_with_series: int = 0
    n_without_record: int = 0
    n_eligible: int = 0
    n_resampled: int = 0
    not_eligible: Counter[str] = field(default_factory=Counter)
    severities: Counter[str] = field(default_factory=Counter)


def detect(
    store: JobStore,
    judging: Judging,
    window: Window,
    *,
    rebuild: bool = False,
    progress: Progress | None = None,
) -> RunReport:
    """Make footprints, measures and issues of the days of a window that lack them, and publish each day.

    A day is made again when its jobs, their series, the rules or the descriptions of clusters changed;
    ``rebuild``: every day. Days without jobs lose what they had. Run again it leaves the same rows. Raises
    :class:`WindowError` unless the window is made of whole days.

    Memory: ``block_values`` of series and what detectors make of them, and the keys of the jobs with series
    of three days; rows wait in temporary files.
    """
    began = time.perf_counter()
    window.require_whole_days("detect")
    marks = marks_of(store, judging, window)
    within = [Days.of_window(window)]
    made = {
        row["day"]: row["mark"] for row in read_table(store, ISSUE_DAYS, within, ["day", "mark"]).to_pylist()
    }
    stale = [day for day, mark in sorted(marks.items()) if rebuild or made.get(day) != mark]
    total = _Books()
    counts: Counter[str] = Counter()
    for number, day in enumerate(stale):
        if progress:
            progress("detecting", number, len(stale))
        books, changes, rows = _day(store, judging, day, marks[day])
        store.publish(changes)
        counts.update(rows)
        _add(total, books)
    if progress:
        progress("detecting", len(stale), len(stale))
    emptied: list[Change] = [
        Hide(table, str(day)) for day in sorted(set(made) - set(marks)) for table in TABLES
    ]
    if emptied:
        store.publish(emptied)
    if stale or emptied:
        tidy(store)
    return replace(
        _report(judging, window, total, counts, len(stale), len(marks)), seconds=time.perf_counter() - began
    )


def marks_of(store: JobStore, judging: Judging, window: Window) -> dict[date, str]:
    """Of each day that has jobs or series, a fingerprint of all that its rows follow from.

    That is more than the day: series of the days beside it say which of its jobs are judged there, and its
    own series may belong to records of those days.
    """
    wider = Window.of_days(window.first_day - timedelta(days=1), window.last_day + timedelta(days=1))
    prints = {row["day"]: str(row["mark"]) for row in store.day_fingerprints(wider).to_pylist()}
    sums = (Count("n"), Sum("n_samples", "samples"))
    asked = Query(("day", "load_id"), sums, where=(Days.of_window(wider),), over=SERIES)
    series: dict[date, list[list[object]]] = {}
    for row in store.aggregate(asked).table.to_pylist():
        series.setdefault(row["day"], []).append([row["load_id"], row["n"], row["samples"]])

    def mark(day: date) -> str:
        beside = [day + timedelta(days=by) for by in (-1, 0, 1)]
        parts = {
            "by": judging.digest,
            "layouts": [table.layout for table in TABLES],
            "jobs": [prints.get(each, "") for each in (beside if day in series else [day])],
            "series": [sorted(series.get(each, []), key=str) for each in beside],
        }
        return content_id(parts)

    return {day: mark(day) for day in {*prints, *series} if window.first_day <= day <= window.last_day}


def _day(
    store: JobStore, judging: Judging, day: date, mark: str
) -> tuple[_Books, Sequence[Change], Counter[str]]:
    """The rows of a day, written and not yet published."""
    books = _Books()
    with ExitStack() as stack:
        spools = {
            table: stack.enter_context(RowSpool(table_schema(table), f"rows of {table.name}"))
            for table in (MEASURES, FOOTPRINTS, ISSUES)
        }
        names = fields_needed(judging.rules)
        for block in day_blocks(store, judging, day):
            _of_block(store, judging, day, names, block, spools, books)
        _of_records(store, judging, day, names, spools, books)
        rows = Counter({table.name: sum(spool.rows.values()) for table, spool in spools.items()})
        changes: list[Change] = [
            store.replace(table, str(day), spool.batches()) for table, spool in spools.items()
        ]
    account = rows_table(ISSUE_DAYS, [_account(judging, day, mark, books)])
    changes.append(store.replace(ISSUE_DAYS, str(day), account.to_batches()))
    return books, changes, rows


def _of_block(
    store: JobStore,
    judging: Judging,
    day: date,
    names: Sequence[str],
    block: Block,
    spools: dict[Table, RowSpool],
    books: _Books,
) -> None:
    """Footprints, measures and issues of the jobs of a block."""
    known = block_jobs(store, judging, day, names, block)
    jobs, facts = known.jobs, known.facts
    n = facts.n
    for batch in known.footprints:
        spools[FOOTPRINTS].add(batch)
    eligible, why_not = eligibility(judging.rules, facts)
    measured, evidence = {}, {}
    for measurement in measurements(Batch(block, facts.column("cores_used")), judging.wanted):
        key = (measurement.detector.name, measurement.variant)
        rows = measure_rows(day, jobs, block, measurement, eligible, why_not)
        spools[MEASURES].add(rows)
        measured[key] = aligned(measurement, n, block.n_samples)
        evidence[key] = pa.Table.from_batches([rows])
    for flagged in judged(judging.rules, facts, eligible, measured):
        _add_issues(spools[ISSUES], books, issue_rows(day, facts, jobs["end_time"], flagged, evidence))
    books.n_jobs += n
    books.n_with_series += n
    books.n_without_record += known.lacking
    books.n_eligible += int(eligible.sum())
    books.n_resampled += int(np.count_nonzero(block.resampled))
    books.not_eligible.update(reason for reason in why_not if reason)


def _of_records(
    store: JobStore,
    judging: Judging,
    day: date,
    names: Sequence[str],
    spools: dict[Table, RowSpool],
    books: _Books,
) -> None:
    """Issues of the jobs of a day without time series."""
    for jobs in jobs_without_series(store, names, day):
        facts = Facts(jobs, judging.clusters)
        ends = jobs.column("end_time").combine_chunks().cast(pa.timestamp("us", "UTC"))
        nobody: npt.NDArray[np.bool_] = np.zeros(facts.n, np.bool_)
        for flagged in judged(judging.rules, facts, nobody):
            _add_issues(spools[ISSUES], books, issue_rows(day, facts, ends, flagged))
        books.n_jobs += jobs.num_rows


def _add_issues(spool: RowSpool, books: _Books, rows: pa.RecordBatch) -> None:
    spool.add(rows)
    books.severities.update(rows.column("severity").to_pylist())


def _account(judging: Judging, day: date, mark: str, books: _Books) -> dict[str, Any]:
    return {
        "day": day,
        "mark": mark,
        "rules": judging.rules.digest,
        "n_jobs": books.n_jobs,
        "n_with_series": books.n_with_series,
        "n_without_record": books.n_without_record,
        "n_eligible": books.n_eligible,
        "not_eligible": json.dumps(dict(sorted(books.not_eligible.items())), ensure_ascii=False),
        "n_issues": sum(count for name, count in books.severities.items() if name != "info"),
        "n_resampled": books.n_resampled,
    }


def _add(total: _Books, books: _Books) -> None:
    total.n_jobs += books.n_jobs
    total.n_with_series += books.n_with_series
    total.n_without_record += books.n_without_record
    total.n_eligible += books.n_eligible
    total.n_resampled += books.n_resampled
    total.not_eligible.update(books.not_eligible)
    total.severities.update(books.severities)


def _report(
    judging: Judging, window: Window, total: _Books, counts: Counter[str], n_made: int, n_days: int
) -> RunReport:
    told = {
        "days made": n_made,
        "days that stand as they were": n_days - n_made,
        "jobs with series": total.n_with_series,
        "series without a record of their job": total.n_without_record,
        "jobs whose findings by detectors count": total.n_eligible,
        "measures": counts["measures"],
        "footprints": counts["footprints"],
        **{f"issues, {name}": total.severities[name] for name in ("critical", "major", "minor", "info")},
    }
    not_eligible = {f"not eligible: {reason}": n for reason, n in sorted(total.not_eligible.items())}
    return RunReport(
        "detect",
        content_id({"window": str(window), "by": judging.digest}),
        total.n_jobs,
        counts["issues"],
        0.0,
        rows_are="jobs",
        rows_become="issues",
        counts={**{name: count for name, count in told.items() if count}, **not_eligible},
        window=str(window),
    )
