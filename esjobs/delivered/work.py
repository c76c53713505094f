"""Delivered work of groups of jobs, with the declared and with the measured score of each queue."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.numbers import core_h, exact_percent, many
from esjobs.core.states import FAILED, FINISHED
from esjobs.core.window import Window
from esjobs.delivered.availability import Availability, read_availability
from esjobs.delivered.pledges import Pledges, part_of, pledge_notes, pledged, read_pledges
from esjobs.delivered.scores import Measured, measured_scores, pieces, run_for
from esjobs.publish.stored import StoredRun
from esjobs.records.answer import Answer
from esjobs.records.declared.origin import Declared
from esjobs.records.declared.values import declared_values, stored_window
from esjobs.records.jobs.query import query_jobs
from esjobs.schema.delivered import BY
from esjobs.store.base import JobStore

_KEYS = ("queue", "state")
_METRICS = ("jobs", "core_h", "cpu_h", "hs06_h")
_NUMBERS = (
    *("core_h", "cpu_core_h", "useful_core_h", "failed_core_h", "declared_h", "measured_h", "measured_h_err"),
    *("recorded_h", "pledge_h", "of_pledge_percent", "available_share", "of_available_percent"),
    *("gain_h", "gain_h_err", "no_declared_core_h", "no_measured_core_h"),
)
_ONE_SCALE = "HS06 = HS23"
Row = Mapping[str, Any]
Groups = dict[tuple[Any, ...], "Sums"]


@dataclass
class Sums:
    """Sums of one group; ``measured``: by queue, hours times score, with the errors of that score."""

    n_jobs: int = 0
    totals: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    measured: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    compared: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    has: set[str] = field(default_factory=set)

    def add(self, name: str, value: float | None) -> None:
        """Add a value; one that is unknown leaves the sum unknown until another is known."""
        if value is not None:
            self.totals[name] += value
            self.has.add(name)

    def total(self, name: str) -> float | None:
        """Return a sum, None without any known term."""
        return self.totals[name] if name in self.has else None


@dataclass(frozen=True)
class Question:
    """Grouping of a question and what its groups are compared with.

    ``one_scale``: HS06-hours and HS23-hours are added up, one to one. ``stored``: days of all jobs, outside
    of which nothing is known of work.
    """

    by: tuple[str, ...]
    window: Window
    where: tuple[str, ...] = ()
    pledges: Pledges = field(default_factory=Pledges)
    one_scale: bool = False
    stored: Window | None = None
    availability: Availability | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the jobs: federations follow from sites, scores from queues."""
        sites = ("site",) if "federation" in self.by else ()
        return tuple(dict.fromkeys((*(name for name in self.by if name != "federation"), *sites, *_KEYS)))

    def benchmark(self, name: str | None) -> str | None:
        """Return the benchmark of a group."""
        return _ONE_SCALE if self.one_scale and name is not None else name

    def available(self, group: Row) -> float | None:
        """Return the share of the window of a group without declared outages; None without downtimes."""
        if self.availability is None:
            return None
        window = part_of(self.window, group.get("month"))
        return self.availability.share(self.pledges, group["federation"], group.get("site"), window)

    def knows(self, group: Row) -> bool:
        """True if jobs are stored of the days of a group."""
        month = group.get("month")
        of_month = self.window if month is None else Window.parse(month)
        return (
            self.stored is not None and of_month.start < self.stored.end and self.stored.start < of_month.end
        )

    @property
    def compares(self) -> bool:
        """True if its groups can have a pledge: it belongs to a federation and is not divided."""
        return "federation" in self.by and set(self.by) <= {"federation", "site", "month"}


