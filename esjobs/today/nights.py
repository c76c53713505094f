"""Update of the daily watch through a night, and through the later nights that are done."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

import numpy as np

from esjobs.core.errors import NoJobsError
from esjobs.core.query import Count, Days, In, Query
from esjobs.core.report import RunReport
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.publish.publication import finite, read_table, rows_table, tidy
from esjobs.records.declared.values import known_sites
from esjobs.schema.flags import FLAG_NOTES
from esjobs.schema.today import EVERYWHERE, INCIDENT_NIGHTS, INCIDENTS, LASTING, STATES, TODAY_DAYS
from esjobs.store.base import Change, Hide, JobStore
from esjobs.today.judging import Finding, Followed, Judgement, Night, Remembered
from esjobs.today.sentences import literals_of
from esjobs.today.settings import TodaySettings
from esjobs.today.states import Incident, Silence, after
from esjobs.today.sums import DAYS_BACK, Sums, make_sums, read_sums

REPLAY_NIGHTS = 35
"""Nights that are judged again at most, where earlier ones are missing or changed."""
_REMEMBERED = ("observed", "expected", "variance", "surprise")
_COLUMNS = {
    "observed": "observed_sum",
    "expected": "expected_sum",
    "variance": "variance",
    "surprise": "surprise",
}
Incidents = Mapping[tuple[str, str], Incident]


def update(store: JobStore, night: date | None, settings: TodaySettings) -> RunReport:
    """Bring sums, judged days and incidents up to a night (None: the last day with jobs), in one switch.

    Nights before it that were not judged are judged first, and those after it again. Raises
    :class:`NoJobsError` without jobs. Cost: one grouped query per span of changed days, a read of the sums of
    four weeks before.
    """
    began = time.perf_counter()
    span = store.span()
    if span.first is None or span.last is None:
        raise NoJobsError("no jobs stored; load some: esjobs ingest")
    night = night or span.last.date()
    judged = _judged(store)
    last = max([night, *(day for day in judged if day <= night + timedelta(days=REPLAY_NIGHTS))])
    earliest = max(span.first.date(), night - timedelta(days=REPLAY_NIGHTS))
    missing = [day for day in _days(earliest, night) if day not in judged]
    first = min([night, *missing])
    window = Window.of_days(first - timedelta(days=DAYS_BACK), last)
    made = make_sums(store, window)
    if made:
        store.publish(made)
    sums = read_sums(store, window, known_sites(store, window))
    present = set(sums.day.tolist())
    nights = [day for day in _days(first, last) if day.toordinal() in present]
    eve = max((day for day in judged if day < first), default=None)
    walk = Walk(store, sums, nights, eve, settings)
    store.publish([], walk.changes)
    tidy(store)
    return walk.report(night, time.perf_counter() - began)


def _judged(store: JobStore) -> set[date]:
    table = store.aggregate(Query(("day",), (Count("n"),), over=TODAY_DAYS)).table
    return {day for day in table.column("day").to_pylist() if day is not None}


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=ahead) for ahead in range((last - first).days + 1)]


class Walk:
    """Update from one night to the last one; its changes are made while we may publish."""

    def __init__(
        self,
        store: JobStore,
        sums: Sums,
        nights: Sequence[date],
        eve: date | None,
        settings: TodaySettings,
    ) -> None:
        self._store, self._sums, self._settings = store, sums, settings
        self._nights, self._eve = nights, eve
        self._incidents: dict[tuple[str, str], Incident] = {}
        self._of_night: dict[date, Incidents] = {}
        self._places: dict[date, int] = {}

    def changes(self) -> list[Change]:
        """Return the changes of the tables."""
        if not self._nights:
            return []
        first = self._nights[0]
        start = first - timedelta(days=DAYS_BACK)
        self._memory = _Memory(self._sums.names["site"], start, self._nights[-1])
        before = Days("day", start, first - timedelta(days=1))
        self._memory.add(read_table(self._store, TODAY_DAYS, [before]).to_pylist())
        rows = []
        if self._eve is not None:
            eve = Days("night", self._eve, self._eve)
            rows = read_table(self._store, INCIDENT_NIGHTS, [eve]).to_pylist()
        self._incidents = {one.place: one for one in (Incident(**row) for row in rows)}
        silences = silences_of(self._store)
        written: list[Change] = []
        for night in self._nights:
            judgement = self._judge(night)
            self._step(night, judgement, silences)
            rows = list(self._rows(night, judgement))
            self._memory.add(rows)
            of_night = [asdict(one) for _, one in sorted(self._incidents.items())]
            written.append(_replaced(self._store, TODAY_DAYS, str(night), rows))
            written.append(_replaced(self._store, INCIDENT_NIGHTS, str(night), of_night))
        for state in STATES:
            of_state = [asdict(one) for _, one in sorted(self._incidents.items()) if one.state == state]
            written.append(_replaced(self._store, INCIDENTS, state, of_state))
        return written

    def _judge(self, night: date) -> Judgement:
        followed = [
            _followed(one, night)
            for one in self._incidents.values()
            if one.site == EVERYWHERE and not one.is_over
        ]
        past = self._memory.before(night, [one for one in self._incidents.values() if one.told])
        return Night(self._sums, night.toordinal(), past, self._settings, followed).judged()

    def _step(self, night: date, judgement: Judgement, silences: Mapping[str, Silence]) -> None:
        found: dict[tuple[str, str], Finding] = {}
        for each in judgement.findings:
            if each.efficiency is None and each.failed is None:
                continue
            found[Incident.place_of(each)] = each
        self._places[night] = len({one.site for one in found.values()} - {EVERYWHERE})
        updated = {}
        for place in sorted({*found, *self._incidents}):
            silence = silences.get(place[0])
            one = after(self._incidents.get(place), found.get(place), night, self._settings, silence)
            if one is not None:
                updated[place] = one
        self._incidents = updated
        self._of_night[night] = updated

    def _rows(self, night: date, judgement: Judgement) -> Iterator[dict[str, Any]]:
        told = {one.site for one in self._incidents.values() if one.told}
        for metric, stream in judgement.streams.items():
            for number, site in enumerate((*judgement.sites, EVERYWHERE)):
                base = float(stream.base[number])
                if base <= 0 or (stream.observed[number] == 0 and stream.expected[number] < 0.2):
                    continue
                yield {
                    "day": night,
                    "site": site,
                    "metric": metric,
                    "observed": float(stream.observed[number]) / base,
                    "expected": finite(stream.mean[number]),
                    "low": finite(stream.low[number]),
                    "high": finite(stream.high[number]),
                    "observed_sum": float(stream.observed[number]),
                    "expected_sum": finite(stream.expected[number]),
                    "base_sum": base,
                    "variance": finite(stream.variance[number]),
                    "surprise": finite(stream.z[number]),
                    "cost_core_s": finite(stream.cost[number]),
                    "week_core_s": finite(judgement.week[number]),
                    "told": site in told,
                    "partial": bool(judgement.partial[number]),
                }

    def report(self, night: date, seconds: float) -> RunReport:
        """Return the report of the requested night."""
        incidents = self._of_night.get(night, {})
        states = Counter(one.state for one in incidents.values())
        return RunReport(
            "today",
            f"{night}",
            self._places.get(night, 0),
            sum(one.state in LASTING for one in incidents.values()),
            seconds,
            rows_are="sites",
            rows_become="open incidents",
            counts={f"state {state}": count for state, count in sorted(states.items())},
            window=str(night),
        )


class _Memory:
    """Judged days of a walk as arrays: by metric a row per site, the last one everywhere."""

    def __init__(self, sites: Sequence[str], first: date, last: date) -> None:
        self._row = {name: number for number, name in enumerate((*sites, EVERYWHERE))}
        self._first = first
        self._shape = (len(self._row), (last - first).days + 1)
        self._values: dict[str, dict[str, Any]] = {name: {} for name in _REMEMBERED}
        self._told = np.zeros(self._shape, np.bool_)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Remember rows of ``today_days``."""
        for row in rows:
            at = self._row.get(row["site"]), (row["day"] - self._first).days
            if at[0] is None:
                continue
            for name in _REMEMBERED:
                values = self._values[name].setdefault(row["metric"], np.full(self._shape, np.nan))
                value = row[_COLUMNS[name]]
                values[at] = np.nan if value is None else value
            self._told[at] |= bool(row["told"])

    def before(self, night: date, told: Iterable[Incident]) -> Remembered:
        """Return the days before a night; those of ``told`` incidents from their first day on are told."""
        end = (night - self._first).days
        days = slice(end - DAYS_BACK, end)
        hidden = self._told[:, days].copy()
        for one in told:
            if one.site in self._row:
                hidden[self._row[one.site], DAYS_BACK - min((night - one.since).days, DAYS_BACK) :] = True
        observed, expected, variance, z = (
            {metric: values[:, days] for metric, values in self._values[name].items()} for name in _REMEMBERED
        )
        return Remembered(observed, expected, variance, z, hidden)


def _followed(one: Incident, night: date) -> Followed:
    metric, literals = literals_of(one.cause_key or "")
    return Followed(literals, metric, (night - one.since).days)


def _replaced(store: JobStore, table: Table, partition: str, rows: Sequence[Mapping[str, Any]]) -> Change:
    if not rows:
        return Hide(table, partition)
    return store.replace(table, partition, rows_table(table, rows).to_batches())


def silences_of(store: JobStore) -> dict[str, Silence]:
    """Return the newest acknowledgement of each site, from the notes of flags."""
    where = [In("kind", ("ack",)), In("level", ("site",))]
    rows = read_table(store, FLAG_NOTES, where, ["name", "entered_by", "until", "entered_at"]).to_pylist()
    rows.sort(key=lambda row: row["entered_at"])
    return {row["name"]: Silence(row["entered_by"], row["until"]) for row in rows if row["until"] is not None}
