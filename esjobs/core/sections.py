"""Settings as capabilities read them: sections, found by their type."""

from typing import ClassVar, Protocol, TypeVar

from esjobs.core.capability import Capability

Section = TypeVar("Section")


class Sections(Protocol):
    """Settings of a session. ``capabilities``: those whose sections they have."""

    capabilities: ClassVar[tuple[Capability, ...]]

    @property
    def place(self) -> str:
        """The store as messages show it: an address without user and password."""

    def section(self, kind: type[Section]) -> Section:
        """Return the section of a type."""
