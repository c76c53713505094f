"""Notices from the store."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import date, timedelta

from esjobs.core.query import Days, In
from esjobs.core.words import NAMED_LEVELS
from esjobs.publish.publication import read_table
from esjobs.schema.flags import FLAG_EVENTS, FLAG_NOTES, FLAG_STATES
from esjobs.schema.nights import NIGHTS
from esjobs.store.base import JobStore
from scheduler.notifications.explanations import bases_of, reasons_of
from scheduler.notifications.gathering import flag_notices, night_notices
from scheduler.notifications.notices import Notice
from scheduler.notifications.settings import NotifySettings

_ACTS = ("acknowledged", "answered")
_ORDER = ("night", "level", "name", "processing_type")


def notices_of(
    store: JobStore,
    night: date,
    settings: NotifySettings,
    *,
    today: date,
    reported: Collection[str] = (),
    alerts: Sequence[Notice] = (),
) -> list[Notice]:
    """Return flag events from a night on, recent nights that failed, and ``alerts``; each notice once.

    Flags of sites are no notices: their queues have the same cause and notices of their own. A repeated night
    may change the nights after it. What people entered since the night before bears its date. ``reported``:
    ids of earlier notices.
    """
    where = [Days("night", night, max(night, today)), In("level", NAMED_LEVELS)]
    events = read_table(store, FLAG_EVENTS, where).to_pylist()
    if before := last_night(store, night - timedelta(days=1)):
        acts = [Days("night", before, before), In("level", NAMED_LEVELS), In("kind", _ACTS)]
        entered = read_table(store, FLAG_EVENTS, acts).to_pylist()
        events += [row for row in entered if row["event"] not in reported]
    since = today - timedelta(days=settings.within_days)
    days = [Days("night", since, max(night, today))]
    nights = read_table(store, NIGHTS, days, ["night", "state", "reason"]).to_pylist()
    events.sort(key=lambda row: (*(row[name] for name in _ORDER), row.get("position") or 0))
    reasons, bases = reasons_of(store, events), bases_of(store, events)
    gathered = [
        *flag_notices(events, reasons, bases, critical=settings.critical_deviation),
        *night_notices(nights, since=since, reported=reported),
        *alerts,
    ]
    # an alert may be of a night that is in the ledger by now
    return list({notice.id: notice for notice in gathered}.values())


def events_between(store: JobStore, first: date, last: date) -> set[str]:
    """Return the ids of the events of some nights, both ends included."""
    rows = read_table(store, FLAG_EVENTS, [Days("night", first, last)], ["event"])
    return set(rows.column("event").to_pylist())


def last_night(store: JobStore, today: date) -> date | None:
    """Return the newest known night up to today; None without any."""
    days = [Days("night", date.min, today)]
    # one row of each table, not all nights
    found = [
        store.read(table, days, ["night"], order=("-night",), limit=1) for table in (FLAG_EVENTS, NIGHTS)
    ]
    return max((row["night"] for rows in found for batch in rows for row in batch.to_pylist()), default=None)


def known_names(store: JobStore) -> list[tuple[str | None, str | None]]:
    """Return pairs of site and queue that were ever flagged."""
    rows = read_table(store, FLAG_STATES, [In("level", ("queue",))], ["site", "name"]).to_pylist()
    return sorted({(row["site"], row["name"]) for row in rows}, key=str)


def answers_by_name(store: JobStore) -> dict[str, list[tuple[str, str]]]:
    """Return time (ISO) and text of the answers about each name, oldest first."""
    rows = read_table(
        store, FLAG_NOTES, [In("kind", ("answer",))], ["name", "entered_at", "text", "entered_by"]
    )
    answers: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in sorted(rows.to_pylist(), key=lambda row: row["entered_at"]):
        answers[row["name"]].append((row["entered_at"].isoformat(), f"{row['entered_by']}: {row['text']}"))
    return answers
