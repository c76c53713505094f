"""Pipeline step: TALP reports joined with job records; reports without a job are kept as orphans."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from esjobs.core.identity import content_id
from esjobs.core.query import Count, Days, Filter, In, Query
from esjobs.core.report import RunReport
from esjobs.core.tables import Table
from esjobs.pop.applications import update_applications
from esjobs.pop.formulas import active_time, is_empty, judged
from esjobs.pop.from_processes import application_of
from esjobs.pop.worst import worst_branch
from esjobs.publish.publication import count_rows, read_table, rows_table, tidy
from esjobs.records.jobs.resolution import select
from esjobs.schema.pop import ORPHANS, POP, POP_REPORTS
from esjobs.store.base import Change, Hide, JobStore

POP_VERSION = 2
"""Version of the formulas; a change makes stored days stale."""

_IDS = 500  # Per question: clusters refuse long lists
_FACTS = ("source", "job_id", "queue", "user", "project", "application", "end_time", "wall_s", "cores")
_KEPT = tuple(name for name in POP.column_names if name not in ("load_id", "fingerprint"))

Row = Mapping[str, Any]


def join(
    store: JobStore, *, rebuild: bool = False, significance: float = 3.5, smallest: float = 0.05
) -> RunReport:
    """Update ``pop`` and ``orphans`` in one switch, then ``scaling`` and ``pop_changes``.

    Days are recomputed if reports came or went, or have no job yet; ``rebuild``: all days, also for changed
    job records. Idempotent. ``significance``, ``smallest``: thresholds of changes.

    Cost: four small queries, the reports of recomputed days, and the runs of their applications.
    """
    began = time.perf_counter()
    fingerprints = _fingerprints(store)
    stored = _stored_marks(store)
    # a report without a job may get one with any later load
    waiting = {day for (day,) in _groups(store, ORPHANS, "day")}
    touched: set[str | None] = set()
    stale = sorted(
        day
        for day in {*fingerprints, *stored}
        if rebuild or day in waiting or stored.get(day) != fingerprints.get(day)
    )
    changes: list[Change] = []
    n_in = n_pop = n_joined = n_orphans = 0
    for day in stale:
        rows = _reports_of(store, day) if day in fingerprints else []
        records = _records(store, sorted({row["job_id"] for row in rows}))
        joined, orphans = _matched(rows, records)
        # also those that the day had before: their scaling may be gone
        touched |= {name for (name,) in _groups(store, POP, "application", where=(Days("day", day, day),))}
        touched |= {record["application"] for _, record in joined}
        pop, aside = list(_pop(joined)), list(_aside(orphans))
        for row in (*pop, *aside):
            row["fingerprint"] = fingerprints.get(day)
        changes += _change(store, POP, day, pop) + _change(store, ORPHANS, day, aside)
        n_in += len(rows)
        n_pop += len(pop)
        n_joined += len({row["report"] for row, _ in joined})
        n_orphans += len(aside)
    # all days in one switch: readers see the reports of a day in exactly one of both tables
    if changes:
        store.publish(changes)
        update_applications(
            store, sorted(name for name in touched if name is not None), significance, smallest
        )
        tidy(store)
    return RunReport(
        "talp join",
        content_id({"step": "talp join", "days": [str(day) for day in stale]}),
        n_in,
        n_pop,
        time.perf_counter() - began,
        rows_are="rows of reports",
        rows_become="rows of pop",
        counts={"days": len(stale), "reports joined": n_joined, "reports without a job": n_orphans},
        notes=("reports without a job: esjobs show pop_orphans",) if n_orphans else (),
    )


def is_used(store: JobStore) -> bool:
    """True if there are reports, or results of reports."""
    return any(_groups(store, table, "day") for table in (POP_REPORTS, POP, ORPHANS))


def _fingerprints(store: JobStore) -> dict[date, str]:
    """Return for each day with reports a digest that changes with them."""
    made_of: dict[date, list[list[str]]] = defaultdict(list)
    for day, load_id, n in _groups(store, POP_REPORTS, "day", "load_id", count=True):
        made_of[day].append([load_id, str(n)])
    return {day: day_mark(loads) for day, loads in made_of.items()}


def day_mark(loads: Iterable[list[str]]) -> str:
    """Return a digest of everything the rows of a day depend on: loads, formulas, columns."""
    made_by = {"version": POP_VERSION, "layouts": [POP.layout, ORPHANS.layout]}
    return content_id({"loads": sorted(loads), **made_by})


def _stored_marks(store: JobStore) -> dict[date, str | None]:
    found: dict[date, str | None] = {}
    for table in (POP, ORPHANS):
        for day, fingerprint in _groups(store, table, "day", "fingerprint"):
            # two fingerprints of a day cannot be, but if they were the day is made again
            found[day] = fingerprint if found.get(day, fingerprint) == fingerprint else None
    return found


def _groups(
    store: JobStore, table: Table, *keys: str, count: bool = False, where: tuple[Filter, ...] = ()
) -> list[tuple[Any, ...]]:
    answer = store.aggregate(Query(keys, (Count("n"),), where=where, over=table)).table
    names = (*keys, "n") if count else keys
    return list(zip(*(answer.column(name).to_pylist() for name in names), strict=True))


def _change(store: JobStore, table: Table, day: date, rows: list[dict[str, Any]]) -> list[Change]:
    if rows:
        return [store.replace(table, str(day), rows_table(table, rows).to_batches())]
    stored = count_rows(store, table, [Days("day", day, day)])
    return [Hide(table, str(day))] if stored else []


def _reports_of(store: JobStore, day: date) -> list[Row]:
    """Return the rows of a day; of a report in several loads those of the last."""
    latest: dict[tuple[str, ...], Row] = {}
    rows = read_table(store, POP_REPORTS, [Days("day", day, day)]).to_pylist()
    # in the order of loads, so that the last one stays
    for row in sorted(rows, key=lambda row: (row["loaded_at"], row["load_id"])):
        latest[row["report"], row["region"], row["level"], row["unit"]] = row
    undated = {row["report"] for row in latest.values() if row["time_from"] != "report"}
    elsewhere = _first_days(store, sorted(undated))
    return [row for row in latest.values() if elsewhere.get(row["report"], day) >= day]


def _first_days(store: JobStore, reports: Sequence[str]) -> dict[str, date]:
    """Return the first day of each report: copies without a time of their own may be later."""
    first: dict[str, date] = {}
    for start in range(0, len(reports), _IDS):
        where = [In("report", tuple(reports[start : start + _IDS]))]
        for row in read_table(store, POP_REPORTS, where, ["report", "day"]).to_pylist():
            first[row["report"]] = min(row["day"], first.get(row["report"], row["day"]))
    return first


def _records(store: JobStore, job_ids: Sequence[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for start in range(0, len(job_ids), _IDS):
        where = [In("job_id", tuple(job_ids[start : start + _IDS]))]
        for record in select(store, list(_FACTS), None, where=where).read_all().to_pylist():
            found[record["job_id"]].append(record)
    return found


def _matched(
    rows: Sequence[Row], records: Mapping[str, list[Row]]
) -> tuple[list[tuple[Row, Row]], list[tuple[Row, str]]]:
    """Return rows with the record of their job, and rows without one with the reason."""
    joined: list[tuple[Row, Row]] = []
    orphans: list[tuple[Row, str]] = []
    for row in rows:
        named = [each for each in records.get(row["job_id"], ()) if row["source"] in (None, each["source"])]
        if len(named) == 1:
            joined.append((row, named[0]))
        elif named:
            sources = ", ".join(sorted(each["source"] for each in named))
            orphans.append(
                (row, f"several sources have a job of this id: {sources}; load the report with --set source=")
            )
        else:
            of_source = f" of the source {row['source']}" if row["source"] else ""
            orphans.append((row, f"no record of this job{of_source} is stored"))
    return joined, orphans


def _aside(orphans: Sequence[tuple[Row, str]]) -> Iterator[dict[str, Any]]:
    regions: dict[str, set[str]] = defaultdict(set)
    firsts: dict[str, tuple[Row, str]] = {}
    for row, reason in orphans:
        regions[row["report"]].add(row["region"])
        firsts.setdefault(row["report"], (row, reason))
    for report, (row, reason) in firsts.items():
        kept = {name: row[name] for name in ("report", "job_id", "step", "source", "time", "file", "day")}
        yield {**kept, "n_regions": len(regions[report]), "reason": reason}


def _pop(joined: Sequence[tuple[Row, Row]]) -> Iterator[dict[str, Any]]:
    """Yield one row per row of a report, and application rows made from processes if missing."""
    launches: dict[tuple[Any, ...], list[tuple[Row, Row]]] = defaultdict(list)
    for row, record in joined:
        part = row["part_of"]
        # parts of one launch are reports of their own, and belong together by their name
        launch = (row["report"],) if part is None else (row["job_id"], row["step"], part)
        launches[record["source"], *launch].append((row, record))
    for pairs in launches.values():
        rows = [row for row, _ in pairs]
        for row in (*rows, *_missing_applications(rows)):
            yield _row(row, pairs[0][1])


def _missing_applications(rows: Sequence[Row]) -> Iterator[Row]:
    complete = {row["region"] for row in rows if row["level"] == "application"}
    processes = [row for row in rows if row["level"] == "process" and row["region"] not in complete]
    parts = sorted({row["report"] for row in rows})
    latest: datetime = max(row["time"] for row in rows)
    for row in application_of(processes):
        if rows[0]["part_of"] is None:
            yield row
        else:
            # parts of a launch have no report of their own for the whole: an id that follows from theirs
            yield {**row, "report": content_id({"parts": parts}, 40), "time": latest}


def _row(row: Row, record: Row) -> dict[str, Any]:
    kept = {name: row[name] for name in _KEPT if name in row}
    metrics = judged(row)
    mpi, wall, cores = metrics["mpi_parallel_efficiency"], record["wall_s"], record["cores"]
    return {
        **kept,
        **metrics,
        **{name: record[name] for name in ("source", "queue", "user", "project", "application", "end_time")},
        "main": bool(row["main"]) and row["level"] == "application",
        "core_h": None if wall is None or cores is None else wall * cores / 3600,
        "status": "no_data" if is_empty(row) else metrics["parallel_efficiency_status"],
        "worst": worst_branch(metrics) if row["level"] == "application" else None,
        "active_s": active_time(row),
        "score_mpi_talp": None if mpi is None else 100 * (1 - mpi),
    }
