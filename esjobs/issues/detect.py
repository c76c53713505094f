"""Pipeline step: daily footprints, measures and issues of jobs.

A job with time series is judged on the day on which its series end; any other on the day on which it ended,
by its record.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.identity import content_id
from esjobs.core.query import Count, Days, Query, Sum
from esjobs.core.report import RunReport
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.issues.block_jobs import BlockJobs, block_jobs, day_blocks
from esjobs.issues.cost import costed, without_infos
from esjobs.issues.detectors.batch import Batch
from esjobs.issues.facts import Facts, fields_needed
from esjobs.issues.in_force import Judging
from esjobs.issues.judging import eligibility, judged
from esjobs.issues.measuring import measurements
from esjobs.issues.rows import aligned, issue_rows, measure_rows
from esjobs.issues.series_jobs import beside, jobs_without_series
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.records.jobs.late_jobs import DaysMade, LateJobs, adding, fingerprints_by_day, progress_of
from esjobs.records.jobs.row_spool import RowSpool
from esjobs.schema.issues import FOOTPRINTS, ISSUE_DAYS, ISSUES, MEASURES
from esjobs.schema.series import SERIES
from esjobs.store.base import Change, Hide, JobStore

Progress = Callable[[str, int, int], None]
_BY_DAY = (ISSUES, MEASURES, FOOTPRINTS, ISSUE_DAYS)
_COUNTED = ("n_jobs", "n_with_series", "n_without_record", "n_eligible", "n_resampled")


@dataclass
class _Balance:
    """Counts of jobs of one or more days: ``n_jobs`` and so on, by reason, and of findings by severity.

    ``infos``: findings without rows, by rule.
    """

    n: Counter[str] = field(default_factory=Counter)
    not_eligible: Counter[str] = field(default_factory=Counter)
    severities: Counter[str] = field(default_factory=Counter)
    infos: Counter[str] = field(default_factory=Counter)

    def add(self, other: "_Balance") -> None:
        """Add the counts of another day."""
        self.n.update(other.n)
        self.not_eligible.update(other.not_eligible)
        self.severities.update(other.severities)
        self.infos.update(other.infos)


def detect(
    store: JobStore,
    judging: Judging,
    window: Window,
    *,
    rebuild: bool = False,
    progress: Progress | None = None,
) -> RunReport:
    """Make footprints, measures and issues of stale days of a window, and publish each day.

    A day is stale if jobs, series, rules or cluster descriptions changed; ``rebuild``: all days are. Days
    without jobs lose their rows. Idempotent. Raises :class:`WindowError` unless the window is whole days.
    Memory: ``block_values`` of series and their intermediate results; rows wait in temporary files.
    """
    began = time.perf_counter()
    window.require_whole_days("detect")
    # read before anything is made: what changes meanwhile is seen by the next run
    fingerprints = fingerprints_of(store, judging, window)
    stored = read_table(store, ISSUE_DAYS, [Days.of_window(window)], ["day", "fingerprint"])
    made = fingerprints_by_day(stored.to_pylist())
    days_made = _progress(store, judging, {} if rebuild else made, fingerprints)
    stale, late = sorted(fingerprints.keys() - days_made.fresh), days_made.late
    total = _Balance()
    for number, day in enumerate(stale):
        if progress:
            progress("detecting", number, len(stale))
        balance, changes = _day(store, judging, day, fingerprints[day], late.get(day))
        # day by day: an interrupted run keeps what it has made
        store.publish(changes)
        total.add(balance)
    if progress:
        progress("detecting", len(stale), len(stale))
    emptied = _emptied(sorted(set(made) - set(fingerprints)))
    if emptied:
        store.publish(emptied)
    if stale or emptied:
        tidy(store)
    return _report(judging, window, total, len(stale), len(fingerprints), began)


def _emptied(days: Iterable[date]) -> list[Change]:
    """Return the changes that hide all rows of days whose jobs are gone."""
    return [Hide(table, str(day)) for day in days for table in _BY_DAY]


def fingerprints_of(store: JobStore, judging: Judging, window: Window) -> dict[date, str]:
    """Return by day with jobs or series a digest of everything its rows depend on.

    Adjacent days matter, too: a job is judged on the day on which its series end, with a record of a day
    before or after.
    """
    wider = Window.of_days(window.first_day - timedelta(days=1), window.last_day + timedelta(days=1))
    prints = {row["day"]: str(row["fingerprint"]) for row in store.day_fingerprints(wider).to_pylist()}
    sums = (Count("n"), Sum("n_samples", "samples"))
    query = Query(("day", "load_id"), sums, where=(Days.of_window(wider),), over=SERIES)
    series: dict[date, list[list[object]]] = {}
    for row in store.aggregate(query).table.to_pylist():
        series.setdefault(row["day"], []).append([row["load_id"], row["n"], row["samples"]])

    def fingerprint(day: date) -> str:
        # a job without series is of its own day alone; its record may end up to a day from its series
        near = beside(day)
        jobs = [prints.get(each, "") for each in (near if day in series else [day])]
        return _digest(judging, jobs, [series.get(each, []) for each in near])

    return {day: fingerprint(day) for day in {*prints, *series} if window.first_day <= day <= window.last_day}


def _digest(judging: Judging, jobs: list[str], series: Sequence[list[list[object]]]) -> str:
    parts = {
        "by": judging.digest,
        "layouts": [table.layout for table in _BY_DAY],
        "jobs": jobs,
        "series": [sorted(each, key=str) for each in series],
    }
    return content_id(parts)


def _progress(
    store: JobStore, judging: Judging, made: Mapping[date, set[str]], now: Mapping[date, str]
) -> DaysMade:
    """Compare days with their jobs; with series near, a day with late jobs is judged as a whole."""
    # as made of a day without series: with series near, late jobs and earlier ones are not independent
    nothing: list[list[list[object]]] = [[], [], []]
    return progress_of(store, made, now, lambda _, fingerprint: _digest(judging, [fingerprint], nothing))


def _counts(balance: _Balance) -> dict[str, Any]:
    return {
        **{name: balance.n[name] for name in _COUNTED},
        "not_eligible": _by_name(balance.not_eligible),
        "infos": _by_name(balance.infos),
        # tags are infos: nobody has to act
        "n_issues": balance.severities.total() - balance.severities["info"],
    }


def _day(
    store: JobStore, judging: Judging, day: date, fingerprint: str, late: LateJobs | None
) -> tuple[_Balance, Sequence[Change]]:
    """Write the rows of a day, or those of its late jobs beside them, unpublished."""
    balance = _Balance()
    write = store.replace if late is None else adding(store).add
    with ExitStack() as stack:
        # rows of all blocks together may be more than memory
        spools = {
            table: stack.enter_context(RowSpool(table_schema(table), f"rows of {table.name}"))
            for table in (MEASURES, FOOTPRINTS, ISSUES)
        }
        names = fields_needed(judging.rules)
        for block in day_blocks(store, judging, day) if late is None else ():
            for of_block in block_jobs(store, judging, day, names, block):
                _of_block(judging, day, of_block, spools, balance)
        _of_records(store if late is None else late.store, judging, day, names, spools, balance)
        balance.n.update({table.name: sum(spool.rows.values()) for table, spool in spools.items()})
        changes: list[Change] = [
            write(table, str(day), spool.batches())
            for table, spool in spools.items()
            # a day is replaced as a whole, also by nothing; late jobs only add
            if late is None or spool.rows
        ]
    row = {"day": day, "fingerprint": fingerprint, "rules": judging.rules.digest, **_counts(balance)}
    changes.append(write(ISSUE_DAYS, str(day), rows_table(ISSUE_DAYS, [row]).to_batches()))
    return balance, changes


def _by_name(counts: Mapping[str, int]) -> str:
    return json.dumps(dict(sorted(counts.items())), ensure_ascii=False)


def _of_block(
    judging: Judging, day: date, of_block: BlockJobs, spools: dict[Table, RowSpool], balance: _Balance
) -> None:
    """Add footprints, measures and issues of the jobs of a block."""
    block = of_block.block
    jobs, facts = of_block.jobs, of_block.facts
    for batch in of_block.footprints:
        spools[FOOTPRINTS].add(batch)
    eligible, why_not = eligibility(judging.rules, facts)
    measured, evidence = {}, {}
    for measurement in measurements(Batch(block, facts.column("cores_used")), judging.wanted):
        key = (measurement.detector.name, measurement.variant)
        rows = measure_rows(day, jobs, block, measurement, eligible, why_not)
        spools[MEASURES].add(rows)
        measured[key] = aligned(measurement, facts.n, block.n_samples)
        # rows as they are stored, so that issues show what the measures say
        evidence[key] = pa.Table.from_batches([rows])
    for cost in costed(list(judged(judging.rules, facts, eligible, measured)), facts):
        _add_issues(spools[ISSUES], balance, issue_rows(day, facts, jobs["end_time"], cost, evidence))
    balance.not_eligible.update(reason for reason in why_not if reason)
    balance.n.update(
        n_jobs=facts.n,
        n_with_series=facts.n,
        n_without_record=of_block.lacking,
        n_eligible=int(eligible.sum()),
        n_resampled=int(np.count_nonzero(block.resampled)),
    )


def _of_records(
    store: JobStore,
    judging: Judging,
    day: date,
    names: Sequence[str],
    spools: dict[Table, RowSpool],
    balance: _Balance,
) -> None:
    """Add issues of the jobs of a day without time series; findings of severity info are only counted."""
    for jobs in jobs_without_series(store, names, day):
        facts = Facts(jobs, judging.clusters)
        ends = jobs.column("end_time").combine_chunks().cast(pa.timestamp("us", "UTC"))
        # nothing was measured, so that findings of detectors count for none of them
        found, infos = without_infos(list(judged(judging.rules, facts, np.zeros(facts.n, np.bool_))), facts.n)
        balance.infos.update(infos)
        for cost in costed(found, facts):
            _add_issues(spools[ISSUES], balance, issue_rows(day, facts, ends, cost))
        balance.n["n_jobs"] += jobs.num_rows


def _add_issues(spool: RowSpool, balance: _Balance, rows: pa.RecordBatch) -> None:
    spool.add(rows)
    balance.severities.update(rows.column("severity").to_pylist())


def _report(
    judging: Judging, window: Window, total: _Balance, n_made: int, n_days: int, began: float
) -> RunReport:
    counts = {
        "days computed": n_made,
        "days up to date": n_days - n_made,
        "jobs with series": total.n["n_with_series"],
        "series without a record of their job": total.n["n_without_record"],
        "jobs whose detector findings count": total.n["n_eligible"],
        "measures": total.n["measures"],
        "footprints": total.n["footprints"],
        **{f"issues, {name}": total.severities[name] for name in ("critical", "major", "minor", "info")},
    }
    not_eligible = {f"not eligible: {reason}": n for reason, n in sorted(total.not_eligible.items())}
    counted = {f"counted only: {rule}": n for rule, n in sorted(total.infos.items())}
    return RunReport(
        "detect",
        content_id({"window": str(window), "by": judging.digest}),
        total.n["n_jobs"],
        total.n["issues"],
        time.perf_counter() - began,
        rows_are="jobs",
        rows_become="issues",
        counts={**{name: count for name, count in counts.items() if count}, **not_eligible, **counted},
        window=str(window),
    )