def delivered(
    store: JobStore,
    by: Sequence[str],
    window: Window | None,
    where: Sequence[str] = (),
    *,
    vo: str | None = None,
    one_scale: bool = False,
    clock: Clock = system_clock,
) -> Answer:
    """Return delivered work per group and benchmark, most core-hours first.

    ``core_h``: wall time x cores; ``cpu_core_h``: CPU time; ``useful_core_h``: CPU time of finished jobs;
    ``failed_core_h``: core-hours of failed jobs. ``declared_h``: core-hours x the score per core that the
    queue declared at the time; ``measured_h``: core-hours x its measured score (the value at which its speed
    factor lies on the line of the others), ``measured_h_err`` its standard error: errors of queues are
    independent, that of the line is common to all. ``recorded_h``: sum of the records' own ``hs06_s``.
    ``pledge_h``: pledge of the federation for the VO x hours; null for other groupings, and unless pledges
    cover all of the window, of one that is not over the days with jobs; of a site only by an imported
    fraction. ``of_pledge_percent``: declared_h of it; ``of_available_percent``: of its hours without declared
    outages, ``available_share``; null without imported downtimes.
    ``gain_h``: declared less measured, over the hours that have both. ``no_declared_core_h``,
    ``no_measured_core_h``: core-hours that a sum lacks. HS06 and HS23 are never added: a group has a row for
    each; ``one_scale`` adds them one to one, the factor of WLCG. Source of the error: independent blocks
    plus a common factor, sum of squares.

    Cost: one grouped query per stretch of constant declared values, the flags of one run, and a query of all
    jobs where downtimes were imported. Raises :class:`NoJobsError` without jobs, :class:`UsageError` for an
    unknown grouping or VO.
    """
    require_groupings("delivered work", by, BY)
    span = span_of(store, window)
    stored = stored_window(store) if "federation" in by else None
    pledges, availability = pledges_beside(store, by, span, vo, stored)
    counted = _until_now(span, stored, clock())
    question = Question(tuple(by), counted, tuple(where), pledges, one_scale, stored, availability)
    run = run_for(store, span)
    measured = {} if run is None else measured_scores(store, run)
    groups = groups_of(store, question, measured)
    if not groups:
        query_jobs(store, [], ["jobs"], where=question.where, window=span)  # raises with the nearest span
    compared = tuple(with_pledges(groups, question)) if question.compares else ()
    if pledges.of and compared and counted != span:
        compared = (f"pledges of {counted} only: {span} is not over", *compared)
    table = table_of(by, groups, measured)
    notes = (*_notes(table, run), *_parts_of_months(question), *compared)
    return Answer(table, notes, title=f"delivered work by {', '.join(by) or 'all'}", run=run)


def pledges_beside(
    store: JobStore, by: Sequence[str], span: Window, vo: str | None, stored: Window | None
) -> tuple[Pledges, Availability | None]:
    """Return pledges of federations and the availability of their sites; nothing for other groupings."""
    if "federation" not in by:
        return Pledges(), None
    pledges = read_pledges(store, span, vo)
    return pledges, read_availability(store, stored) if pledges.of else None


def _until_now(span: Window, stored: Window | None, now: datetime) -> Window:
    """Return the days of a window with jobs, if it is not over; else all of it."""
    if stored is None or not span.start <= now < span.end or not span.start < stored.end < span.end:
        return span
    return Window(span.start, stored.end)


def require_groupings(what: str, by: Sequence[str], allowed: Sequence[str]) -> None:
    """Raise :class:`UsageError` for an unknown grouping."""
    for name in by:
        if name not in allowed:
            raise UsageError(f"{what} has no grouping '{name}'; use {', '.join(allowed)}")


def span_of(store: JobStore, window: Window | None) -> Window:
    """Return a window, None: the days of all jobs; :class:`NoJobsError` without jobs."""
    span = window or stored_window(store)
    if span is None:
        raise NoJobsError("no jobs stored; load some: esjobs ingest")
    return span


def rows_in(
    store: JobStore, keys: Sequence[str], metrics: Sequence[str], where: Sequence[str], part: Window
) -> list[dict[str, Any]]:
    """Return groups of jobs in a part of a window, none without jobs."""
    try:
        rows: list[dict[str, Any]] = query_jobs(store, keys, metrics, where=where, window=part).to_pylist()
    except NoJobsError:
        return []
    return rows


def groups_of(store: JobStore, question: Question, measured: Mapping[str, Measured]) -> Groups:
    """Return the sums of each group: values of the grouping, then the benchmark."""
    groups: Groups = defaultdict(Sums)
    for piece in pieces(store, question.window):
        rows = rows_in(store, question.keys, _METRICS, question.where, piece)
        declared = declared_values(store, piece, "queue", {row["queue"] for row in rows})
        for row in rows:
            _add(groups, question, row, declared, measured)
    return groups


def _add(
    groups: Groups,
    question: Question,
    row: Row,
    declared: Mapping[str, Declared],
    measured: Mapping[str, Measured],
) -> None:
    score, (value, benchmark) = measured.get(row["queue"]), _declared(declared.get(row["queue"]))
    if benchmark is None and score is not None:
        # a queue that declares nothing has at least its measured score in a unit
        benchmark = score.benchmark
    if "federation" in question.by:
        row = {**row, "federation": question.pledges.federation(row["site"])}
    sums = groups[(*(row[name] for name in question.by), question.benchmark(benchmark))]
    hours = row["core_h"]
    _add_used(sums, row)
    if hours is None:
        return
    if value is None:
        sums.add("no_declared_core_h", hours)
    else:
        sums.add("declared_h", hours * value)
    # a score in another benchmark than the declared one cannot be compared with it
    if score is None or score.benchmark != benchmark:
        sums.add("no_measured_core_h", hours)
        return
    sums.measured[row["queue"]] += hours * score.score
    # a gain needs both scores for the same hours
    if value is not None:
        sums.compared[row["queue"]] += hours * score.score
        sums.add("gain_h", hours * (value - score.score))


def _declared(of_queue: Declared | None) -> tuple[float | None, str | None]:
    if of_queue is None or of_queue.corepower is None:
        return None, None
    return of_queue.corepower, of_queue.benchmark


