"""Jobs to buckets, a day at a time: what changed is recomputed, everything is accounted for."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import table_schema
from esjobs.core.errors import BooksError, NoJobsError, NoResultError, PartialAnswerError
from esjobs.core.query import Count, Days, Query, Sum, SumProduct
from esjobs.core.report import RunReport
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window, format_time
from esjobs.core.words import INVALID
from esjobs.publish.publication import Outcome, read_table
from esjobs.records.jobs import resolution
from esjobs.records.jobs.day_spans import adjacent, spans
from esjobs.records.jobs.late_jobs import DaysMade, LateJobs, adding, fingerprints_by_day, progress_of
from esjobs.records.names.cpu_models import RESOLVER_VERSION
from esjobs.schema.jobs import BUCKETS, DAYS
from esjobs.store.base import Change, CostEstimate, Expiring, Hide, JobStore, Span

_KEYS = ("day", "task_id", "core_class", "queue", "cpu_model", "processing_type")
BUCKET_KEYS = resolution.store_keys(_KEYS)
"""Group keys of buckets in a store; the CPU model is resolved above it."""
BUCKET_METRICS = (
    Count("n_jobs"),
    Sum("events", "events"),
    SumProduct("events", "events", "events_sq"),
    Sum("cpu_s", "cpu_s"),
    SumProduct("cpu_s", "cpu_s", "cpu_s_sq"),
    SumProduct("events", "cpu_s", "events_cpu_s"),
    Sum("wall_s", "wall_s"),
    Sum("core_s", "core_s"),
    Sum("cpu_s_per_event", "cpe_sum"),
    SumProduct("cpu_s_per_event", "cpu_s_per_event", "cpe_sq"),
)
"""Sums of a bucket. Nothing here may contain the declared corepower."""

# Times a span is aggregated: under a feed that never pauses its books might never balance.
_ATTEMPTS = 3
_log = logging.getLogger(__name__)

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many units are done, and of how many."""


