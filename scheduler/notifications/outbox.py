"""Outbox in the store: rows are written before anything is sent, and marked after each message.

A night is rewritten at once, and only under the lease. A row contains its message: every attempt, by any
process, sends the same bytes under the same name.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from esjobs.core.identity import content_id
from esjobs.core.query import Days, Filter, In
from esjobs.core.words import DEVIATION_LIMIT
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.schema.notifications import DUPLICATE, NOTIFICATIONS, REPETITION, WITHHELD
from esjobs.store.base import JobStore
from scheduler.notifications.history import NO_HISTORY, History
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
    def parsed(self) -> tuple[Notice, ...]:
        """Its notices."""
        return read(self.content)


class Outbox:
    """Rows of a store; changed only under the lease, see :mod:`scheduler.notifications.step`."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._nights: dict[date, dict[str, Entry]] = {}
        self._is_changed = False

    def of_night(self, night: date) -> Mapping[str, Entry]:
        """Return the entries of a night by name; read once."""
        if night not in self._nights:
            rows = self._read([In("night", (night.isoformat(),))])
            self._nights[night] = {entry.notification: entry for entry in rows}
        return self._nights[night]

    def between(self, first: date, last: date) -> list[Entry]:
        """Return the entries of nights, both ends included."""
        return self._read([Days("night", first, last)])

    def in_states(self, states: Sequence[str]) -> list[Entry]:
        """Return entries of all nights in these states, oldest first."""
        return sorted(
            self._read([In("state", tuple(states))]),
            key=lambda entry: (entry.first_at, entry.recipient, entry.notification),
        )

    def put(self, entries: Iterable[Entry]) -> None:
        """Write new or changed entries in one step."""
        nights: set[date] = set()
        for entry in entries:
            self.of_night(entry.night)
            if self._nights[entry.night].get(entry.notification) != entry:
                self._nights[entry.night][entry.notification] = entry
                nights.add(entry.night)
        if not nights:
            return
        # a night is one partition of the table: all its rows are written again
        changes = []
        for night in sorted(nights):
            ordered = sorted(self._nights[night].values(), key=lambda entry: entry.notification)
            rows = rows_table(NOTIFICATIONS, [vars(entry) for entry in ordered])
            changes.append(self._store.replace(NOTIFICATIONS, night.isoformat(), rows.to_batches()))
        self._store.publish(changes)
        self._is_changed = True

    def tidy(self) -> None:
        """Remove replaced rows, if anything was written."""
        if self._is_changed:
            tidy(self._store)
            self._is_changed = False

    def _read(self, where: Sequence[Filter]) -> list[Entry]:
        return [Entry(**row) for row in read_table(self._store, NOTIFICATIONS, where).to_pylist()]


def entry_of(
    recipient: Recipient, notices: Sequence[Notice], *, night: date, now: datetime, subject: str, address: str
) -> Entry:
    """Return a queued message of these notices to a recipient; its name follows from both."""
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


MOST_FOLLOWED = 10  # Messages that a mail names as those before it
Draft = Callable[[Recipient, Sequence[Notice]], Entry]  # Makes the entry of a message, queued
# From the earlier entries of a recipient and its new notices: those of them that it has already
Reported = Callable[[Sequence[Entry], Sequence[Notice]], Sequence[Notice]]


def queued(
    settings: NotifySettings,
    recipients: Iterable[Recipient],
    notices: Sequence[Notice],
    existing: Collection[Entry],
    draft: Draft,
    reported: Reported = lambda *_: (),
    history: History = NO_HISTORY,
    limit: float = DEVIATION_LIMIT,
) -> list[Entry]:
    """Return new entries: per recipient one, of the notices it takes and that no ``existing`` entry has.

    ``reported`` notices, and repetitions of its ``history``, get entries of their own that are not sent.
    ``limit``: accepted relative deviation.
    """
    entries = []
    for recipient in recipients:
        before = [entry for entry in existing if entry.recipient == recipient.name]
        new = _unseen(recipient, notices, before)
        same = reported(before, new)
        rest = [notice for notice in new if notice not in same]
        sent = history.read_by(recipient.name) | {notice.id for notice in same}
        news, repetitions = repeated(rest, history.changes, sent, limit)
        for unsent, state, note in ((same, DUPLICATE, _DUPLICATE), (repetitions, REPETITION, _REPETITION)):
            if unsent:
                entries.append(replace(draft(recipient, unsent), state=state, error=note))
        if news:
            entry = following(draft(recipient, news), history)
            entries.append(_on_its_way(entry, recipient, settings))
    return entries


