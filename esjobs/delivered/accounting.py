"""Jobs against the accounting of their sites, and sums of jobs in the form in which sites publish theirs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from esjobs.core.errors import NoResultError
from esjobs.core.numbers import many
from esjobs.core.query import Days, In
from esjobs.core.window import Window
from esjobs.delivered.pledges import months_of
from esjobs.delivered.work import Question, delivered, groups_of, span_of
from esjobs.publish.publication import read_table
from esjobs.records.answer import Answer
from esjobs.records.declared.values import known_sites
from esjobs.records.jobs.query import query_jobs
from esjobs.schema.accounting import ACCOUNTING, UNDECLARED
from esjobs.schema.declared import COREPOWER
from esjobs.store.base import JobStore

UNEXPLAINED = "unexplained"
SAME = 0.02
"""Relative difference up to which two sums agree."""
HOUR_S = 3600.0
BENCHMARKS = {"HS06": "hs06_wall_s", "HS23": "hs23_wall_s"}
"""Columns of normalised wall-clock time, by benchmark."""
# as the summaries of version 0.4 spell them
_NAMES_IN_APEL = {"HS06": "hepspec", "HS23": "HEPscore23"}
# Beside these and the benchmark, equal rows are one sum published twice.
_SAME_SUM = ("vo", "vo_group", "vo_role", "user", "submit_host", "infrastructure", "processors", "nodes")
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("month", "site")),
        *((name, pa.int64()) for name in ("jobs", "accounted_jobs")),
        *((name, pa.float64()) for name in ("core_h", "accounted_core_h", "ratio")),
        *(("reason", pa.string()), ("cpu_core_h", pa.float64()), ("accounted_cpu_h", pa.float64())),
        ("benchmark", pa.string()),
        *((name, pa.float64()) for name in ("score", "accounted_score", "score_ratio")),
        ("score_reason", pa.string()),
    ]
)
Row = Mapping[str, Any]


@dataclass
class _Pair:
    """Jobs and accounting of a site and month: sums of jobs, core-hours and wall hours by day, messages."""

    jobs: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    scores: dict[str, tuple[float, float]] = field(default_factory=dict)
    days: dict[date, tuple[float, float]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def hours(self, column: str, rows: Sequence[Row] | None = None) -> float:
        """Return the sum of a column in seconds of the messages, in hours; missing values count as none."""
        return sum(row[column] or 0.0 for row in (self.rows if rows is None else rows)) / HOUR_S

    def wall_h(self, month: str) -> float:
        """Return the wall hours of the jobs of the month."""
        return sum(wall for day, (_, wall) in self.days.items() if f"{day:%Y-%m}" == month)


def compare(
    store: JobStore, window: Window | None, where: Sequence[str] = (), *, vo: str | None = None
) -> Answer:
    """Return jobs against stored accounting per month and site, largest difference first.

    Months that the window touches count completely. ``ratio``: accounted core-hours (wall x processors) over
    those of jobs; ``score_ratio``: normalised per core-hour over the declared score, same benchmark.
    ``reason``, ``score_reason``: the first cause that explains at least half of a difference above 2 %, else
    ``unexplained``; without one side ``reason`` names it. Sites are matched in any case. ``vo``: messages of
    this VO only.

    Cost: the queries of delivered work, one by day, and two reads. Raises :class:`NoResultError` without
    accounting of the months, :class:`NoJobsError` without jobs.
    """
    span = whole_months(store, window)
    pairs: dict[tuple[str, str], _Pair] = defaultdict(_Pair)
    names: dict[str, str] = {}
    for row in messages(store, span, vo):
        names.setdefault(row["site"].lower(), row["site"])
        pairs[f"{row['month']:%Y-%m}", row["site"].lower()].rows.append(row)
    _add_jobs(store, span, where, pairs, names)
    values = _declared_ever(store, span)
    found = [_compared(month, names[site], pair, values[site]) for (month, site), pair in pairs.items()]
    found.sort(key=_difference, reverse=True)
    table = pa.Table.from_pylist(found, schema=_SCHEMA)
    return Answer(table, (f"months {span}",), title="jobs against accounting")


def messages(store: JobStore, span: Window, vo: str | None) -> list[Row]:
    """Return the stored sums of the months of a span, of one VO or all, that name a site.

    Raises :class:`NoResultError` without any.
    """
    months = Days("month", span.start.date(), span.end.date() - timedelta(days=1))
    of_months = read_table(store, ACCOUNTING, [months]).to_pylist()
    rows = [row for row in of_months if vo is None or (row["vo"] or "").lower() == vo.lower()]
    if not rows:
        raise NoResultError(f"no accounting of {vo or 'any VO'} in {span}; load it: esjobs ingest apel")
    return [row for row in rows if row["site"] is not None]


def _difference(row: Row) -> float:
    return abs(float(row["accounted_core_h"] or 0.0) - float(row["core_h"] or 0.0))


def whole_months(store: JobStore, window: Window | None) -> Window:
    """Return the whole months that a window touches, None: all jobs; :class:`NoJobsError` without jobs."""
    months = list(months_of(span_of(store, window)))
    return Window.parse(f"{months[0]}/{months[-1]}")


def _add_jobs(
    store: JobStore,
    span: Window,
    where: Sequence[str],
    pairs: Mapping[tuple[str, str], _Pair],
    names: dict[str, str],
) -> None:
    for row in delivered(store, ("site", "month"), span, where):
        names.setdefault(row["site"].lower(), row["site"])
        pair = pairs[row["month"], row["site"].lower()]
        pair.jobs["jobs"] += row["n_jobs"]
        for name in ("core_h", "cpu_core_h", "failed_core_h"):
            pair.jobs[name] += row[name] or 0.0
        if row["declared_h"] is not None:
            pair.scores[row["benchmark"]] = row["declared_h"], row["core_h"] or 0.0
    # a day more on both sides: messages may follow another clock
    wider = Window(span.start - timedelta(days=1), span.end + timedelta(days=1))
    by_site: dict[str, dict[date, tuple[float, float]]] = defaultdict(dict)
    days = query_jobs(store, ["site", "day"], ["core_h", "wall_h"], where=where, window=wider)
    for row in days.to_pylist():
        by_site[row["site"].lower()][row["day"]] = row["core_h"] or 0.0, row["wall_h"] or 0.0
    for (_, site), pair in pairs.items():
        pair.days = by_site[site]


def _declared_ever(store: JobStore, span: Window) -> dict[str, list[float]]:
    """Return all imported scores of the queues of each site, whenever they were valid."""
    rows = read_table(store, COREPOWER, [In("level", ("queue",))], ["name", "corepower", "site"]).to_pylist()
    sites = known_sites(store, span)
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["corepower"]:
            values[(row["site"] or sites.of(row["name"]).name).lower()].append(row["corepower"])
    return values


def _compared(month: str, site: str, pair: _Pair, values: Sequence[float]) -> dict[str, Any]:
    ours, theirs = pair.jobs["core_h"], pair.hours("core_s")
    sums = {
        # 0 stands for nothing stored and is shown as unknown
        "jobs": int(pair.jobs["jobs"]),
        "accounted_jobs": sum(each["n_jobs"] for each in pair.rows),
        "core_h": ours,
        "accounted_core_h": theirs,
        "cpu_core_h": pair.jobs["cpu_core_h"],
        "accounted_cpu_h": pair.hours("cpu_s"),
    }
    row: dict[str, Any] = {"month": month, "site": site, **{name: sums[name] or None for name in sums}}
    if not ours or not pair.rows:
        row["reason"] = "no jobs stored" if pair.rows else "not in accounting"
        return row
    row["ratio"] = theirs / ours
    row["reason"] = reason(theirs - ours, ours, causes(month, pair))
    return row | _scores(pair, values)


def reason(difference: float, of: float, effects: Iterator[tuple[str, float]]) -> str | None:
    """Return the first cause after which at most half of a difference is left, None if it is small.

    >>> reason(10.0, 100.0, iter([("one", 3.0), ("two", 6.0), ("three", 10.0)]))
    'two'
    """
    if abs(difference) <= SAME * of:
        return None
    found = (name for name, effect in effects if abs(difference - effect) <= abs(difference) / 2)
    return next(found, UNEXPLAINED)


def causes(month: str, pair: _Pair) -> Iterator[tuple[str, float]]:
    """Yield what may set accounting apart from jobs, and the core-hours by which it would be above them."""
    ours, accounted, rows = pair.jobs["core_h"], pair.hours("core_s"), pair.rows
    wall = pair.wall_h(month)
    # the first that fits is shown: what dates and cores show comes before what could fit by chance
    yield "month edge", _within_edges(pair) - ours
    if all((row["processors"] or 1) == 1 for row in rows):
        yield "wall not x cores", wall - ours
    # a site that writes wall x cores as wall-clock time has the cores counted twice
    yield "wall multiplied by site", accounted - pair.hours("wall_s", [row for row in rows if row["core_s"]])
    yield from _causes_of_jobs(pair, ours, accounted)
    yield "label doubled", _doubled(rows) / HOUR_S
    # such sums have CPU time, but no core-hour
    yield "zero wall", -pair.hours("cpu_s", [row for row in rows if not row["wall_s"]])
    without = pair.hours("wall_s", [row for row in rows if row["core_s"] is None])
    # sums without processors have no core-hours: as many as their wall time makes on average
    yield "cores missing", -without * ours / wall


def _within_edges(pair: _Pair) -> float:
    """Return the core-hours of jobs between the first and the last day of the messages."""
    first, last = ([row[name] for row in pair.rows if row[name]] for name in ("first_end", "last_end"))
    if not first or not last:
        return pair.jobs["core_h"]
    span = (min(first).date(), max(last).date())
    return sum(hours for day, (hours, _) in pair.days.items() if span[0] <= day <= span[1])


def _causes_of_jobs(pair: _Pair, ours: float, accounted: float) -> Iterator[tuple[str, float]]:
    of_vo: dict[object, float] = defaultdict(float)
    for row in pair.rows:
        of_vo[row["vo"]] += (row["core_s"] or 0.0) / HOUR_S
    yield "other VO/local jobs", accounted - max(of_vo.values())
    if pair.jobs["cpu_core_h"]:
        # the payloads' CPU time is in both, the pilots' waiting only in that of the batch system
        yield "pilot vs payload", accounted - pair.hours("cpu_s") * ours / pair.jobs["cpu_core_h"]
    yield "failed/closed not counted", -pair.jobs["failed_core_h"]


def _doubled(rows: Sequence[Row]) -> float:
    """Return the core seconds of sums that stand there with both labels, those of the smaller one."""
    labels: dict[tuple[Any, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in rows:
        label = int(row["hs06_wall_s"] is None)
        labels[tuple(row[name] for name in _SAME_SUM)][label] += row["core_s"] or 0.0
    return sum(min(both) for both in labels.values())


def _scores(pair: _Pair, values: Sequence[float]) -> dict[str, Any]:
    """Return the comparison of scores per core in the benchmark that both sides have the most of."""
    both = [name for name in pair.scores if pair.scores[name][1] and pair.hours(BENCHMARKS[name])]
    if not both:
        return {}
    benchmark = max(both, key=lambda name: pair.scores[name][1])
    return {"benchmark": benchmark, **_score(pair, benchmark, values)}


def _score(pair: _Pair, benchmark: str, values: Sequence[float]) -> dict[str, Any]:
    column, (work, of_h) = BENCHMARKS[benchmark], pair.scores[benchmark]
    ours = work / of_h
    rows = [row for row in pair.rows if row[column] is not None and row["core_s"]]
    core_s = sum(row["core_s"] for row in rows)
    if not core_s:
        return {"score": ours}
    theirs = sum(row[column] * row["processors"] for row in rows) / core_s
    default = sum(row["core_s"] for row in rows if row["declared"] is False) / core_s
    # a score that the site declared at another time explains one that it does not have now
    nearest = min(values, key=lambda value: abs(value - theirs), default=ours)
    effects = (("default factor 12", (UNDECLARED - ours) * default), ("score valid from", nearest - ours))
    why = reason(theirs - ours, ours, iter(effects))
    ratio = theirs / ours
    return {"score": ours, "accounted_score": theirs, "score_ratio": ratio, "score_reason": why}


def _apel_block(lines: Mapping[str, object]) -> str:
    # a line break in a name would begin another line of the message
    stated = ((name, value) for name, value in lines.items() if value is not None)
    written = (f"{name}: {' '.join(str(value).split())}\n" for name, value in stated)
    return "".join(written) + "%%\n"


def apel_text(
    store: JobStore, window: Window | None, where: Sequence[str], *, vo: str | None
) -> tuple[str, tuple[str, ...]]:
    """Return the jobs of whole months as APEL's normalised summaries v0.4, and notes; never sent.

    Wall-clock time is not multiplied by processors, normalised time is x the declared score. Jobs without
    cores, CPU time or a declared score are left out, which a note counts; the infrastructure says ``esjobs
    comparison``. Raises :class:`NoResultError` where nothing is left.
    """
    question = Question(("site", "month", "cores"), whole_months(store, window), tuple(where))
    blocks = []
    left_out = 0
    for (site, month, cores, benchmark), sums in sorted(groups_of(store, question, {}).items(), key=str):
        core_h, cpu_h, work = (sums.total(name) for name in ("core_h", "cpu_core_h", "declared_h"))
        if not (cores and core_h and work) or cpu_h is None:
            left_out += sums.n_jobs
            continue
        label, score = _NAMES_IN_APEL[benchmark], work / core_h
        # the receiver multiplies by processors itself
        wall_s, cpu_s = core_h / cores * HOUR_S, cpu_h * HOUR_S
        lines = {
            "Site": site,
            "Month": month[5:],
            "Year": month[:4],
            "VO": vo or None,
            "Infrastructure": "esjobs comparison",
            "Processors": cores,
            "WallDuration": round(wall_s),
            "CpuDuration": round(cpu_s),
            "NormalisedWallDuration": f"{{{label}: {round(wall_s * score)}}}",
            "NormalisedCpuDuration": f"{{{label}: {round(cpu_s * score)}}}",
            "NumberOfJobs": sums.n_jobs,
        }
        blocks.append(_apel_block(lines))
    if not blocks:
        raise NoResultError(
            f"no job in {question.window} has cores, CPU time and a declared score; declare scores: "
            "esjobs corepower import"
        )
    notes = (f"left out: {many(left_out, 'job')} without cores, CPU time or a declared score",)
    return "APEL-normalised-summary-message: v0.4\n" + "".join(blocks), notes if left_out else ()