def aggregate(
    store: JobStore,
    window: Window,
    rules: CleaningRules,
    *,
    run: str,
    rebuild: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Make the daily buckets of a window that are missing or stale, and account for every job.

    A day is stale if its jobs, the cleaning rules or the CPU resolver changed, or its buckets do not hold the
    jobs of its books; ``rebuild`` takes every day as stale. Days without jobs are retired: those of the
    window, and those before or after all stored days. Where an archive has forgotten the jobs of a day, its
    buckets stay and count, unless ``rebuild`` is set.

    Raises :class:`BooksError` if jobs in = binned + dropped does not hold after three attempts (nothing is
    published), :class:`NoJobsError` for a window without jobs and such days.

    Cost: one fingerprint of the window, one aggregation per span of stale days of up to 250 000 jobs. Memory:
    the buckets of a span, or of the largest day.
    """
    began = time.perf_counter()
    window.require_whole_days("aggregate")
    days = _survey(store, window, rules, rebuild=rebuild)
    able = store.capabilities()
    if days.stale and isinstance(store, CostEstimate):
        store.foresee([_bucket_query(run, rules) for run in _contiguous(days.stale, {}, len(days.stale))])
    work = _Rewriting(store, rules, days.existing, days.books, [*days.emptied])
    # before the stale days, which a day joins if its late jobs cannot be added
    late = days.found.late
    added = {day for day in late if work.add_late(day, late[day], days.prints[day]["fingerprint"])}
    report_progress = progress or (lambda *_: None)
    remade = [day for day in days.stale if day not in added]
    for span in _contiguous(remade, days.n_jobs, able.days_per_aggregate):
        report_progress("aggregating", days.stale.index(span[0]), len(days.stale))
        work.make_again(span, days.prints)
    report_progress("aggregating", len(days.stale), len(days.stale))
    n_days = len(days.prints) + len(days.kept)
    report = _report(run, window, rules, work.books, n_days, len(days.stale), work.n_buckets)
    notes = tuple(_notes(days.kept, days.lost, able.undated))
    return Outcome(replace(report, notes=notes, seconds=time.perf_counter() - began), written=work.changes)


@dataclass(frozen=True)
class _Days:
    """State of the days of a window. ``prints``: of days with jobs; ``existing``: rows of their books.

    ``kept``: days whose jobs an archive has forgotten; ``lost``: those whose buckets lack jobs.
    """

    prints: Mapping[date, Mapping[str, Any]]
    existing: Sequence[Mapping[str, Any]]
    kept: set[date]
    lost: Sequence[date]
    emptied: Sequence[Hide]
    found: DaysMade

    @cached_property
    def stale(self) -> list[date]:
        """Days to be made again, in order."""
        return [day for day in sorted(self.prints) if day not in self.found.fresh]

    @property
    def n_jobs(self) -> dict[date, int]:
        """Stored jobs by day."""
        return {day: row["n_jobs"] for day, row in self.prints.items()}

    @property
    def books(self) -> list[Any]:
        """Rows of the books that stay."""
        return [row for row in self.existing if row["day"] in self.found.fresh | self.kept]


def _survey(store: JobStore, window: Window, rules: CleaningRules, *, rebuild: bool) -> _Days:
    """Compare the buckets of a window with its jobs.

    Raises :class:`NoJobsError` for a window without any; its buckets are retired then.
    """
    # first of all: jobs that come later unbalance the books of their day, and it is made again
    prints = {row["day"]: row for row in store.day_fingerprints(window).to_pylist()}
    existing = read_table(store, DAYS, [Days.of_window(window)]).to_pylist()
    lost = lost_days(store, window, existing)
    without_jobs = {row["day"] for row in existing} - prints.keys()
    kept = set() if rebuild else forgotten_days(store, without_jobs) - set(lost)
    emptied = _emptied(store, without_jobs, kept)
    # before the error: days whose jobs are gone must not keep their buckets
    if not prints and not kept:
        store.publish(emptied)
        raise NoJobsError(_nothing_stored(store, window))
    # a lost day without jobs is among those emptied: there is nothing to make it from
    lost = [day for day in lost if day in prints]
    # lost days say in their books what their buckets no longer hold
    made = {} if rebuild else _made(existing, prints.keys() - set(lost), rules)
    return _Days(prints, existing, kept, lost, emptied, progress_of(store, made, _current(prints), _same))


def _current(prints: Mapping[date, Mapping[str, Any]]) -> dict[date, str]:
    return {day: row["fingerprint"] for day, row in prints.items()}


@dataclass
class _Rewriting:
    """Buckets and books of stale days on their way into a store; nothing is visible before the switch."""

    store: JobStore
    rules: CleaningRules
    existing: Sequence[Mapping[str, Any]]
    books: list[Any]
    changes: list[Change]
    n_buckets: int = 0

    def add_late(self, day: date, jobs: LateJobs, fingerprint: str) -> bool:
        """Add late jobs beside the rows of their day; False if the day must be made again after all."""
        of_late = {"n_jobs": jobs.n_jobs, "fingerprint": fingerprint}
        # whatever comes or goes meanwhile makes it a day to be made again
        with suppress(BooksError, PartialAnswerError):
            ((_, buckets, rows),) = _days_made(jobs.store, [day], self.rules, {day: of_late})
            # a day counts with both parts: the books of its rows, and those of its late jobs
            self.books += (row for row in self.existing if row["day"] == day)
            self._write(adding(self.store).add, day, buckets, rows)
            return True
        return False

    def make_again(self, span: list[date], prints: Mapping[date, Mapping[str, Any]]) -> None:
        """Replace the rows of days in a row."""
        for day, buckets, rows in _balanced_span(self.store, span, self.rules, prints):
            self._write(self.store.replace, day, buckets, rows)

    def _write(
        self, write: Callable[..., Change], day: date, buckets: pa.Table, rows: list[dict[str, object]]
    ) -> None:
        books = pa.Table.from_pylist(rows, schema=table_schema(DAYS))
        self.changes.append(write(BUCKETS, str(day), buckets.to_batches()))
        self.changes.append(write(DAYS, str(day), books.to_batches()))
        self.books += rows
        self.n_buckets += buckets.num_rows


def _made(
    existing: Iterable[Mapping[str, Any]], days: Collection[date], rules: CleaningRules
) -> dict[date, set[str]]:
    """Return the fingerprints that the books of some days name; of days made by other rules none."""
    of_days = [row for row in existing if row["day"] in days]
    others = {row["day"] for row in of_days if not _is_current(row, rules)}
    return {day: prints for day, prints in fingerprints_by_day(of_days).items() if day not in others}


def _same(day: date, fingerprint: str) -> str:
    del day  # the buckets of a day depend on no other day
    return fingerprint


def _notes(kept: Collection[date], lost: Sequence[date], undated: int) -> Iterator[str]:
    if undated:
        yield f"{undated:,} documents have no end time; they belong to no day and are not counted"
    if kept:
        yield (
            f"{len(kept)} days from {min(kept)} on kept their buckets, although the archive no longer "
            "has their jobs. Remove these buckets with --rebuild and a window of these days, or with esjobs "
            "prune"
        )
    if lost:
        yield f"{len(lost)} days from {lost[0]} on had lost buckets in the store; they were aggregated again"


def require_rules(store: JobStore, window: Window, rules: CleaningRules) -> None:
    """Raise :class:`NoResultError` unless every bucket of the window was made under these rules.

    A run is named by its rules: fitting other buckets under that name would be wrong.
    """
    days = Days.of_window(window)
    made = read_table(store, DAYS, [days], ["day", "rules", "resolver"]).to_pylist()
    others = {row["day"] for row in made if not _is_current(row, rules)}
    if others:
        raise NoResultError(
            f"{len(others)} days in {window} were aggregated with other cleaning rules or CPU names; run: "
            f"esjobs aggregate --window {window} (add --rebuild to drop days whose jobs are gone)"
        )


def require_buckets(store: JobStore, window: Window) -> None:
    """Raise :class:`BooksError` unless the buckets of the window hold the jobs that their books say."""
    columns = ["day", "kind", "n_jobs"]
    lost = lost_days(store, window, read_table(store, DAYS, [Days.of_window(window)], columns).to_pylist())
    if lost:
        raise BooksError(
            f"{len(lost)} days in {window}, first {lost[0]}: bucket counts differ from the recorded ones "
            f"because another program deleted rows; run: esjobs aggregate --window {window}"
        )


def lost_days(store: JobStore, window: Window, books: Iterable[Mapping[str, Any]]) -> list[date]:
    """Return the days whose buckets do not hold the jobs of their ``books`` (rows of ``days``), in order.

    Cost: a sum per day over the buckets of the window, in the store.
    """
    binned: Counter[date] = Counter()
    for row in books:
        if row["kind"] == "binned":
            binned[row["day"]] += row["n_jobs"]
    if not binned:
        return []
    days = Days.of_window(window)
    per_day = Query(("day",), (Sum("n_jobs", "n_jobs"),), where=(days,), over=BUCKETS)
    sums = store.aggregate(per_day).table
    n_in_buckets = dict(zip(sums.column("day").to_pylist(), sums.column("n_jobs").to_pylist(), strict=True))
    return sorted(day for day, jobs in binned.items() if n_in_buckets.get(day, 0) != jobs)


def buckets_of_jobs(store: JobStore, window: Window, rules: CleaningRules) -> tuple[int, int]:
    """Return the number of buckets of the jobs of a window, and of these jobs; nothing is written."""
    answer = resolution.aggregate(store, _KEYS, (Count("n_jobs"),), window, drops=rules.drops())
    books = answer.books.to_pylist()
    return answer.table.num_rows, sum(_count(row) for row in books if row["kind"] != "note")


def days_behind(store: JobStore, window: Window, rules: CleaningRules) -> dict[date, int]:
    """Return the days of a window whose buckets are missing or outdated, with the jobs stored now."""
    return days_and_late_jobs(store, window, rules)[0]


def days_and_late_jobs(
    store: JobStore, window: Window, rules: CleaningRules
) -> tuple[dict[date, int], dict[date, int]]:
    """Return :func:`days_behind`, and the late jobs of those days to which buckets are added."""
    columns = ["day", "fingerprint", "rules", "resolver"]
    made = read_table(store, DAYS, [Days.of_window(window)], columns).to_pylist()
    prints = {row["day"]: row for row in store.day_fingerprints(window).to_pylist()}
    found = progress_of(store, _made(made, prints.keys(), rules), _current(prints), _same)
    behind = {day: prints[day]["n_jobs"] for day in sorted(prints) if day not in found.fresh}
    return behind, {day: jobs.n_jobs for day, jobs in found.late.items()}


def _is_current(row: Mapping[str, object], rules: CleaningRules) -> bool:
    return (row["rules"], row["resolver"]) == (rules.digest, buckets_version())


def buckets_version() -> str:
    """Version of everything but jobs and rules that buckets follow from: names of CPU models, columns."""
    return f"{RESOLVER_VERSION}-{BUCKETS.layout}"


def forgotten_days(store: JobStore, days: Collection[date]) -> set[date]:
    """Of some days that have no jobs those whose jobs went because they were old."""
    return store.forgotten(days) if days and isinstance(store, Expiring) else set()


def _emptied(store: JobStore, in_window: set[date], kept: set[date]) -> list[Hide]:
    # Beyond all stored days no day has jobs; days between are not read, so that a night costs the same after
    # years.
    if isinstance(store, Expiring) and store.forgets:
        return retired_days(in_window - kept)
    first, last = _days_of(store.span())
    beyond = [Days("day", date.min, date.max)]
    if first is not None and last is not None:
        beyond = [Days("day", date.min, _shifted(first, -1)), Days("day", _shifted(last, 1), date.max)]
    unstored = {
        day for days in beyond for day in read_table(store, DAYS, [days], ["day"]).column("day").to_pylist()
    }
    unstored = {day for day in unstored if first is None or not first <= day <= last} - in_window
    return retired_days((in_window - kept) | (unstored - forgotten_days(store, unstored)))


def _days_of(span: Span) -> tuple[date, date] | tuple[None, None]:
    if span.first is None or span.last is None:
        return None, None
    return span.first.date(), span.last.date()


def _shifted(day: date, by: int) -> date:
    # the calendar's ends stay where they are
    try:
        return day + timedelta(days=by)
    except OverflowError:
        return day


def _bucket_query(days: Sequence[date], rules: CleaningRules) -> Query:
    return Query(BUCKET_KEYS, BUCKET_METRICS, Window.of_days(days[0], days[-1]), drops=rules.drops())


def retired_days(days: Iterable[date]) -> list[Hide]:
    """Take the buckets and the books of some days out of sight, once published."""
    return [Hide(table, str(day)) for day in sorted(days) for table in (BUCKETS, DAYS)]


def _nothing_stored(store: JobStore, window: Window) -> str:
    span = store.span()
    if span.first is None or span.last is None:
        return f"no jobs in {window}: the store is empty; load jobs: esjobs ingest"
    nearest = Window.of_days(span.first.date(), span.last.date())
    return f"no jobs in {window}; the stored jobs lie in {nearest} ({format_time(span.first)} to " + (
        f"{format_time(span.last)}): use --window {nearest}"
    )


def _contiguous(days: list[date], n_jobs: Mapping[date, int], longest: int) -> Iterator[list[date]]:
    for run in adjacent(days):
        yield from spans(run, n_jobs, longest)


def _balanced_span(
    store: JobStore, span: list[date], rules: CleaningRules, prints: Mapping[date, Mapping[str, Any]]
) -> list[tuple[date, pa.Table, list[dict[str, object]]]]:
    window = Window.of_days(span[0], span[-1])
    # jobs that come in between the fingerprint and the aggregation unbalance the books of their day
    for _ in range(_ATTEMPTS - 1):
        try:
            return _days_made(store, span, rules, prints)
        except (BooksError, PartialAnswerError) as error:
            _log.warning("%s is aggregated again: %s", window, error)
        prints = {row["day"]: row for row in store.day_fingerprints(window).to_pylist()}
    return _days_made(store, span, rules, prints)


def _days_made(
    store: JobStore, span: list[date], rules: CleaningRules, prints: Mapping[date, Mapping[str, Any]]
) -> list[tuple[date, pa.Table, list[dict[str, object]]]]:
    return [
        (day, buckets, _balance(day, prints.get(day), buckets, account, rules))
        for day, buckets, account in _aggregate_span(store, span, rules)
    ]


def _aggregate_span(
    store: JobStore, span: list[date], rules: CleaningRules
) -> Iterator[tuple[date, pa.Table, list[dict[str, object]]]]:
    window = Window.of_days(span[0], span[-1])
    answer = resolution.aggregate(store, _KEYS, BUCKET_METRICS, window, drops=rules.drops())
    buckets = answer.table.select(BUCKETS.column_names)
    books = answer.books.to_pylist()
    for day in span:
        # a large day comes alone: its buckets are not copied
        of_day = buckets if len(span) == 1 else buckets.filter(pc.equal(buckets.column("day"), day))
        yield day, of_day, [row for row in books if row["day"] == day]


def _balance(
    day: date,
    stored: Mapping[str, Any] | None,
    buckets: pa.Table,
    account: list[dict[str, object]],
    rules: CleaningRules,
) -> list[dict[str, object]]:
    n_stored, fingerprint = (0, "") if stored is None else (stored["n_jobs"], stored["fingerprint"])
    binned = pc.sum(buckets.column("n_jobs")).as_py() or 0
    booked = {
        kind: sum(_count(row) for row in account if row["kind"] == kind) for kind in ("binned", "dropped")
    }
    # three questions to the store, which agree unless jobs come or go between them
    if binned != booked["binned"] or n_stored != booked["binned"] + booked["dropped"]:
        raise BooksError(
            f"{day}: {n_stored} stored jobs, but {binned} in buckets; recorded are {booked['binned']} binned "
            f"and {booked['dropped']} dropped. Nothing was published; run again, because jobs may have "
            "arrived meanwhile"
        )
    made_from = {"fingerprint": fingerprint, "rules": rules.digest, "resolver": buckets_version()}
    return [{**row, **made_from, **_shares(row)} for row in account]


def _shares(row: Mapping[str, object]) -> dict[str, object]:
    # a dashboard adds up columns, not conditions
    binned, dropped = row["kind"] == "binned", row["kind"] == "dropped"
    return {
        "n_in": row["n_jobs"] if binned or dropped else 0,
        "n_used": row["n_jobs"] if binned else 0,
        "n_dropped": row["n_jobs"] if dropped else 0,
        "n_invalid": row["n_jobs"] if dropped and row["outcome"] == INVALID else 0,
    }


def _count(row: dict[str, object]) -> int:
    return cast("int", row["n_jobs"])


def _report(
    run: str,
    window: Window,
    rules: CleaningRules,
    books: list[dict[str, object]],
    n_days: int,
    n_stale: int,
    n_buckets: int,
) -> RunReport:
    # a job counts under the first rule it fails: reasons are listed in the order of the rules
    in_order = {rule.reason: 0 for rule in rules.drops()}
    totals: dict[str, dict[str, int]] = {"binned": {}, "dropped": in_order, "note": {}}
    for row in books:
        kind = totals[str(row["kind"])]
        kind[str(row["outcome"])] = kind.get(str(row["outcome"]), 0) + _count(row)
    n_binned = sum(totals["binned"].values())
    dropped = {reason: count for reason, count in totals["dropped"].items() if count}
    return RunReport(
        "aggregate",
        run,
        n_binned + sum(dropped.values()),
        n_binned,
        0.0,
        rows_are="jobs",
        rows_become="jobs in buckets",
        dropped=dropped,
        counts={**totals["note"], "days": n_days, "days recomputed": n_stale, "new buckets": n_buckets},
        window=str(window),
    )
