"""Messages of a night as files; nothing is sent or stored."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from esjobs.core.errors import InputError, SettingsError
from esjobs.store.base import JobStore
from esjobs.store.files.destination import writing
from esjobs.store.files.sharing import make_folder
from scheduler.notifications.channels.mime import cid_of
from scheduler.notifications.history import history_of
from scheduler.notifications.notices import Notice
from scheduler.notifications.outbox import Entry, following
from scheduler.notifications.repetition import repeated
from scheduler.notifications.rules import takes
from scheduler.notifications.sending import Post
from scheduler.notifications.settings import NotifySettings, Recipient
from scheduler.notifications.sources import notices_of
from scheduler.notifications.step import Mailer


@dataclass(frozen=True)
class Previewed:
    """A message, its recipient and files. ``note``: why it would not be sent now, and omitted repetitions."""

    recipient: str
    channel: str
    address: str
    digest: str
    notices: int
    subject: str
    files: str
    note: str


def preview(
    store: JobStore, mailer: Mailer, night: date, out: Path, alerts: Sequence[Notice] = ()
) -> list[Previewed]:
    """Write each message of a night into a folder, sent before or not.

    A mail is written as sent (``.eml``) with its parts; other channels as JSON. A recipient without notices
    has no files. Raises :class:`InputError` if the folder cannot be made, :class:`SettingsError` for a broken
    template.
    """
    settings, today = mailer.settings, mailer.clock().date()
    # as if that night were the newest: later nights have messages of their own
    notices = notices_of(store, night, settings, today=night, alerts=alerts)
    history = history_of(store, notices, max(night, today))
    current = {notice.id for notice in notices}
    try:
        make_folder(out)
    except OSError as error:
        raise InputError(f"cannot create folder {out}: {error.strerror}; use a different folder") from None
    previewed = []
    recipients, _ = settings.recipients_of(notice.user for notice in notices if notice.user)
    for recipient in recipients:
        taken = [notice for notice in notices if takes(recipient, notice)]
        sent = history.read_by(recipient.name, without=current)
        news, repetitions = repeated(taken, history.changes, sent, mailer.limit)
        if not news:
            continue
        entry = following(mailer.draft(night)(recipient, news), history)
        files = [_write(out / name, content) for name, content in _contents(mailer.post, entry, recipient)]
        previewed.append(
            Previewed(
                recipient.name,
                recipient.channel,
                entry.address,
                recipient.digest,
                len(news),
                entry.subject,
                ", ".join(files),
                "; ".join(_notes(recipient, settings, today, len(repetitions))),
            )
        )
    return previewed


def _notes(recipient: Recipient, settings: NotifySettings, today: date, repetitions: int) -> Iterator[str]:
    if recipient.role == "site" and not settings.writes_to_sites(today):
        yield settings.why_withheld
    if repetitions:
        yield f"{repetitions} omitted: they repeat earlier messages"


def _contents(post: Post, entry: Entry, recipient: Recipient) -> Iterator[tuple[str, bytes]]:
    try:
        made = post.rendered(entry, recipient)
        body = post.body(entry, recipient, made)
    except SettingsError as error:
        raise SettingsError(f"recipient '{recipient.name}': {error}") from error
    # names of users come from records: none may lead out of the folder
    name = re.sub(r"[^\w.@+' -]", "_", recipient.name)
    if recipient.channel != "mail":
        yield f"{name}.json", body
        return
    yield f"{name}.eml", body
    yield f"{name}.txt", made.texts.text.encode()
    # with the picture beside it, for a browser
    html = made.texts.html.replace(f"cid:{cid_of(entry)}", f"{name}.png")
    yield f"{name}.html", html.encode()
    if made.picture is not None:
        yield f"{name}.png", made.picture.png


def _write(path: Path, content: bytes) -> str:
    with writing(path) as stream:
        stream.write(content)
    return path.name
