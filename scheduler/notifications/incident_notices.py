"""Notices about incidents of sites: new, still open, over; a line each."""

from collections.abc import Iterable
from datetime import date, timedelta

from esjobs.core.identity import content_id
from esjobs.core.query import Days
from esjobs.publish.publication import read_table
from esjobs.schema.today import INCIDENT_NIGHTS
from esjobs.store.base import JobStore
from esjobs.today.nights import REPLAY_NIGHTS
from esjobs.today.sentences import command
from esjobs.today.states import Incident
from scheduler.notifications.notices import Kind, Notice, Severity

STILL_ON = (2, 3, 7, 14)  # Nights of an incident on which a message says that it lasts; later once a week
_KINDS: dict[str | None, Kind] = {
    "opened": "incident_opened",
    "reopened": "incident_opened",
    "lasting": "incident_lasting",
    "over": "incident_over",
}
_ORDER = ("incident_opened", "incident_lasting", "incident_over")


def incident_notices(store: JobStore, night: date) -> list[Notice]:
    """Return the notices of a night: new ones first, most costly first.

    Of an incident that later judged nights end, only its end is reported, under the id that the night of the
    end gives it.
    """
    later = _incidents(store, night + timedelta(days=1), night + timedelta(days=REPLAY_NIGHTS))
    last = {one.incident: one for one in later}
    ends = {one.incident: one for one in later if one.change == "over" and last[one.incident].is_over}
    return _ranked(
        (incident, notice)
        for one in _incidents(store, night, night)
        for incident in [ends.get(one.incident, one)]
        if incident_notice(one) is not None and (notice := incident_notice(incident)) is not None
    )


def notices_so_far(store: JobStore, day: date) -> list[Notice]:
    """Return the notices of a day that is not over: incidents that it opened, once, for coordinators.

    The mail of the night has those that the whole day confirms; sites are notified then.
    """
    incidents = _incidents(store, day, day)
    return _ranked((one, notice) for one in incidents if (notice := _notice_so_far(one)) is not None)


def _incidents(store: JobStore, first: date, last: date) -> list[Incident]:
    """Return the states of incidents on some nights, oldest first."""
    rows = read_table(store, INCIDENT_NIGHTS, [Days("night", first, last)]).to_pylist()
    incidents = [Incident(**row) for row in rows if row["state"] in ("open", "closed")]
    return sorted(incidents, key=lambda one: one.night)


def _ranked(notices: Iterable[tuple[Incident, Notice]]) -> list[Notice]:
    ranked = sorted(notices, key=lambda each: (_ORDER.index(each[1].kind), -_cost(each[0]), each[1].id))
    return [notice for _, notice in ranked]


def _notice_so_far(one: Incident) -> Notice | None:
    if _KINDS.get(one.change) != "incident_opened":
        return None
    # once per place and day, however often the day is looked at
    identity = content_id({"so far": one.night.isoformat(), "place": [*one.key]}, 20)
    text = "The day is not over: its night repeats what the whole day confirms. Details: esjobs today"
    return Notice(
        *(identity, "incident_opened", "warning", f"So far today: {one.sentence}", text, one.night),
        level="site",
        name=one.site,
    )


def incident_notice(one: Incident) -> Notice | None:
    """Return the notice of an incident after a night; None if the night changes nothing to report."""
    kind = _KINDS.get(one.change)
    lasts = (one.night - one.since).days + 1
    if kind is None or (kind == "incident_lasting" and lasts not in STILL_ON and lasts % 7):
        return None
    identity = content_id({"incident": one.incident, "kind": kind, "night": one.night.isoformat()}, 20)
    words: dict[Kind, str] = {
        "incident_opened": f"New: {one.sentence}",
        "incident_lasting": f"Still open, day {lasts}: {one.sentence}",
        "incident_over": f"Over: {one.sentence}",
    }
    severity: Severity = "warning" if kind == "incident_opened" else "info"
    parts = command(one)
    text = f"Details: esjobs today --night {one.night}" + (
        f"; cost in parts, cancelled jobs included: {parts}" if parts else ""
    )
    # waiting and throughput may have causes outside the site: coordinators ask first
    site = None if one.group else one.site
    return Notice(
        identity, kind, severity, words[kind], text, one.night, level="site", name=one.site, site=site
    )


def _cost(one: Incident) -> float:
    # of one that is over its sum, of others the last night
    return one.total_core_h if one.until is not None else one.cost_core_h or 0.0
