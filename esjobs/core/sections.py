"""Sections of settings, found by their type."""

from typing import Protocol, TypeVar

Section = TypeVar("Section")


class Sections(Protocol):
    """Settings as capabilities read them."""

    def section(self, kind: type[Section]) -> Section:
        """Return the section of a type."""
