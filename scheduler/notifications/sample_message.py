"""Test messages, and checks of a recipient's settings."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from esjobs.core.errors import StoreError, UsageError
from esjobs.store.base import JobStore
from scheduler.notifications.gathering import sample_notice
from scheduler.notifications.outbox import Entry, Outbox
from scheduler.notifications.redact import value_of
from scheduler.notifications.rules import without_match
from scheduler.notifications.settings import NotifySettings, Recipient
from scheduler.notifications.sources import known_names
from scheduler.notifications.step import Mailer


@dataclass(frozen=True)
class Tried:
    """Result of a test: ``outcome`` is sent or failed; ``notes``: suspicious settings."""

    recipient: str
    channel: str
    address: str
    outcome: str
    error: str
    notes: str


def try_recipients(
    open_store: Callable[[], JobStore], mailer: Mailer, names: Sequence[str] = ()
) -> list[Tried]:
    """Send one test message to each recipient, or to the named ones; one attempt each.

    The store is used for the log and to check patterns; without one the test is still sent. Raises
    :class:`UsageError` for an unknown recipient.
    """
    chosen = [_recipient(mailer.settings, name) for name in names] or mailer.settings.recipients_of(())[0]
    if not chosen:
        raise UsageError("no recipients in the settings; add [[notify.recipients]]")
    store, names_known, trouble = None, [], []
    try:
        store = open_store()
        names_known = known_names(store)
    except StoreError as error:
        trouble = [f"patterns were not checked, and this test is not in the log: {error}"]
    entries = [_try(recipient, mailer) for recipient in chosen]
    tried = []
    for recipient, entry in zip(chosen, entries, strict=True):
        notes = [*_patterns(recipient, names_known), *_insecure(recipient), *_withheld(recipient, mailer)]
        tried.append(_tried(recipient, entry, [*notes, *trouble]))
    if store is not None and not trouble:
        with suppress(StoreError), mailer.lease(store).turn(mailer.wait_s):
            outbox = Outbox(store)
            outbox.put(entries)
            outbox.tidy()
    return tried


def _tried(recipient: Recipient, entry: Entry, notes: Sequence[str]) -> Tried:
    outcome = "sent" if entry.state == "sent" else "failed"
    to = (recipient.name, recipient.channel, entry.address)
    return Tried(*to, outcome, entry.error or "", "; ".join(notes))


def _recipient(settings: NotifySettings, name: str) -> Recipient:
    recipient = settings.recipient(name)
    if recipient is not None and recipient.role == "user" and recipient.user is None:
        raise UsageError(f"'{name}' is all users; test it with one of them: esjobs notify test {name}@USER")
    if recipient is None:
        names_known = ", ".join(one.name for one in settings.recipients) or "none"
        raise UsageError(f"unknown recipient '{name}'; use one of: {names_known}")
    return recipient


def _try(recipient: Recipient, mailer: Mailer) -> Entry:
    now = mailer.clock()
    entry = mailer.draft(now.date())(recipient, [sample_notice(recipient.name, now)])
    ended, _ = mailer.post.attempt(entry)
    # a failed test is not tried again: the person who sent it sees the error
    return ended if ended.state == "sent" else replace(ended, state="abandoned")


def _patterns(recipient: Recipient, names_known: Sequence[tuple[str | None, str | None]]) -> list[str]:
    if not names_known:
        return []
    missed = without_match(recipient, names_known)
    return [f"pattern {pattern} matches no site or queue that was ever flagged" for pattern in missed]


def _withheld(recipient: Recipient, mailer: Mailer) -> list[str]:
    settings = mailer.settings
    waits = recipient.role == "site" and not settings.writes_to_sites(mailer.clock().date())
    return [f"other messages to this recipient are {settings.why_withheld}"] if waits else []


def _insecure(recipient: Recipient) -> list[str]:
    with suppress(Exception):
        url = value_of(recipient.url, recipient.url_file, "the url") or ""
        if url.startswith("http://"):
            return ["the address is http://, so messages are not encrypted; use https://"]
    return []
