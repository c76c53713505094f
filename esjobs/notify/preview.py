"""What would be sent of a night, as files to look at; nothing is sent, nothing is written to the store."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from esjobs.core.errors import InputError, SettingsError
from esjobs.notify.channels.letter import cid_of
from esjobs.notify.outbox import Entry
from esjobs.notify.rules import takes
from esjobs.notify.sending import Post, Rendered
from esjobs.notify.settings import Recipient
from esjobs.notify.sources import notices_of
from esjobs.notify.step import Office
from esjobs.output.destination import writing
from esjobs.store.base import JobStore


@dataclass(frozen=True)
class Previewed:
    """A message as it would be: to whom, what it says, and the files that were written."""

    recipient: str
    channel: str
    address: str
    digest: str
    notices: int
    subject: str
    files: str


def preview(store: JobStore, office: Office, night: date, out: Path) -> list[Previewed]:
    """Write each message of a night into a folder, whether it was sent before or not.

    A mail is written as it goes out (``.eml``), and its parts beside it; the other channels as the JSON that
    is posted. A recipient that no notice is for has no files. Raises :class:`InputError` when the folder
    cannot be made, :class:`SettingsError` for a broken template.
    """
    settings = office.settings
    notices = notices_of(store, night, settings, today=office.clock().date())
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {out}: {error.strerror}; name another one") from None
    previewed = []
    for recipient in settings.recipients:
        told = [notice for notice in notices if takes(recipient, notice)]
        if not told:
            continue
        entry = office.draft(night)(recipient, told)
        files = [_write(out / name, content) for name, content in _contents(office.post, entry, recipient)]
        previewed.append(
            Previewed(
                recipient.name,
                recipient.channel,
                entry.address,
                recipient.digest,
                len(told),
                entry.subject,
                ", ".join(files),
            )
        )
    return previewed


def _contents(post: Post, entry: Entry, recipient: Recipient) -> Iterator[tuple[str, bytes]]:
    try:
        made = post.rendered(entry, recipient)
        body = post.body(entry, recipient, made)
    except SettingsError as error:
        raise SettingsError(f"recipient '{recipient.name}': {error}") from error
    if recipient.channel != "mail":
        yield f"{recipient.name}.json", body
        return
    yield f"{recipient.name}.eml", body
    yield f"{recipient.name}.txt", made.texts.text.encode()
    yield f"{recipient.name}.html", _standing_alone(made, entry, recipient).encode()
    if made.picture is not None:
        yield f"{recipient.name}.png", made.picture.png


def _standing_alone(made: Rendered, entry: Entry, recipient: Recipient) -> str:
    """The HTML with the picture beside it, so that a browser shows it."""
    return made.texts.html.replace(f"cid:{cid_of(entry)}", f"{recipient.name}.png")


def _write(path: Path, content: bytes) -> str:
    with writing(path) as stream:
        stream.write(content)
    return path.name
