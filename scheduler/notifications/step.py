"""Notification step of a night: notices into the outbox, due messages out of it, under a lease."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from esjobs.core.clock import Clock
from esjobs.core.report import RunReport
from esjobs.flags.answering.links import Links
from esjobs.schema.notifications import WAITING, WITHHELD
from esjobs.store.base import JobStore
from esjobs.store.lease import Lease
from scheduler.notifications.gathering import undelivered
from scheduler.notifications.history import history_of
from scheduler.notifications.notices import Notice
from scheduler.notifications.outbox import (
    Draft,
    Entry,
    Outbox,
    bundled,
    entry_of,
    following,
    queued,
    released,
)
from scheduler.notifications.reissued import reissued
from scheduler.notifications.sending import Post, deliver_all
from scheduler.notifications.settings import NotifySettings, Recipient
from scheduler.notifications.sources import events_between, notices_of

STEP = "notify"
WAIT_S = 60.0  # How long one process waits for another that sends


@dataclass(frozen=True)
class Mailer:
    """Sender for a store: settings, limit drawn in pictures, clock, location of the store, pauses, links."""

    settings: NotifySettings
    limit: float
    clock: Clock
    location: str
    pause: Callable[[float], None] = time.sleep
    wait_s: float = WAIT_S
    links: Callable[[], Links | None] = lambda: None

    @property
    def post(self) -> Post:
        """Delivery of its messages."""
        return Post(self.settings, self.limit, self.clock, self.links)

    def draft(self, night: date) -> Draft:
        """Return the function that makes entries about a night, or the last later one of their notices."""
        post = self.post

        def made(recipient: Recipient, notices: Sequence[Notice]) -> Entry:
            return entry_of(
                recipient,
                notices,
                night=max([night, *(notice.night for notice in notices)]),
                now=self.clock(),
                subject=post.subject(recipient, notices),
                address=post.address(recipient),
            )

        return made

    def lease(self, store: JobStore) -> Lease:
        """Return the lease of the sender; it outlasts the longest attempt, so that two never send at once."""
        longest = self.settings.timeout_s * 2 + 60.0
        return Lease(store, self.location, what="sending notifications", request_s=longest)


def notify_night(
    store: JobStore, mailer: Mailer, night: date, *, alerts: Sequence[Notice] = (), retry: bool = False
) -> RunReport:
    """Queue the new notices of a night, and send the outbox.

    ``alerts``: notices without a table. ``retry``: also abandoned messages that were tried. Repeated, it
    sends nothing twice and changes no row. A failed delivery is not an error: the message waits or is
    abandoned, with the reason in the report and in ``notifications``. Raises :class:`StoreBusyError` while
    another process sends.
    """
    began = time.perf_counter()
    if not mailer.settings.recipients:
        return _report(night, (), (), {}, time.perf_counter() - began)
    lease = mailer.lease(store)
    with lease.turn(mailer.wait_s):
        outbox = Outbox(store)
        notices, without = _queue(store, outbox, mailer, night, alerts)
        _bundle(store, outbox, mailer, night)
        if retry:
            abandoned = outbox.in_states(["abandoned"])
            # those never tried were too old to be sent
            outbox.put(replace(entry, state="queued", due=None) for entry in abandoned if entry.attempts)
        ended = _send(outbox, mailer, lease, night)
        outbox.tidy()
    return _report(night, notices, ended, without, time.perf_counter() - began)


def _queue(
    store: JobStore, outbox: Outbox, mailer: Mailer, night: date, alerts: Sequence[Notice]
) -> tuple[list[Notice], Mapping[str, int]]:
    """Queue the new notices of a night; return them, and users without mail by reason."""
    settings, today = mailer.settings, mailer.clock().date()
    oldest, newest = min(night, today - timedelta(days=settings.within_days)), max(night, today)
    existing = outbox.between(oldest, newest + timedelta(days=1))
    reported = {identity for entry in existing for identity in entry.notices.split()}
    notices = notices_of(store, night, settings, today=today, reported=reported, alerts=alerts)
    # while nights are caught up, only the last one reports the state of now
    if night < today - timedelta(days=1):
        notices = [one for one in notices if one.kind not in ("ingest_stopped", "night_recovered")]
    present = events_between(store, oldest, newest)

    def repeats(before: Sequence[Entry], new: Sequence[Notice]) -> Sequence[Notice]:
        return reissued(before, new, present, oldest)

    history = history_of(store, notices, newest)
    recipients, without = settings.recipients_of(notice.user for notice in notices if notice.user)
    draft = mailer.draft(night)
    outbox.put(queued(settings, recipients, notices, existing, draft, repeats, history, mailer.limit))
    return notices, without


def _bundle(store: JobStore, outbox: Outbox, mailer: Mailer, night: date) -> None:
    """Queue weekly digests that are due, and messages that sites may now get."""
    settings, today, draft = mailer.settings, mailer.clock().date(), mailer.draft(night)
    ready = [
        *bundled(settings, outbox.in_states(["collected"]), draft, today),
        *released(settings, outbox.in_states([WITHHELD]), draft, today),
    ]
    new = [entry for entry in ready if entry.state == "queued"]
    notices = [notice for entry in new for notice in entry.parsed]
    past = history_of(store, notices, max(night, today))
    outbox.put(following(entry, past) if entry in new else entry for entry in ready)


def _send(outbox: Outbox, mailer: Mailer, lease: Lease, night: date) -> list[Entry]:
    # Operators are notified at once of abandoned messages.
    ended: list[Entry] = []

    def mark(entry: Entry) -> None:
        lease.keep()
        changed = [entry]
        if entry.state == "abandoned":
            changed += _undelivered_entries(entry, outbox, mailer, night)
        outbox.put(changed)

    # the second time for the notices about messages that the first has abandoned
    for _ in range(2):
        tried = {entry.notification for entry in ended}
        waiting = [entry for entry in outbox.in_states(WAITING) if entry.notification not in tried]
        if waiting:
            ended += deliver_all(mailer.post, waiting, mark, pause=mailer.pause, alive=lease.keep)
    return ended


def _undelivered_entries(entry: Entry, outbox: Outbox, mailer: Mailer, night: date) -> list[Entry]:
    # no notice about an abandoned notice of an abandoned message: that would go on for ever
    if all(notice.kind in ("undelivered", "test") for notice in entry.parsed):
        return []
    notice = undelivered(entry.notification, entry.recipient, entry.subject, entry.error or "", night)
    others = [one for one in mailer.settings.recipients if one.name != entry.recipient]
    return queued(mailer.settings, others, [notice], outbox.of_night(night).values(), mailer.draft(night))


def _report(
    night: date,
    notices: Sequence[Notice],
    ended: Sequence[Entry],
    without_mail: Mapping[str, int],
    seconds: float,
) -> RunReport:
    states = Counter(entry.state for entry in ended)
    return RunReport(
        *(STEP, f"{night}", len(notices), states["sent"], seconds),
        rows_are="notices",
        rows_become="messages sent",
        counts={
            **{f"messages {state}": states[state] for state in ("failed", "abandoned") if states[state]},
            **{f"users without mail: {reason}": n for reason, n in without_mail.items()},
        },
        notes=tuple(f"{one.recipient}: {one.state}, {one.error}" for one in ended if one.state != "sent"),
    )
