"""Working context of a capability: the store, settings and clock of one session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from esjobs.core.clock import Clock
from esjobs.core.sections import Sections
from esjobs.records.jobs.aggregate import Progress
from esjobs.store.base import JobStore


@dataclass(frozen=True)
class Context:
    """Argument of every facade.

    ``opener`` returns the store, opening it at first use. ``progress``: called with the work, the amount done
    and the total. ``peers``: functions that other capabilities offer, by name (``scores.rank``).
    """

    opener: Callable[[], JobStore]
    settings: Sections
    clock: Clock
    progress: Progress | None = None
    read_only: bool = False
    peers: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def store(self) -> JobStore:
        """The open store."""
        return self.opener()
