"""Why a trigger failed that could leave no account in the store: a note in a file, for the next trigger.

The service remembers such a reason itself; ``serve --once`` ends with it, and the process of the next night
would know of a night that is missing and not why. The note lies beside the file of an embedded store, or
where programs keep their state (``XDG_STATE_HOME``): a disk that is full or read-only may have room there.
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
class Unwritten:
    """A reason that the ledger has not; ``until``: the last night that it is about."""

    reason: str
    until: date


def note(place: str, reason: str, until: date) -> None:
    """Leave a reason for the next trigger of the store at a place, if anything can be written anywhere."""
    text = json.dumps({"place": place, "reason": reason, "until": until.isoformat()})
    for path in _paths(place):
        with contextlib.suppress(OSError, InputError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with writing_text(path) as stream:
                stream.write(text + "\n")
            return


def noted(place: str) -> Unwritten | None:
    """The reason that was left; None without one, and for a file that is not ours."""
    for path in _paths(place):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            said = json.loads(path.read_text())
            if said["place"] == place:
                return Unwritten(str(said["reason"]), date.fromisoformat(said["until"]))
    return None


def forget(place: str) -> None:
    """Take the note away: the ledger has it now."""
    for path in _paths(place):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _paths(place: str) -> Iterator[Path]:
    file = place.removeprefix("duckdb:")
    # a store that is not there may be a wrong name: nothing is left in that folder
    if file != place and Path(file).exists():
        yield Path(f"{file}.unwritten")
    with contextlib.suppress(RuntimeError):
        state = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
        yield Path(state) / "esjobs" / f"{content_id({'place': place})}.unwritten"
