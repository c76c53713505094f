"""Failure of a trigger without an account in the store: a note in a file, for the next trigger.

The service itself remembers such a reason; ``serve --once`` ends with it, and the next process would know of
a missing night without its reason. The note lies beside the file of an embedded store, or in the state folder
(``XDG_STATE_HOME``), which a full or read-only disk may leave writable.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from esjobs.core.errors import InputError
from esjobs.core.identity import content_id
from esjobs.store.files.destination import writing_text


@dataclass(frozen=True)
class PendingFailure:
    """A failure without an account; ``until``: its last night."""

    reason: str
    until: date


def note(store: str, reason: str, until: date) -> None:
    """Leave a reason for the next trigger of a store, if any file can be written."""
    text = json.dumps({"place": store, "reason": reason, "until": until.isoformat()})
    for path in _paths(store):
        with contextlib.suppress(OSError, InputError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with writing_text(path) as stream:
                stream.write(text + "\n")
            return


def noted(store: str) -> PendingFailure | None:
    """Return the reason left; None without one, and for a foreign file."""
    for path in _paths(store):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            note = json.loads(path.read_text())
            # the state folder serves several stores
            if note["place"] == store:
                return PendingFailure(str(note["reason"]), date.fromisoformat(note["until"]))
    return None


def forget(store: str) -> None:
    """Remove the note: the ledger has it now."""
    for path in _paths(store):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _paths(store: str) -> Iterator[Path]:
    file = store.removeprefix("duckdb:")
    # an absent file may be a wrong name: nothing is left in that folder
    if file != store and Path(file).exists():
        yield Path(f"{file}.unwritten")
    # raised by expanduser() where the account has no home
    with contextlib.suppress(RuntimeError):
        state = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
        yield Path(state) / "esjobs" / f"{content_id({'place': store})}.unwritten"
