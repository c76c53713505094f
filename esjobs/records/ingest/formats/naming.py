"""Formats that recognise applications, by the shipped table or by one of the settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from esjobs.records.ingest.base import Source, load_facts
from esjobs.records.names.applications import Applications, load_applications, shipped


@dataclass(frozen=True)
class Naming:
    """Base of such formats. ``own``: the table of the settings; None: the shipped one."""

    own: Applications | None = None

    @property
    def applications(self) -> Applications:
        """The table in force."""
        return self.own or shipped()

    def naming(self, own: Applications) -> Self:
        """Return this format with another table."""
        return replace(self, own=own)

    def load_facts(
        self, contents: Sequence[tuple[str, str]], fill: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the facts that name a load; another table makes another load of the same files."""
        table = {} if self.own is None else {"applications": self.own.digest}
        return load_facts(getattr(self, "name", ""), contents, fill, **table)


def with_applications(source: Source, path: Path) -> Source:
    """Return a format with the table of a file, if it recognises applications.

    Raises :class:`SettingsError` for a file that cannot be read or is wrong.
    """
    return source.naming(load_applications(path)) if isinstance(source, Naming) else source
