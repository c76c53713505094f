"""Update of the daily watch through a night, and through the later nights that are done."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import NoJobsError
from esjobs.core.query import Count, Days, In, Query
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.publish.publication import read_table, replaced, tidy
from esjobs.records.declared.downtimes import outages
from esjobs.records.declared.values import known_sites
from esjobs.records.names.sites import Sites
from esjobs.schema.flags import FLAG_NOTES
from esjobs.schema.today import EVERYWHERE, INCIDENT_NIGHTS, INCIDENTS, LASTING, STATES, TODAY_DAYS
from esjobs.store.base import Change, JobStore
from esjobs.today.marked import marks_of
from esjobs.today.onset import with_hour
from esjobs.today.settings import TodaySettings
from esjobs.today.so_far import running_days, usual_parts
from esjobs.today.states import Incident, Silence
from esjobs.today.sums import DAYS_BACK, make_sums, of_days, read_sums, sums_of
from esjobs.today.watching import Watch

REPLAY_NIGHTS = 35
"""Nights that are judged again at most, where earlier ones are missing or changed."""


def update(
    store: JobStore, night: date | None, settings: TodaySettings, *, partial: bool = False
) -> RunReport:
    """Bring sums, judged days and incidents up to a night (None: the last day with jobs), in one switch.

    Nights before it that were not judged are judged first, and those after it again. ``partial``: the day is
    not over; only it is judged, as far as its jobs are there, and the night judges it anew. Raises
    :class:`NoJobsError` without jobs. Cost: one grouped query per span of changed days, a read of the sums of
    four weeks before; of a partial day its own jobs are summed, and those of a week counted by hour.
    """
    began = time.perf_counter()
    span = store.span()
    if span.first is None or span.last is None:
        raise NoJobsError("no jobs stored; load some: esjobs ingest")
    night = night or span.last.date()
    judged = _judged(store)
    nights = [night] if partial else _nights(span.first.date(), night, judged)
    window = Window.of_days(nights[0] - timedelta(days=DAYS_BACK), nights[-1])
    made = make_sums(store, Window.of_days(night, night) if partial else window)
    if made:
        store.publish(made)
    sums = read_sums(store, window)
    eve = max((day for day in judged if day < nights[0]), default=None)
    nights = sorted({*nights}.intersection(sums.column("day").to_pylist()))
    sites = known_sites(store, window)
    walk = Walk(store, sums, sites, nights, eve, settings, usual_parts(store, sites) if partial else None)
    store.publish([], walk.changes)
    tidy(store)
    return walk.report(night, time.perf_counter() - began)


def _nights(first: date, night: date, judged: Collection[date]) -> list[date]:
    """Return the nights to judge: from the first that was not, to the last that rests on one of these.

    ``first``: day of the first jobs.
    """
    replay = timedelta(days=REPLAY_NIGHTS)
    missing = [day for day in _days(max(first, night - replay), night) if day not in judged]
    later = [day for day in judged if day <= night + replay]
    return _days(min([night, *missing]), max([night, *later]))


def _judged(store: JobStore) -> set[date]:
    """Return the judged days, but for those that were not over."""
    table = store.aggregate(Query(("day",), (Count("n"),), over=TODAY_DAYS)).table
    days = {day for day in table.column("day").to_pylist() if day is not None}
    return days - running_days(store)


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=ahead) for ahead in range((last - first).days + 1)]


class Walk:
    """Update through some nights; its changes are made while we may publish."""

    def __init__(
        self,
        store: JobStore,
        sums: pa.Table,
        sites: Sites,
        nights: Sequence[date],
        eve: date | None,
        settings: TodaySettings,
        so_far: Mapping[str, float] | None = None,
    ) -> None:
        self._store, self._sums, self._sites, self._settings = store, sums, sites, settings
        queues = [name or "" for name in pc.unique(sums.column("queue")).to_pylist()]
        self._site_of = {queue: sites.of(queue).name for queue in queues}
        self._nights, self._eve, self._so_far = nights, eve, so_far
        self._of_night: dict[date, Sequence[Incident]] = {}
        self._n_sites: dict[date, int] = {}

    def changes(self) -> list[Change]:
        """Return the changes of the tables."""
        if not self._nights:
            return []
        first = self._nights[0]
        start = first - timedelta(days=DAYS_BACK)
        watch = Watch(
            sorted({*self._site_of.values()}), start, self._nights[-1], self._settings, outages(self._store)
        )
        before = Days("day", start, first - timedelta(days=1))
        watch.remember(read_table(self._store, TODAY_DAYS, [before]).to_pylist())
        if self._eve is not None:
            eve = Days("night", self._eve, self._eve)
            watch.resume(
                Incident(**row) for row in read_table(self._store, INCIDENT_NIGHTS, [eve]).to_pylist()
            )
        silences, marks = silences_of(self._store), marks_of(self._store, self._sites)
        written: list[Change] = []
        for night in self._nights:
            days = of_days(self._sums, Window.of_days(night - timedelta(days=DAYS_BACK), night))
            rows = watch.night(night, sums_of(days, self._sites), silences, self._so_far)
            watch.change(self._with_hour)
            self._of_night[night] = watch.incidents
            self._n_sites[night] = len({row["site"] for row in rows} - {EVERYWHERE})
            rows = [row | {"mark": marks.get((night, row["site"]))} for row in rows]
            written.append(replaced(self._store, TODAY_DAYS, str(night), rows))
            written.append(replaced(self._store, INCIDENT_NIGHTS, str(night), _rows(watch.incidents)))
        for state in STATES:
            of_state = [one for one in watch.incidents if one.state == state]
            written.append(replaced(self._store, INCIDENTS, state, _rows(of_state)))
        return written

    def _with_hour(self, one: Incident) -> Incident:
        return with_hour(self._store, one, [name for name, site in self._site_of.items() if site == one.site])

    def report(self, night: date, seconds: float) -> RunReport:
        """Return the report of the requested night."""
        incidents = self._of_night.get(night, ())
        states = Counter(one.state for one in incidents)
        return RunReport(
            "today",
            f"{night}",
            self._n_sites.get(night, 0),
            sum(one.state in LASTING for one in incidents),
            seconds,
            rows_are="sites",
            rows_become="open incidents",
            counts={f"state {state}": count for state, count in sorted(states.items())},
            window=str(night),
        )


def _rows(incidents: Iterable[Incident]) -> list[dict[str, Any]]:
    return [asdict(one) for one in incidents]


def silences_of(store: JobStore) -> dict[str, Silence]:
    """Return the newest acknowledgement of each site, from the notes of flags."""
    where = [In("kind", ("ack",)), In("level", ("site",))]
    rows = read_table(store, FLAG_NOTES, where, ["name", "entered_by", "until", "entered_at"]).to_pylist()
    rows.sort(key=lambda row: row["entered_at"])
    return {row["name"]: Silence(row["entered_by"], row["until"]) for row in rows if row["until"] is not None}
