"""What a user can set about reports of TALP."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from esjobs.core.errors import UsageError
from esjobs.core.setting_types import Count, Number, no_flag

REMOTE = re.compile(r"(?P<host>[A-Za-z0-9][\w.@-]*):(?P<folder>/[^\s:]*)")
"""A folder on another host, as rsync has it; anything else is a folder here."""


class SpoolSettings(BaseModel):
    """A folder in which reports arrive."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: Annotated[str, Field(min_length=1)]
    """A folder here (``/scratch/talp``), or of another host (``login1:/scratch/talp``), read by rsync."""
    source: Annotated[str, Field(min_length=1)] | None = None
    """What the records of its jobs have as ``source``; not set: jobs are looked for by their id alone."""

    @field_validator("folder")
    @classmethod
    def _one_or_the_other(cls, folder: str) -> str:
        if folder.startswith("/") or REMOTE.fullmatch(folder):
            return folder
        raise PydanticCustomError(
            "folder",
            "expected a folder from the root (/scratch/talp), or of a host (login1:/scratch/talp)",
        )


def spools_of(folders: Sequence[str], source: str | None) -> tuple[SpoolSettings, ...]:
    """Spools that somebody names, here or on other hosts; :class:`UsageError` for what is no folder."""
    chosen = []
    for folder in folders:
        at = folder if REMOTE.fullmatch(folder) else str(Path(folder).absolute())
        try:
            chosen.append(SpoolSettings(folder=at, source=source))
        except ValueError as error:
            raise UsageError(f"'{folder}' is no folder of reports; name one here, or HOST:/FOLDER") from error
    return tuple(chosen)


class TalpSettings(BaseModel):
    """Where reports of TALP come from, and how often they are gathered."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    spools: tuple[SpoolSettings, ...] = ()
    """Folders that ``esjobs talp gather`` empties; with one, ``esjobs serve`` does it, too."""
    every_minutes: Count = 5
    """How often ``esjobs serve`` gathers."""
    settled_s: Number = 30
    """Files that changed since so many seconds are left for the next time: they may be being written."""
    timeout_s: Annotated[float, BeforeValidator(no_flag), Field(gt=0, le=86_400)] = 300.0
    """How long one call of rsync may take."""
    rsync: tuple[Annotated[str, Field(min_length=1)], ...] = ("rsync", "-e", "ssh -o BatchMode=yes")
    """How rsync is called, before its options."""
