"""Settings of TALP reports."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from esjobs.core.errors import UsageError
from esjobs.core.setting_types import Count, Number, no_flag

REMOTE = re.compile(r"(?P<host>[A-Za-z0-9][\w.@-]*):(?P<folder>/[^\s:]*)")
"""Folder on another host, in the form of rsync."""


class SpoolSettings(BaseModel):
    """Folder in which reports arrive."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: Annotated[str, Field(min_length=1)]
    """Folder here (``/scratch/talp``) or of another host (``login1:/scratch/talp``)."""
    source: Annotated[str, Field(min_length=1)] | None = None
    """Source of the job records; not set: match by id alone."""

    @field_validator("folder")
    @classmethod
    def _one_or_the_other(cls, folder: str) -> str:
        if folder.startswith("/") or REMOTE.fullmatch(folder):
            return folder
        raise PydanticCustomError(
            "folder",
            "expected an absolute folder (/scratch/talp), or a folder of a host (login1:/scratch/talp)",
        )


def spools_of(folders: Sequence[str], source: str | None) -> tuple[SpoolSettings, ...]:
    """Return spools from names of folders; raises :class:`UsageError` for invalid ones."""
    chosen = []
    for folder in folders:
        # a relative folder means that of the caller, not of a service later
        at = folder if REMOTE.fullmatch(folder) else str(Path(folder).absolute())
        try:
            chosen.append(SpoolSettings(folder=at, source=source))
        except ValueError as error:
            raise UsageError(
                f"'{folder}' is not a folder of reports; use a local folder, or HOST:/FOLDER"
            ) from error
    return tuple(chosen)


class TalpSettings(BaseModel):
    """Spools of TALP reports, and how they are collected."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    spools: tuple[SpoolSettings, ...] = ()
    """Folders that ``esjobs talp gather`` and ``esjobs serve`` empty."""
    every_minutes: Count = 5
    """Minutes between collections by ``esjobs serve``."""
    settled_s: Number = 30
    """Seconds without changes before a file is collected."""
    timeout_s: Annotated[float, BeforeValidator(no_flag), Field(gt=0, le=86_400)] = 300.0
    """Timeout of one call of rsync."""
    rsync: tuple[Annotated[str, Field(min_length=1)], ...] = ("rsync", "-e", "ssh -o BatchMode=yes")
    """Command of rsync, before its options."""
