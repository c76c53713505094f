"""Stored events of names, and the messages about them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from esjobs.core.query import Days, In
from esjobs.publish.publication import read_table
from esjobs.schema.flags import FLAG_EVENTS
from esjobs.schema.notifications import NOTIFICATIONS, REPETITION, WAITING
from esjobs.store.base import JobStore
from scheduler.notifications.gathering import flag_notices
from scheduler.notifications.notices import Notice
from scheduler.notifications.repetition import Name, name_of

_UNREAD = (REPETITION, "abandoned")  # States of entries that are never delivered
_MAILED = (*WAITING, "sent")
_COLUMNS = ("notification", "night", "recipient", "state", "notices", "bundle", "first_at")


@dataclass(frozen=True)
class Message:
    """A message and its events. ``name``: of the message that was sent with them, or None."""

    recipient: str
    name: str | None
    first_at: datetime
    notices: frozenset[str]
    is_read: bool


@dataclass(frozen=True)
class History:
    """``changes``: of all requested names, in order. ``messages``: of the nights since."""

    changes: Sequence[Notice] = ()
    messages: Sequence[Message] = ()

    def read_by(self, recipient: str, without: Collection[str] = ()) -> set[str]:
        """Return the ids of changes that a recipient has read or will read, except ``without``."""
        return {
            identity
            for message in self.messages
            if message.recipient == recipient and message.is_read
            for identity in message.notices
        }.difference(without)

    def first_messages(self, recipient: str, notices: Iterable[Notice]) -> tuple[str, ...]:
        """Return the first messages to a recipient about the queues of some notices, oldest first."""
        own = [one for one in self.messages if one.recipient == recipient and one.name]
        own.sort(key=lambda one: one.first_at)
        first = {}
        for name in sorted(_names(notices)):
            changes = {change.id for change in self.changes if name_of(change) == name}
            first[name] = next((one.name for one in own if one.notices & changes), None)
        return tuple(dict.fromkeys(filter(None, first.values())))


NO_HISTORY = History()


def _names(notices: Iterable[Notice]) -> set[Name]:
    return {name_of(notice) for notice in notices if notice.is_flag}


def history_of(store: JobStore, notices: Iterable[Notice], last: date) -> History:
    """Return the history of the names in some notices, up to a night. Two requests if there are any."""
    names = _names(notices)
    if not names:
        return NO_HISTORY
    # a queue and a CPU model may have one name: the level is compared below
    where = [In("name", tuple(sorted({name for _, name in names})))]
    rows = read_table(store, FLAG_EVENTS, where).to_pylist()
    rows.sort(key=lambda row: (row["night"], row["position"] or 0))
    changes = [change for change in flag_notices(rows) if name_of(change) in names]
    if not changes:
        return NO_HISTORY
    days = Days("night", min(change.night for change in changes), last + timedelta(days=1))
    sent = read_table(store, NOTIFICATIONS, [days], _COLUMNS).to_pylist()
    return History(changes, [_message(row) for row in sent])


def _message(row: Mapping[str, Any]) -> Message:
    # parts of a weekly digest were sent as that digest
    name = row["bundle"] if row["state"] == "bundled" else row["notification"]
    went_out = row["state"] in (*_MAILED, "bundled")
    return Message(
        row["recipient"],
        name if went_out else None,
        row["first_at"],
        frozenset(row["notices"].split()),
        row["state"] not in _UNREAD,
    )
