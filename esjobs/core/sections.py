"""Settings sections, looked up by type."""

from typing import ClassVar, Protocol, TypeVar

from esjobs.core.capability import Capability

Section = TypeVar("Section")


class Sections(Protocol):
    """Settings of a session; ``capabilities`` lists those with sections."""

    capabilities: ClassVar[tuple[Capability, ...]]

    @property
    def location(self) -> str:
        """Store address without user and password."""

    def section(self, kind: type[Section]) -> Section:
        """Return the section of a type."""
