"""Definition of a capability: its settings, commands, night steps and facade, none of them imported yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Lazy:
    """Reference ``module:name``, imported by :meth:`load` only."""

    where: str

    def load(self) -> Any:
        """Import the module and return the named object."""
        module, _, name = self.where.partition(":")
        return getattr(import_module(module), name)


@dataclass(frozen=True)
class StepEntry:
    """Step of every night; ``load`` gives a ``NightStep``. It runs after the steps named in ``after``."""

    name: str
    load: Lazy
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Capability:
    """Everything that a capability adds to the program.

    ``section``: name and model of its section of the settings. ``facade``: class behind ``s.NAME``, built
    with a :class:`~esjobs.records.context.Context`. ``offers``: functions for other capabilities, by name.
    ``after_ingest``: function of a context and the account of a load, called after each ingest. Tables and
    kinds of runs stand in ``esjobs.schema``.
    """

    name: str
    sections: tuple[tuple[str, Lazy], ...] = ()
    steps: tuple[StepEntry, ...] = ()
    facade: Lazy | None = None
    offers: Mapping[str, Lazy] = field(default_factory=dict)
    after_ingest: Lazy | None = None