def _add_used(sums: Sums, row: Row) -> None:
    sums.n_jobs += row["jobs"]
    sums.add("core_h", row["core_h"])
    sums.add("cpu_core_h", row["cpu_h"])
    sums.add("recorded_h", row["hs06_h"])
    if row["state"] in FINISHED:
        sums.add("useful_core_h", row["cpu_h"])
    if row["state"] in FAILED:
        sums.add("failed_core_h", row["core_h"])


def _error(hours: Mapping[str, float], measured: Mapping[str, Measured]) -> float:
    """Return the standard error of a sum over queues: their own errors, and the common one of the line."""
    # own errors of queues are independent, the line is one for all of them
    own = sum((value * measured[queue].own) ** 2 for queue, value in hours.items())
    common = sum(value * measured[queue].line for queue, value in hours.items())
    return math.sqrt(own + common**2)


def table_of(by: Sequence[str], groups: Groups, measured: Mapping[str, Measured]) -> pa.Table:
    """Return groups as rows, most core-hours first."""
    rows = []
    for key, sums in groups.items():
        row: dict[str, Any] = dict(zip((*by, "benchmark"), key, strict=True))
        row |= {name: sums.total(name) for name in _NUMBERS}
        if sums.measured:
            row["measured_h"] = sum(sums.measured.values())
            row["measured_h_err"] = _error(sums.measured, measured)
        if sums.compared:
            row["gain_h_err"] = _error(sums.compared, measured)
        rows.append({**row, "n_jobs": sums.n_jobs})
    rows.sort(key=lambda row: (-(row["core_h"] or 0.0), *(str(row[name]) for name in by)))
    schema = pa.schema(
        [
            *((name, pa.string()) for name in (*by, "benchmark")),
            *((name, pa.float64()) for name in _NUMBERS),
            ("n_jobs", pa.int64()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def _percent(part: float | None, of: float) -> float | None:
    return None if part is None else 100 * part / of


def _others(key: tuple[Any, ...], keys: Iterable[tuple[Any, ...]]) -> bool:
    return any(other[:-1] == key[:-1] and other != key for other in keys)


def with_pledges(groups: Groups, question: Question) -> Iterator[str]:
    """Put pledges beside the groups, add those of federations without jobs; yield notes."""
    pledges, at = question.pledges, question.by.index("federation")
    extra = () if question.where or "site" in question.by else tuple(pledges.of)
    with_jobs = {key[at] for key in groups}
    worked = {key for key, sums in groups.items() if sums.total("declared_h")}
    mixed: set[str] = set()
    without: set[str] = set()
    for key, hours in pledged(
        pledges, question.by, groups, question.window, question.benchmark, extra
    ).items():
        # without jobs of this benchmark the sums of nothing are 0
        group = dict(zip(question.by, key, strict=False))
        has = {"core_h", "declared_h"} if question.knows(group) else set()
        sums = groups.setdefault(key, Sums(has=has))
        sums.add("pledge_h", hours)
        share = question.available(group)
        sums.add("available_share", share)
        # part of the work of this place is in the other benchmark: a share would be too small
        if _others(key, worked):
            mixed.add(key[at])
        elif hours and "declared_h" in sums.has:
            sums.add("of_pledge_percent", _percent(sums.total("declared_h"), hours))
            if share:
                sums.add("of_available_percent", _percent(sums.total("declared_h"), hours * share))
        if key[at] not in with_jobs:
            without.add(key[at])
    yield from pledge_notes(pledges, mixed, without, restricted=bool(question.where))
    if pledges.of and question.availability is None:
        yield "no downtimes imported, so available_share is empty; import them: esjobs ingest downtimes"


def _parts_of_months(question: Question) -> Iterator[str]:
    window = question.window
    ends = dict.fromkeys(f"{moment:%Y-%m}" for moment in (window.start, window.end - timedelta(days=1)))
    for month in ends if "month" in question.by else ():
        if part_of(window, month) != Window.parse(month):
            yield f"{month} is counted in part, pledges too: the window is {window}"


def _notes(table: pa.Table, run: StoredRun | None) -> Iterator[str]:
    if run is None:
        yield "no speed factors, so measured_h is empty; run: esjobs run"
    else:
        yield f"measured scores: {run.title}"
    total = pc.sum(table["core_h"]).as_py()
    for what in ("declared", "measured") if run is not None and total else ():
        if lacking := pc.sum(table[f"no_{what}_core_h"]).as_py():
            share = exact_percent(lacking / total)
            yield f"{core_h(lacking)} ({share}) are of queues without a {what} score; {what}_h excludes them"
    both = set(table["benchmark"].to_pylist()) - {None}
    if len(both) > 1:
        yield f"{many(len(both), 'benchmark')}: HS06-hours and HS23-hours must not be added"
