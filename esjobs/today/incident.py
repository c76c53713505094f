"""Cost of an incident at a site: parts that add up, jobs and users, waiting, and a paragraph about it."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.arrays import Floats, Mask
from esjobs.core.conditions import written
from esjobs.core.errors import NoJobsError, NoResultError, UsageError
from esjobs.core.numbers import core_h, count, day_range, duration, many, percent
from esjobs.core.query import In, Moment, Query, Range, Sum
from esjobs.core.states import CANCELLED, FINISHED, UNFINISHED
from esjobs.core.tables import columns
from esjobs.core.text import visible
from esjobs.core.window import Window
from esjobs.publish.publication import finite, read_table
from esjobs.records.answer import Answer
from esjobs.records.declared.downtimes import Outages, outages
from esjobs.records.declared.values import known_sites
from esjobs.records.jobs.query import query_jobs
from esjobs.records.names.spelling import as_stored
from esjobs.schema.today import EVERYWHERE, INCIDENT_NIGHTS, LASTING
from esjobs.store.base import JobStore
from esjobs.today.findings import HOUR
from esjobs.today.incident_cost import LEAST_DAYS, Cost, cost_of

BASELINE_DAYS = 14
"""Days before an incident that it is compared with."""
_FARTHEST = 28  # Days before it that the baseline may reach, past days that do not count
_AFTER = 14  # Days after it on which the first usual one is looked for
_DAY = timedelta(days=1)
_REASONS = 3  # Categories of errors in the sentence
_OF_NODE = 0.5  # Share of the failed jobs, from which on a node is named that ran half as many of all
_LEAST_FAILED = 10  # Failed jobs of a node that is named
_KEYS = columns("day queue processing_type core_class state")
_PAIR = ("core_s", "cpu_s")
# Without CPU time, or with more than the cores have seconds, a record shows nothing about efficiency
_POSSIBLE = (Range("efficiency", gt=0, le=1.2),)
_METRICS = (
    Sum("core_s", "core_s"),
    Moment(("core_s",), "measured_core_s", having=_PAIR, where=_POSSIBLE),
    Moment(("cpu_s",), "cpu_s", having=_PAIR, where=_POSSIBLE),
)
_WAITING = ("waiting_median_s", "waiting_p95_s")
_COLUMNS = columns(
    "name since until lost_core_h excess_core_h excess_core_h_low excess_core_h_high n_jobs n_users cause "
    "sentence lost_core_h_low lost_core_h_high failed_excess_core_h failed_excess_core_h_low "
    "failed_excess_core_h_high usual_core_h usual_failed_core_h not_compared_core_h core_h waiting_median_s "
    "waiting_p95_s usual_waiting_median_s usual_waiting_p95_s back_on baseline_days available_share"
)
_TYPES = {
    **dict.fromkeys(("name", "cause", "sentence"), pa.string()),
    **dict.fromkeys(("since", "until"), pa.timestamp("us", "UTC")),
    **dict.fromkeys(("n_jobs", "n_users", "baseline_days"), pa.int64()),
    "back_on": pa.date32(),
}
_SCHEMA = pa.schema([(name, _TYPES.get(name, pa.float64())) for name in _COLUMNS])
PARTS = {
    "finished jobs: usual for their work": "usual_core_h",
    "finished jobs: beyond the usual": "excess_core_h",
    "failed and cancelled jobs: usual": "usual_failed_core_h",
    "failed and cancelled jobs: beyond the usual": "failed_excess_core_h",
    "not compared: no CPU time or state": "not_compared_core_h",
    "all": "core_h",
    "lost: all beyond the usual": "lost_core_h",
}
"""Parts of the core-hours of an incident, with their columns; all but the last two add up to all."""


@dataclass(frozen=True)
class Days:
    """Core-hours by site, stratum and day; ``failed``: by site and day.

    ``unknown``: of finished and of other jobs, by site and day: True if there are some and all lack hours.
    """

    first: date
    sites: Sequence[str]
    cpu: Floats
    hours: Floats
    failed: Floats
    unknown: Mask

    def of(self, days: Sequence[date]) -> Mask:
        """Return a mask of some days."""
        mask = np.zeros(self.cpu.shape[2], np.bool_)
        mask[[(day - self.first).days for day in days]] = True
        return mask


def incident(store: JobStore, name: str, window: Window | None) -> Answer:
    """Return the cost of an incident at a site in a window (None: of the open or newest incident), one row.

    ``excess_core_h``: core-hours of finished jobs beyond what their CPU time usually takes there;
    ``failed_excess_core_h``: of jobs that failed or were cancelled, beyond the usual; ``lost_core_h``: their
    sum. Null if the hours are unknown. Intervals hold 90 %. ``back_on``: first full day whose efficiency is
    within two standard deviations of the usual one. The baseline is the 14 days before that no incident or
    declared outage touched. See :func:`esjobs.today.incident_cost.cost_of`.

    Cost: three grouped queries over six weeks, and five small ones. Raises :class:`NoJobsError` without jobs
    in the window, :class:`NoResultError` without an incident or a baseline, :class:`UsageError` for an
    unknown site.
    """
    if name == EVERYWHERE:
        raise UsageError(
            "an incident everywhere has no site whose other days would tell its cost; esjobs today has an "
            "estimate"
        )
    incidents = _incidents(store)
    if window is None:
        window = _newest(incidents, name)
    days = read_days(store, window)
    if not days.sites:
        query_jobs(store, (), ("jobs",), window=window)  # raises with the nearest span
    (site,) = as_stored(f"no jobs near {window} of site", [name], days.sites, "esjobs query --by site")
    mine = [one for one in incidents if one["site"] == site]
    declared, at = outages(store), days.sites.index(site)
    good = _baseline(days, at, window, mine, declared)
    row = _jobs_and_waiting(store, site, window, good)
    row |= {"name": site, "since": window.start, "until": window.end, "baseline_days": len(good)}
    inside = days.of(_days(window.first_day, window.last_day))
    cost = cost_of(days.cpu, days.hours, days.failed[at], at, inside, days.of(good))
    if cost is None:
        raise NoResultError(
            f"{site} has {many(len(good), 'day')} of finished work without an incident in the {_FARTHEST} "
            f"days before {window}; at least {LEAST_DAYS} are needed: choose a later window"
        )
    row |= _numbers(cost, row["core_h"], [bool(each[inside].any()) for each in days.unknown[:, at]])
    row["cause"] = _cause(mine, window)
    row["available_share"] = None if declared is None else declared.available(site, window)
    row["back_on"] = _back_on(days.first, cost, inside)
    row["sentence"] = _sentence(row, _reasons(store, site, window), _node(store, site, window), good)
    return Answer(pa.Table.from_pylist([row], schema=_SCHEMA), title=f"incident at {site}")


def _back_on(first: date, cost: Cost, inside: Mask) -> date | None:
    """Return the first usual day after a window with an unusual one; ``first``: day of the arrays."""
    later = np.flatnonzero(cost.is_usual & (np.arange(len(inside)) > np.flatnonzero(inside)[-1]))
    if not len(later) or cost.is_usual[inside].all():
        return None
    return first + int(later[0]) * _DAY


def parts(row: Mapping[str, Any]) -> pa.Table:
    """Return the parts of an incident: core-hours, and the interval where one is estimated."""
    listed = {"part": list(PARTS), "core-hours": [row[column] for column in PARTS.values()]}
    for end in ("low", "high"):
        listed[f"{end} (90 %)"] = [row.get(f"{column}_{end}") for column in PARTS.values()]
    return pa.table(listed)


def _incidents(store: JobStore) -> list[dict[str, Any]]:
    """Return each incident of the watch as of its last night, open ones and newest first."""
    rows = read_table(store, INCIDENT_NIGHTS).to_pylist()
    latest = {row["incident"]: row for row in sorted(rows, key=lambda row: row["night"])}
    real = (row for row in latest.values() if row["state"] not in ("noticed", "withdrawn"))
    return sorted(real, key=lambda row: (row["state"] in LASTING, row["since"]), reverse=True)


def _span(one: Mapping[str, Any]) -> tuple[date, date]:
    return one["since"], one["until"] or one["seen_on"] or one["night"]


def _newest(incidents: Sequence[Mapping[str, Any]], name: str) -> Window:
    (site,) = as_stored("no incident of", [name], {one["site"] for one in incidents}, "esjobs today")
    return Window.of_days(*_span(next(one for one in incidents if one["site"] == site)))


def _cause(incidents: Sequence[Mapping[str, Any]], window: Window) -> str | None:
    touched = {*_days(window.first_day, window.last_day)}
    return next((one["cause"] for one in incidents if touched & {*_days(*_span(one))}), None)


def _days(first: date, last: date) -> list[date]:
    return [first + n * _DAY for n in range((last - first).days + 1)]


def _baseline(
    days: Days, at: int, window: Window, incidents: Sequence[Mapping[str, Any]], declared: Outages | None
) -> list[date]:
    """Return the last days before a window that have finished work, and neither an incident nor an outage."""
    ill = {day for one in incidents for day in _days(*_span(one))}
    earlier = _days(days.first, window.first_day - _DAY)
    if declared is not None:
        ill |= {day for day in earlier if declared.covers(days.sites[at], day)}
    worked = days.hours[at].sum(axis=0) > 0
    return [day for n, day in enumerate(earlier) if worked[n] and day not in ill][-BASELINE_DAYS:]


def read_days(store: JobStore, window: Window) -> Days:
    """Sum the days before, those of the window, of which the first and last may be cut, and those after."""
    start, end = window.first_day - _FARTHEST * _DAY, window.last_day + _AFTER * _DAY
    before = Window.of_days(start, window.first_day - _DAY)
    after = Window.of_days(window.last_day + _DAY, end)
    rows = [*_rows(store, before), *_rows(store, window), *_rows(store, after)]
    sites_of = known_sites(store, Window.of_days(start, end))
    sites = sorted({sites_of.of(row["queue"]).name for row in rows})
    number = {name: n for n, name in enumerate(sites)}
    strata = {key: n for n, key in enumerate({(row["processing_type"], row["core_class"]) for row in rows})}
    shape = len(sites), len(strata), (end - start).days + 1
    cpu, hours, failed = np.zeros(shape), np.zeros(shape), np.zeros((shape[0], shape[2]))
    jobs, with_hours = np.zeros((2, *failed.shape), np.bool_), np.zeros((2, *failed.shape), np.bool_)
    for row in rows:
        at, day = number[sites_of.of(row["queue"]).name], (row["day"] - start).days
        finished = row["state"] in FINISHED
        value = row["measured_core_s" if finished else "core_s"]
        jobs[int(not finished), at, day] = True
        with_hours[int(not finished), at, day] |= value is not None
        if value is not None and finished:
            cell = at, strata[row["processing_type"], row["core_class"]], day
            cpu[cell] += row["cpu_s"] / HOUR
            hours[cell] += value / HOUR
        elif value is not None:
            failed[at, day] += value / HOUR
    return Days(start, sites, cpu, hours, failed, jobs & ~with_hours)


def _rows(store: JobStore, window: Window) -> list[dict[str, Any]]:
    query = Query(_KEYS, _METRICS, window, (In("state", (*FINISHED, *UNFINISHED)),), books=False)
    rows: list[dict[str, Any]] = store.aggregate(query).table.to_pylist()
    return rows


def _jobs_and_waiting(store: JobStore, site: str, window: Window, baseline: Sequence[date]) -> dict[str, Any]:
    """Return jobs, users, hours and waiting of the window, and waiting on the days of the baseline."""
    where = (written("site", "=", [site]),)
    (found,) = query_jobs(store, (), ("jobs", "core_h", *_WAITING), where=where, window=window).to_pylist()
    users = query_jobs(store, ("user",), ("jobs",), where=where, window=window).column("user").to_pylist()
    row = {"n_jobs": found.pop("jobs"), "n_users": len({*users} - {None}) or None, **found}
    if baseline:
        of_days = (*where, written("day", "=", [str(day) for day in baseline]))
        span = Window.of_days(baseline[0], baseline[-1])
        (usual,) = query_jobs(store, (), _WAITING, where=of_days, window=span).to_pylist()
        row |= {f"usual_{name}": usual[name] for name in _WAITING}
    return row


def _numbers(cost: Cost, hours: float | None, unknown: list[bool]) -> dict[str, Any]:
    row: dict[str, Any] = {"usual_core_h": cost.usual, "usual_failed_core_h": cost.failed_usual}
    estimates = {"excess": (cost.excess, unknown[:1]), "failed_excess": (cost.failed, unknown[1:])}
    for name, (part, hidden) in (estimates | {"lost": (cost.excess + cost.failed, unknown)}).items():
        value = np.nan if any(hidden) else part.value
        for end, shift in (("", 0.0), ("_low", -part.half), ("_high", part.half)):
            row[f"{name}_core_h{end}"] = finite(value + shift)
    compared = sum(row[column] or 0.0 for column in list(PARTS.values())[:4])
    if hours is None:
        return row | {"not_compared_core_h": None}
    rest = hours - compared
    # sums in another order differ in their last digits
    return row | {"not_compared_core_h": 0.0 if abs(rest) <= 1e-9 * abs(hours) else rest}


def _reasons(store: JobStore, site: str, window: Window) -> str:
    """Return the categories of failed and cancelled jobs with their shares of the hours, largest first.

    And the share of cancelled ones, by which the cost differs from that of the watch.
    """
    where = (written("site", "=", [site]), written("state", "=", UNFINISHED))
    keys = ("error_category", "state")
    try:
        rows = query_jobs(store, keys, ("core_h",), where=where, window=window).to_pylist()
    except NoJobsError:
        return ""
    hours, cancelled = defaultdict[str, float](float), 0.0
    for row in rows:
        hours[row["error_category"] or "no code"] += row["core_h"] or 0.0
        cancelled += (row["core_h"] or 0.0) * (row["state"] in CANCELLED)
    total = sum(hours.values())
    if not total:
        return ""
    largest = sorted(hours.items(), key=lambda pair: -pair[1])[:_REASONS]
    listed = ", ".join(f"{name} {percent(some / total)}" for name, some in largest)
    left_out = f"; {percent(cancelled / total)} cancelled: esjobs today leaves these out" if cancelled else ""
    return f"Hours of failed and cancelled jobs: {listed}{left_out}"


def _node(store: JobStore, site: str, window: Window) -> str:
    """Return a sentence about the node that ran most jobs without success; empty if they are spread."""
    where = (written("site", "=", [site]),)
    jobs, failed = Counter[str | None](), Counter[str | None]()
    for row in query_jobs(store, ("node", "state"), ("jobs",), where=where, window=window).to_pylist():
        jobs[row["node"]] += row["jobs"]
        if row["state"] in UNFINISHED:
            failed[row["node"]] += row["jobs"]
    node = max(failed.keys() - {None}, key=lambda name: failed[name], default=None)
    if node is None or failed[node] < _LEAST_FAILED:
        return ""
    share, of_all = failed[node] / sum(failed.values()), jobs[node] / sum(jobs.values())
    if share < _OF_NODE or of_all > share / 2:
        return ""
    command = f"esjobs nodes --site {shlex.quote(site)} --window {window}"
    jobs_of_it = f"{percent(share)} of the failed and cancelled jobs and {percent(of_all)} of all"
    return f"{visible(node)} ran {jobs_of_it} ({command})"


def _sentence(row: Mapping[str, Any], reasons: str, node: str, baseline: Sequence[date]) -> str:
    window = Window(row["since"], row["until"])
    when = day_range(window.start, window.end) if window.whole_days else str(window)
    users = "" if row["n_users"] is None else f" of {many(row['n_users'], 'user')}"
    share = row["available_share"]
    said = [
        f"{visible(row['name'])}, {when}: {_estimate(row, 'lost')} lost",
        f"Finished jobs took {_estimate(row, 'excess')} beyond what their work usually takes, failed "
        f"and cancelled ones {_estimate(row, 'failed_excess')} beyond the usual",
        f"{many(row['n_jobs'], 'job')}{users} ended",
        reasons,
        node,
        _waited(row),
        f"Efficiency was as usual again on {row['back_on']}" if row["back_on"] else "",
        "" if share in (None, 1.0) else f"Declared outage: {percent(1 - share)} of the time",
        f"Baseline: {many(len(baseline), 'day')} from {baseline[0]}; intervals of 90 %",
    ]
    return " ".join(f"{each}." for each in said if each)


def _estimate(row: Mapping[str, Any], name: str) -> str:
    value, low, high = (row[f"{name}_core_h{end}"] for end in ("", "_low", "_high"))
    interval = "" if low is None else f" ({count(low)} to {count(high)})"
    return "an unknown number of core-hours" if value is None else core_h(value) + interval


def _waited(row: Mapping[str, Any]) -> str:
    values = [row.get(f"{by}{each}") for by in ("", "usual_") for each in _WAITING]
    if None in values:
        return ""
    median, most, usual, usual_most = (duration(value or 0.0) for value in values)
    return f"Jobs waited {median} in the median instead of {usual}, 95 % up to {most} instead of {usual_most}"
