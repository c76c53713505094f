"""Every table of every capability, and the kinds of runs that make some; the one list of them.

Stores, ``show``, the terminal, the session, exports and the documentation follow from it.
"""

from importlib import import_module

from esjobs.core.errors import UsageError
from esjobs.core.tables import Table
from esjobs.schema.kinds import Kind

NAMES = (
    "speed",
    "flags",
    "jobs",
    "declared",
    "accounting",
    "references",
    "series",
    "decomposition",
    "drift",
    "scores",
    "issues",
    "pop",
    "noise",
    "provisioning",
    "similar",
    "runs",
    "nights",
    "notifications",
)
"""Capabilities, in the order in which people read of them; ``esjobs.capabilities`` has an object for each.

The tables of one stand in ``esjobs.schema.NAME`` as ``TABLES``, its kinds of runs as ``KINDS``.
"""

_MODULES = {name: import_module(f"esjobs.schema.{name}") for name in NAMES}

OF_CAPABILITY: dict[str, tuple[Table, ...]] = {name: module.TABLES for name, module in _MODULES.items()}
"""The tables of each capability."""

TABLES: tuple[Table, ...] = tuple(table for tables in OF_CAPABILITY.values() for table in tables)
"""Every result table; a store lays out exactly these."""

KINDS: tuple[Kind, ...] = tuple(kind for module in _MODULES.values() for kind in getattr(module, "KINDS", ()))
"""Every kind of question that runs answer."""


def table(name: str) -> Table:
    """Look a table up by name, or raise :class:`UsageError` that lists them all."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise UsageError(f"no table '{name}'; there are {', '.join(t.name for t in TABLES)}")


def kind_of(asked: Table) -> Kind | None:
    """The kind of run that makes a table; None for a table that belongs to no run."""
    return next((kind for kind in KINDS if asked in kind.tables), None)
