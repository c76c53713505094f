"""A test message to a recipient, and what can be said of its settings without sending anything."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from esjobs.core.errors import StoreError, UsageError
from esjobs.store.base import JobStore
from scheduler.notifications.gathering import trial
from scheduler.notifications.outbox import Entry, Outbox
from scheduler.notifications.rules import without_match
from scheduler.notifications.secrecy import value_of
from scheduler.notifications.settings import NotifySettings, Recipient
from scheduler.notifications.sources import known_names
from scheduler.notifications.step import Office


@dataclass(frozen=True)
class Tried:
    """What came of a test: ``outcome`` is sent, or failed; ``notes``: what looks wrong beside it."""

    recipient: str
    channel: str
    address: str
    outcome: str
    error: str
    notes: str


def try_recipients(
    open_store: Callable[[], JobStore], office: Office, names: Sequence[str] = ()
) -> list[Tried]:
    """Send one test message to each recipient, or to those that are named; each is tried once.

    The store is for the log and for the names that patterns are held against; a test is sent also where there
    is none yet, or another process has it. Raises :class:`UsageError` for a recipient that there is none of.
    """
    chosen = [_recipient(office.settings, name) for name in names] or list(office.settings.recipients)
    if not chosen:
        raise UsageError("there are no recipients; name some in the settings: [[notify.recipients]]")
    store, trouble = None, ""
    try:
        store = open_store()
        known = known_names(store)
    except StoreError as error:
        known, trouble = [], f"patterns were not checked, and this test is not in the log: {error}"
    tried, entries = [], []
    for recipient in chosen:
        entry, ended = _try(recipient, office)
        entries.append(ended)
        notes = [
            *_patterns(recipient, known),
            *_insecure(recipient),
            *_withheld(recipient, office),
            *([trouble] if trouble else []),
        ]
        tried.append(
            Tried(
                recipient.name,
                recipient.channel,
                entry.address,
                "sent" if ended.state == "sent" else "failed",
                ended.error or "",
                "; ".join(notes),
            )
        )
    if store is not None and not trouble:
        with suppress(StoreError), office.lease(store).turn(office.wait_s):
            outbox = Outbox(store)
            outbox.put(entries)
            outbox.tidy()
    return tried


def _recipient(settings: NotifySettings, name: str) -> Recipient:
    recipient = settings.recipient(name)
    if recipient is None:
        known = ", ".join(one.name for one in settings.recipients) or "none"
        raise UsageError(f"no recipient '{name}' in the settings; there are {known}")
    return recipient


def _try(recipient: Recipient, office: Office) -> tuple[Entry, Entry]:
    now = office.clock()
    entry = office.draft(now.date())(recipient, [trial(recipient.name, now)])
    ended, _ = office.post.attempt(entry)
    # a test that failed is not tried again: who sent it sees what is wrong
    return entry, ended if ended.state == "sent" else Entry(**{**vars(ended), "state": "given up"})


def _patterns(recipient: Recipient, known: Sequence[tuple[str | None, str | None]]) -> list[str]:
    if not known:
        return []
    missed = without_match(recipient, known)
    return [f"no site or queue that was ever flagged is called {pattern}" for pattern in missed]


def _withheld(recipient: Recipient, office: Office) -> list[str]:
    settings = office.settings
    waits = recipient.role == "site" and not settings.writes_to_sites(office.clock().date())
    return [f"its other messages are {settings.why_withheld}"] if waits else []


def _insecure(recipient: Recipient) -> list[str]:
    with suppress(Exception):
        url = value_of(recipient.url, recipient.url_file, "the url") or ""
        if url.startswith("http://"):
            return ["its address is http://, so that everybody on the way can read messages"]
    return []
