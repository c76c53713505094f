"""The outbox in the store: rows are written before anything is sent, and marked after each message.

A night is rewritten at once, and only by who holds the right to send. What a row tells stands in it, so that
a message that is tried again, by whatever process, is the same message under the same name.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from esjobs.core.identity import content_id
from esjobs.core.query import Days, Filter, In
from esjobs.core.words import DEVIATION_LIMIT
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.schema.notifications import KNOWN, NOTIFICATIONS, SAME, WITHHELD
from esjobs.store.base import JobStore
from scheduler.notifications.history import History
from scheduler.notifications.notices import Notice, read, written
from scheduler.notifications.repetition import lasting, repeated
from scheduler.notifications.rules import takes
from scheduler.notifications.settings import WEEKDAYS, NotifySettings, Recipient


@dataclass(frozen=True)
class Entry:
    """A row of ``notifications``."""

    notification: str
    night: date
    recipient: str
    channel: str
    state: str
    attempts: int
    first_at: datetime
    sent_at: datetime | None
    subject: str
    notices: str
    error: str | None
    address: str
    tried_at: datetime | None
    due: date | None
    bundle: str | None
    content: str
    follows: str | None = None

    @property
    def told(self) -> tuple[Notice, ...]:
        """What it tells."""
        return read(self.content)


class Outbox:
    """The rows of a store. Who changes them holds the right to send; see
    :mod:`scheduler.notifications.step`."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._nights: dict[date, dict[str, Entry]] = {}
        self._is_changed = False

    def of_night(self, night: date) -> Mapping[str, Entry]:
        """Entries of a night by their names; read once."""
        if night not in self._nights:
            rows = self._read([In("night", (night.isoformat(),))])
            self._nights[night] = {entry.notification: entry for entry in rows}
        return self._nights[night]

    def between(self, first: date, last: date) -> list[Entry]:
        """Entries of the nights from one to another, both included."""
        return self._read([Days("night", first, last)])

    def in_states(self, states: Sequence[str]) -> list[Entry]:
        """Entries of all nights in these states, the oldest first."""
        return sorted(
            self._read([In("state", tuple(states))]),
            key=lambda entry: (entry.first_at, entry.recipient, entry.notification),
        )

    def put(self, entries: Iterable[Entry]) -> None:
        """Write entries, new or changed, all of them in one step."""
        nights: set[date] = set()
        for entry in entries:
            self.of_night(entry.night)
            if self._nights[entry.night].get(entry.notification) != entry:
                self._nights[entry.night][entry.notification] = entry
                nights.add(entry.night)
        if not nights:
            return
        changes = []
        for night in sorted(nights):
            ordered = sorted(self._nights[night].values(), key=lambda entry: entry.notification)
            rows = rows_table(NOTIFICATIONS, [vars(entry) for entry in ordered])
            changes.append(self._store.replace(NOTIFICATIONS, night.isoformat(), rows.to_batches()))
        self._store.publish(changes)
        self._is_changed = True

    def tidy(self) -> None:
        """Sweep away what no reader sees any more, if anything was written."""
        if self._is_changed:
            tidy(self._store)
            self._is_changed = False

    def _read(self, where: Sequence[Filter]) -> list[Entry]:
        return [Entry(**row) for row in read_table(self._store, NOTIFICATIONS, where).to_pylist()]


def entry_of(
    recipient: Recipient, notices: Sequence[Notice], *, night: date, now: datetime, subject: str, address: str
) -> Entry:
    """A message of these notices to a recipient, queued; its name follows from both."""
    ids = sorted(notice.id for notice in notices)
    return Entry(
        notification=content_id({"recipient": recipient.name, "notices": ids}, 20),
        night=night,
        recipient=recipient.name,
        channel=recipient.channel,
        state="queued",
        attempts=0,
        first_at=now,
        sent_at=None,
        subject=subject,
        notices=" ".join(ids),
        error=None,
        address=address,
        tried_at=None,
        due=None,
        bundle=None,
        content=written(notices),
    )


MOST_FOLLOWED = 10
"""Messages that a mail names as those before it."""
Draft = Callable[[Recipient, Sequence[Notice]], Entry]
"""Makes the entry of a message, queued."""
Known = Callable[[Sequence[Entry], Sequence[Notice]], Sequence[Notice]]
"""Of what somebody was told and is to be told, what is known already."""


