"""Page of the day: what the last night found and changed, and whether anybody must act."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

from dashboards.targets.html.profile import Part, ProfilePage, Wall
from esjobs.core.freshness import LIGHTS
from esjobs.core.numbers import count, day_range, many, number, signed_interval, signed_percent
from esjobs.core.query import Days, In
from esjobs.core.tables import Table
from esjobs.core.text import visible
from esjobs.core.words import ALL_TYPES
from esjobs.publish.latest import latest_run
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.render.columns import incidents_for_people
from esjobs.render.day_figures import day_figures
from esjobs.render.freshness import freshness_of
from esjobs.render.nights_map import MOST_ROWS, nights_map
from esjobs.render.profile.days import METRICS, days_of_site, newest_incidents
from esjobs.render.profile_page import columns_of
from esjobs.schema.flags import FLAG_EVENTS, FLAG_STATES, STANDING_OPEN
from esjobs.schema.nights import NIGHTS
from esjobs.schema.speed import FIT_SUMMARIES, SPEED
from esjobs.schema.today import EVERYWHERE, INCIDENTS, LASTING, THROUGHPUT
from esjobs.store.base import JobStore
from esjobs.today.overview import listed
from esjobs.today.sentences import hours, what_is_wrong
from esjobs.today.states import Incident

_NIGHTS = 14
INCIDENT_DAYS = 30  # Days in which incidents that are over stay on the page
_MOST_OF_WALL = 8
_MOST_NOTICED = 10
_LEVELS = (("queue", "queues"), ("cpu_model", "CPU models"))

Row = Mapping[str, Any]
Ways = Callable[[Iterable[Row]], Iterable[tuple[str, str]]]


def _no_ways(_rows: Iterable[Row]) -> Iterable[tuple[str, str]]:
    return ()


def today_page(store: JobStore, now: datetime, ways: Ways = _no_ways) -> ProfilePage:
    """Return the page of the latest run and the last night; without a run it says so.

    ``ways``: gives titles and addresses of pages about incidents.
    Cost: the flags of the last night, the incidents of a month, some rows of other tables.
    """
    run = latest_run(store, SPEED)
    if run is None:
        return _without_factors(store, ways)
    age = freshness_of(store, run, now)
    source = (
        f"May these numbers be used? {age.light}: {age.sentence}. "
        f"Run {run.run} of {day_range(run.window.start, run.window.end)}."
    )
    every = [In("processing_type", (ALL_TYPES,))]
    states = read_table(store, FLAG_STATES, every).to_pylist()
    open_flags = [_open_flags(states, level, words) for level, words in _LEVELS]
    incidents = _newest(store, run.window.last_day, max(run.window.last_day, now.date()))
    parts = [_conclusion(store, run, states), _changes(store, states), _incidents(incidents)]
    parts += [*_map(store, states), *_days(store), *open_flags, *_nights(store)]
    return ProfilePage("Today", source, parts, tuple(ways(incidents.to_pylist())))


def _newest(store: JobStore, day: date, last: date) -> pa.Table:
    return listed(newest_incidents(store, day - timedelta(days=INCIDENT_DAYS), last))


def _without_factors(store: JobStore, ways: Ways) -> ProfilePage:
    """Return the page of a store without a run, such as that of a centre whose jobs have no events."""
    last = store.span().last
    if last is None:
        return ProfilePage("Today", "No jobs are stored; load some: esjobs ingest", list(_nights(store)))
    source = (
        f"Jobs until {last:%Y-%m-%d}. No speed factors, which need tasks, events and CPU time: esjobs run."
    )
    incidents = _newest(store, last.date(), last.date())
    parts = [_incidents(incidents), *_days(store), *_nights(store)]
    return ProfilePage("Today", source, parts, tuple(ways(incidents.to_pylist())))


def _incidents_of_wall(lasting: Sequence[Incident]) -> Part:
    if not lasting:
        return Part("Incidents", "No incident lasts.", [], [], None)
    cells = [
        [each.site, what_is_wrong(each), "" if each.what else hours(each.cost_core_h or 0.0)]
        for each in lasting
    ]
    return Part("Incidents", "", [], [], columns_of(_texts(("site", "incident", "cost a day"), cells)))


def wall_page(store: JobStore, now: datetime) -> Wall:
    """Return what a screen on a wall shows: the sentence of the last run, flags and incidents that last.

    It never has names of people. Cost: as of :func:`today_page`.
    """
    run = latest_run(store, SPEED)
    if run is None:
        return Wall("No run yet.", None, "No numbers.", (), ())
    states = read_table(store, FLAG_STATES, [In("processing_type", (ALL_TYPES,))]).to_pylist()
    rows = listed(read_table(store, INCIDENTS, [In("state", LASTING)])).to_pylist()
    lasting = [Incident(**row) for row in rows]
    ended, alarm = _last_night(store, run)
    age = freshness_of(store, run, now)
    if age.light == LIGHTS[2]:
        alarm = f"{alarm} Not to be used: {age.sentence}.".strip()
    is_open = [row for row in states if row["state"] in STANDING_OPEN]
    tiles = [
        *(
            (f"open: {words}", count(sum(row["level"] == level for row in is_open)))
            for level, words in _LEVELS
        ),
        ("incidents", count(len(lasting))),
    ]
    sentence = " ".join(_conclusion(store, run, states).sentences[:1])
    parts = [*_map(store, states, _MOST_OF_WALL), _incidents_of_wall(lasting[:_MOST_OF_WALL])]
    return Wall(sentence, ended, alarm, tiles, parts)


def _last_night(store: JobStore, run: StoredRun) -> tuple[datetime, str]:
    """The end of the last night that is done, and what is wrong with the last one."""
    nights = sorted(read_table(store, NIGHTS).to_pylist(), key=lambda row: row["night"])
    done = [row for row in nights if row["state"] == "done" and row["began"] is not None]
    failed = nights[-1:] if nights and nights[-1]["state"] == "failed" else []
    alarm = "".join(f"Night {row['night']} failed: {row['reason']}" for row in failed)
    ended = done[-1]["began"] + timedelta(seconds=done[-1]["seconds"] or 0.0) if done else run.newest
    return ended, visible(alarm)


def _map(store: JobStore, states: Sequence[Row], most: int = MOST_ROWS) -> list[Part]:
    night = max((row["night"] for row in states if row["night"] is not None), default=None)
    found = None if night is None else nights_map(store, night, most)
    return [] if found is None else [Part("Flagged queues by night", "", [], [], None, found)]


def _days(store: JobStore) -> list[Part]:
    """All sites together by day, where the daily watch has judged two days or more."""
    figures = list(day_figures(days_of_site(store, EVERYWHERE, (*METRICS, THROUGHPUT)), ()))
    return [Part("All sites by day", "", [], figures, None)] if figures else []


def _conclusion(store: JobStore, run: StoredRun, states: Sequence[Row]) -> Part:
    where = [In("run", (run.run,)), In("level", ("queue",)), In("processing_type", (ALL_TYPES,))]
    rows = read_table(store, FIT_SUMMARIES, [*where, In("method", (run.headline or "",))]).to_pylist()
    sentences = [visible(str(row["sentence"])) for row in rows if row["sentence"]]
    of_queues = [row["state"] for row in states if row["level"] == "queue"]
    n_open = sum(state in STANDING_OPEN for state in of_queues)
    n_new = of_queues.count("new")
    more = ""
    if n_new:
        seen = "was" if n_new == 1 else "were"
        more = f", {count(n_new)} more {seen} seen once and not confirmed on other jobs yet"
    sentences.append(f"{many(n_open, 'deviation')} of queues {'is' if n_open == 1 else 'are'} open{more}.")
    return Part("In short", "", sentences, [], None)


def _changes(store: JobStore, states: Sequence[Row]) -> Part:
    """Events of flags in the last compared night."""
    night = max((row["night"] for row in states if row["night"] is not None), default=None)
    title = "Since the night before"
    found = [] if night is None else _of_night(store, FLAG_EVENTS, night)
    if not found:
        return Part(title, "", ["No flag was opened, changed or closed in the last night."], [], None)
    rows = [row for row in found if row["kind"] != "noticed"]
    noticed = [row for row in found if row["kind"] == "noticed"]
    n_noticed = len(noticed)
    rows += noticed[:_MOST_NOTICED]
    seen = [f"First seen, not confirmed yet: {many(n_noticed, 'deviation')}."] * (n_noticed > 0)
    headings = ("queue", "CPU model", "event", "work", "deviation", "why")
    table = None
    if rows:
        shown = _texts(headings, [_event(row) for row in rows])
        if not any(shown["CPU model"].to_pylist()):
            shown = shown.drop_columns(["CPU model"])
        table = columns_of(shown)
    return Part(title, f"Night of {night}.", seen, [], table)


def _event(row: Row) -> list[str]:
    return [
        *(row["name"] if row["level"] == level else "" for level, _ in _LEVELS),
        row["kind"].replace("_", " "),
        row["processing_type"],
        _deviation(row["deviation"]),
        row["sentence"] or "",
    ]


def _incidents(rows: pa.Table) -> Part:
    """Incidents of the daily watch: those that last by cost, then those of these days that are over."""
    table, states = incidents_for_people(rows, tasks=True)
    if not table.num_rows:
        return Part("Incidents", "", [f"No incident of a site in {INCIDENT_DAYS} days."], [], None)
    about = f"Efficiency, failures and waiting against what was expected; {INCIDENT_DAYS} days."
    return Part(f"Incidents: {states}", about, [], [], columns_of(table))


def _of_night(store: JobStore, table: Table, night: date) -> list[Row]:
    # a site's flag has the cause of its queues
    where = [Days("night", night, night), In("level", tuple(level for level, _ in _LEVELS))]
    rows = read_table(store, table, where).to_pylist()
    return sorted(rows, key=lambda row: (row["kind"], -abs(row["deviation"] or 0.0), row["name"]))


def _open_flags(states: Sequence[Row], level: str, words: str) -> Part:
    rows = [row for row in states if row["level"] == level and row["state"] in STANDING_OPEN]
    rows.sort(key=lambda row: (-abs(row["deviation"] or 0.0), row["name"]))
    if not rows:
        return Part(f"Deviations of {words}", "", ["None is open."], [], None)
    title = f"{many(len(rows), 'open deviation')} of {words}"
    headings = (words.removesuffix("s"), "state", "since", "deviation", "declared", "measured")
    cells = [
        [
            row["name"],
            row["state"],
            str(row["since"] or ""),
            _with_interval(row),
            _score(row["corepower"]),
            _score(row["proposed_corepower"]),
        ]
        for row in rows
    ]
    about = "Largest first, with 90 % intervals. Declared and measured: benchmark score per core."
    return Part(title, about, [], [], columns_of(_texts(headings, cells)))


def _nights(store: JobStore) -> list[Part]:
    rows = read_table(store, NIGHTS).to_pylist()
    if not rows:
        return []
    rows.sort(key=lambda row: row["night"], reverse=True)
    cells = [
        [str(row["night"]), row["state"], count(row["jobs"] or 0), row["reason"] or ""]
        for row in rows[:_NIGHTS]
    ]
    return [Part("Nights", "", [], [], columns_of(_texts(("night", "state", "jobs", "reason"), cells)))]


def _texts(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> pa.Table:
    columns = zip(*cells, strict=True)
    return pa.table(
        {name: pa.array(column, pa.string()) for name, column in zip(headings, columns, strict=True)}
    )


def _deviation(value: float | None) -> str:
    return "" if value is None else signed_percent(value)


def _with_interval(row: Row) -> str:
    value, low, high = row["deviation"], row["deviation_low"], row["deviation_high"]
    return _deviation(value) if low is None or high is None else signed_interval(value, low, high)


def _score(value: float | None) -> str:
    return "" if value is None else number(value)
