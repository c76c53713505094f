"""Outcome of an import or removal, per object."""

from dataclasses import dataclass
from typing import Literal

from dashboards.servers.bundle import SavedObject

State = Literal["new", "replaced", "removed", "absent", "failed"]


@dataclass(frozen=True)
class Outcome:
    """An object and what was, or would be, done with it.

    ``state``: ``new`` or ``replaced`` by an import, ``removed`` or ``absent`` by a removal, or ``failed``;
    then ``reason`` says in a sentence why and what to do, else it is empty.
    """

    object: SavedObject
    state: State
    reason: str = ""