def queued(
    settings: NotifySettings,
    notices: Sequence[Notice],
    there: Collection[Entry],
    draft: Draft,
    known: Known = lambda *_: (),
    history: History | None = None,
    limit: float = DEVIATION_LIMIT,
) -> list[Entry]:
    """New entries: for each recipient one, of what it takes and was not told by those ``there``.

    What is ``known``, and what repeats by its ``history`` what was sent of a name, gets entries of its own,
    which are not sent. ``limit``: relative deviation that is accepted.
    """
    history = history or History()
    entries = []
    for recipient in settings.recipients:
        before = [entry for entry in there if entry.recipient == recipient.name]
        told = {notice for entry in before for notice in entry.notices.split()}
        new = [notice for notice in notices if notice.id not in told and takes(recipient, notice)]
        same = known(before, new)
        if same:
            note = "told before, as a change of another night"
            entries.append(replace(draft(recipient, same), state=KNOWN, error=note))
        rest = [notice for notice in new if notice not in same]
        sent = history.read_by(recipient.name) | {notice.id for notice in same}
        news, repetitions = repeated(rest, history.changes, sent, limit)
        if repetitions:
            note = "repeats what was sent of the queue or CPU model"
            entries.append(replace(draft(recipient, repetitions), state=SAME, error=note))
        if news:
            entry = following(draft(recipient, news), history)
            entries.append(_on_its_way(entry, recipient, settings))
    return entries


def following(entry: Entry, history: History) -> Entry:
    """An entry with the messages that told its recipient first of the same names."""
    first = [
        name for name in history.first_messages(entry.recipient, entry.told) if name != entry.notification
    ]
    return replace(entry, follows=" ".join(first[:MOST_FOLLOWED]) or None)


def _on_its_way(entry: Entry, recipient: Recipient, settings: NotifySettings) -> Entry:
    """Sent with the others, collected for a digest, or too old to be sent."""
    age = (entry.first_at.date() - entry.night).days
    if age > settings.within_days:
        return given_up(
            entry,
            f"night {entry.night} was {age} days ago; not sent beyond {settings.within_days} days "
            "(notify.within_days)",
        )
    if recipient.role == "site" and not settings.writes_to_sites(entry.first_at.date()):
        return replace(entry, state=WITHHELD, due=settings.sites_from, error=settings.why_withheld)
    if recipient.digest == "weekly":
        due = digest_day(entry.night, entry.first_at, settings.weekly_on)
        return replace(entry, state="collected", due=due)
    return entry


def digest_day(night: date, now: datetime, weekday: str) -> date:
    """The day on which a weekly digest has what is known of a night: the first of its name that can.

    >>> from datetime import UTC
    >>> digest_day(date(2026, 11, 15), datetime(2026, 11, 16, 3, tzinfo=UTC), "monday").isoformat()
    '2026-11-16'
    >>> digest_day(date(2026, 11, 16), datetime(2026, 11, 17, 3, tzinfo=UTC), "monday").isoformat()
    '2026-11-23'
    """
    first = max(night + timedelta(days=1), now.date())
    return first + timedelta(days=(WEEKDAYS.index(weekday) - first.weekday()) % 7)


def bundled(settings: NotifySettings, collected: Iterable[Entry], draft: Draft, today: date) -> list[Entry]:
    """Weekly digests that are due: one new entry per recipient, and what went into it, marked.

    A recipient that is not in the settings any more has its entries given up.
    """
    due: dict[str, list[Entry]] = {}
    for entry in collected:
        if entry.due is None or entry.due <= today:
            due.setdefault(entry.recipient, []).append(entry)
    changed: list[Entry] = []
    for name, entries in due.items():
        recipient = settings.recipient(name)
        if recipient is None:
            changed += [given_up(entry, GONE) for entry in entries]
        else:
            told = {notice.id: notice for entry in entries for notice in entry.told}
            changed += _one_of(entries, draft(recipient, list(told.values())))
    return changed


def _one_of(entries: Sequence[Entry], message: Entry) -> list[Entry]:
    """One message in the place of some entries, which go into it; one of these may be the message itself."""
    others = [
        replace(entry, state="bundled", bundle=message.notification, error=None)
        for entry in entries
        if entry.notification != message.notification
    ]
    own = next((entry for entry in entries if entry.notification == message.notification), message)
    return [*others, replace(own, state="queued", first_at=message.first_at, due=None, error=None)]


def released(settings: NotifySettings, withheld: Iterable[Entry], draft: Draft, today: date) -> list[Entry]:
    """Messages to sites that waited for the day from which sites are written to: what still holds, in one."""
    if not settings.writes_to_sites(today):
        return []
    by_recipient: dict[str, list[Entry]] = {}
    for entry in withheld:
        by_recipient.setdefault(entry.recipient, []).append(entry)
    changed: list[Entry] = []
    for name, entries in by_recipient.items():
        recipient = settings.recipient(name)
        notices = lasting(notice for entry in entries for notice in entry.told)
        if recipient is None:
            changed += [given_up(entry, GONE) for entry in entries]
        elif not notices:
            changed += [given_up(entry, "it had ended before sites were written to") for entry in entries]
        else:
            changed += _one_of(entries, draft(recipient, notices))
    return changed


GONE = "there is no recipient of this name in the settings any more"


def given_up(entry: Entry, error: str) -> Entry:
    """An entry that is not tried again, and why."""
    return replace(entry, state="given up", error=error)