def _unseen(recipient: Recipient, notices: Sequence[Notice], before: Sequence[Entry]) -> list[Notice]:
    """Return the notices that a recipient takes and that none of its entries has."""
    received = {notice for entry in before for notice in entry.notices.split()}
    return [notice for notice in notices if notice.id not in received and takes(recipient, notice)]


_DUPLICATE = "already sent as a change of another night"
_REPETITION = "repeats an earlier message about the queue or CPU model"


def following(entry: Entry, history: History) -> Entry:
    """Return an entry with the first messages to its recipient about the same names."""
    names = history.first_messages(entry.recipient, entry.parsed)
    others = [name for name in names if name != entry.notification]
    return replace(entry, follows=" ".join(others[:MOST_FOLLOWED]) or None)


def _on_its_way(entry: Entry, recipient: Recipient, settings: NotifySettings) -> Entry:
    age = (entry.first_at.date() - entry.night).days
    if age > settings.within_days:
        return abandoned(
            entry,
            f"night {entry.night} was {age} days ago; changes older than {settings.within_days} days are not "
            "sent (notify.within_days)",
        )
    if recipient.role == "site" and not settings.writes_to_sites(entry.first_at.date()):
        return replace(entry, state=WITHHELD, due=settings.sites_from, error=settings.why_withheld)
    if recipient.digest == "weekly":
        due = digest_day(entry.night, entry.first_at, settings.weekly_on)
        return replace(entry, state="collected", due=due)
    return entry


def digest_day(night: date, now: datetime, weekday: str) -> date:
    """Return the day of the weekly digest with the notices of a night.

    >>> from datetime import UTC
    >>> digest_day(date(2026, 11, 15), datetime(2026, 11, 16, 3, tzinfo=UTC), "monday").isoformat()
    '2026-11-16'
    >>> digest_day(date(2026, 11, 16), datetime(2026, 11, 17, 3, tzinfo=UTC), "monday").isoformat()
    '2026-11-23'
    """
    first = max(night + timedelta(days=1), now.date())
    return first + timedelta(days=(WEEKDAYS.index(weekday) - first.weekday()) % 7)


def bundled(settings: NotifySettings, collected: Iterable[Entry], draft: Draft, today: date) -> list[Entry]:
    """Return the due weekly digests: one new entry per recipient, and its parts, marked."""
    due = (entry for entry in collected if entry.due is None or entry.due <= today)
    return _joined(settings, due, draft, lambda all_of: list({one.id: one for one in all_of}.values()))


def released(settings: NotifySettings, withheld: Iterable[Entry], draft: Draft, today: date) -> list[Entry]:
    """Return withheld messages to sites from the first permitted day on: still valid notices, in one."""
    return _joined(settings, withheld, draft, lasting) if settings.writes_to_sites(today) else []


def _joined(
    settings: NotifySettings,
    entries: Iterable[Entry],
    draft: Draft,
    chosen: Callable[[Iterable[Notice]], list[Notice]],
) -> list[Entry]:
    """Return one message per recipient, of some of the notices of its entries, and these entries, marked.

    Entries of removed recipients, and those without such a notice, are abandoned.
    """
    of_recipient: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        of_recipient[entry.recipient].append(entry)
    changed: list[Entry] = []
    for name, parts in of_recipient.items():
        recipient = settings.recipient(name)
        notices = chosen(notice for part in parts for notice in part.parsed)
        if recipient is None:
            changed += [abandoned(part, GONE) for part in parts]
        elif not notices:
            changed += [abandoned(part, _ENDED) for part in parts]
        else:
            changed += _one_of(parts, draft(recipient, notices))
    return changed


def _one_of(entries: Sequence[Entry], message: Entry) -> list[Entry]:
    # an entry with the very same notices has the name of the message: it is sent, not replaced
    others = [
        replace(entry, state="bundled", bundle=message.notification, error=None)
        for entry in entries
        if entry.notification != message.notification
    ]
    own = next((entry for entry in entries if entry.notification == message.notification), message)
    return [*others, replace(own, state="queued", first_at=message.first_at, due=None, error=None)]


GONE = "the settings no longer have this recipient"
_ENDED = "the deviation ended before messages to sites were enabled"


def abandoned(entry: Entry, error: str) -> Entry:
    """Return an abandoned entry with the reason."""
    return replace(entry, state="abandoned", error=error)
