"""Notices about incidents of sites: new, still open, over; a line each."""

from collections.abc import Iterable
from datetime import date

from esjobs.core.identity import content_id
from esjobs.core.query import Days
from esjobs.publish.publication import read_table
from esjobs.schema.today import INCIDENT_NIGHTS
from esjobs.store.base import JobStore
from esjobs.today.sentences import sentence
from esjobs.today.states import Incident
from scheduler.notifications.notices import Kind, Notice, Severity

STILL_ON = (2, 3, 7, 14)
"""Nights of an incident on which a message says that it lasts; later once a week."""
_KINDS: dict[str | None, Kind] = {
    "opened": "incident_opened",
    "reopened": "incident_opened",
    "lasting": "incident_lasting",
    "over": "incident_over",
}
_ORDER = ("incident_opened", "incident_lasting", "incident_over")


def incident_notices(store: JobStore, night: date) -> list[Notice]:
    """Return the notices of a night: new ones first, most costly first."""
    rows = read_table(store, INCIDENT_NIGHTS, [Days("night", night, night)]).to_pylist()
    incidents = [Incident(**row) for row in rows if row["state"] in ("open", "closed")]
    notices = [(_cost(one), notice) for one in incidents for notice in _notice(one)]
    return [notice for _, notice in sorted(notices, key=lambda pair: _rank(*pair))]


def _cost(one: Incident) -> float:
    return one.total_core_h if one.until is not None else one.cost_core_h or 0.0


def _rank(cost: float, notice: Notice) -> tuple[int, float, str]:
    return _ORDER.index(notice.kind), -cost, notice.id


def _notice(one: Incident) -> Iterable[Notice]:
    kind = _KINDS.get(one.change)
    lasts = (one.night - one.since).days + 1
    if kind is None or (kind == "incident_lasting" and lasts not in STILL_ON and lasts % 7):
        return
    identity = content_id({"incident": one.incident, "kind": kind, "night": one.night.isoformat()}, 20)
    word = {"incident_opened": "New", "incident_lasting": f"Still open, day {lasts}", "incident_over": "Over"}
    subject = f"{word[kind]}: {sentence(one)}"
    severity: Severity = "warning" if kind == "incident_opened" else "info"
    text = f"Details: esjobs today --night {one.night}"
    yield Notice(
        identity, kind, severity, subject, text, one.night, level="site", name=one.site, site=one.site
    )
