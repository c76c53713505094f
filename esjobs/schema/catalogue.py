"""Tables of all capabilities, and the kinds of runs that make them.

Stores, ``show``, the terminal, the session, exports and the documentation follow from it.
"""

from collections.abc import Collection
from dataclasses import replace
from importlib import import_module
from types import ModuleType

from esjobs.core.capability import Capability
from esjobs.core.errors import UsageError
from esjobs.core.plugins import package_of, usable_plugins
from esjobs.core.tables import Table
from esjobs.schema.kinds import Kind

NAMES = (
    "speed",
    "flags",
    "today",
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
    "delivered",
    "what_if",
    "errors",
    "similar",
    "runs",
    "nights",
    "notifications",
    "web",
)
"""Capabilities, in the order in which people read of them; ``esjobs.capabilities`` has an object for each.

The tables of one stand in ``esjobs.schema.NAME`` as ``TABLES``, its kinds of runs as ``KINDS``.
"""

GROUP = "esjobs.capabilities"
"""Entry points of capabilities of other packages; such a capability names its tables in ``schema``."""


def _foreign(own: dict[str, ModuleType]) -> tuple[dict[str, ModuleType], tuple[Capability, ...]]:
    """Return modules of tables and capabilities of other packages, as far as usable."""
    modules: dict[str, ModuleType] = {}
    taken = {table.name for module in own.values() for table in module.TABLES}

    def checked(found: object) -> Capability:
        if not isinstance(found, Capability):
            raise TypeError("not a Capability of esjobs.core.capability")
        if found.schema:
            module = import_module(found.schema)
            _require_tables(module.TABLES, getattr(module, "KINDS", ()), taken)
            # tables of one package may not collide with those of another one either
            taken.update(table.name for table in module.TABLES)
            modules[found.name] = module
        return replace(found, package=package_of(GROUP, found.name))

    capabilities = usable_plugins(GROUP, own, checked)
    return modules, capabilities


def _require_tables(tables: Collection[object], kinds: Collection[object], taken: Collection[str]) -> None:
    for each in tables:
        if not isinstance(each, Table):
            raise TypeError(f"{each!r:.60} is not a Table of esjobs.core.tables")
        if each.name in taken:
            raise ValueError(f"table '{each.name}' already exists; use a different name")
    if not all(isinstance(each, Kind) for each in kinds):
        raise TypeError("KINDS contains an object that is not a Kind of esjobs.schema.kinds")


_OWN = {name: import_module(f"esjobs.schema.{name}") for name in NAMES}
_FOREIGN, FOREIGN = _foreign(_OWN)
"""Capabilities of other packages are in ``FOREIGN``."""
_MODULES = {**_OWN, **_FOREIGN}

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
    raise UsageError(f"unknown table '{name}'; use one of: {', '.join(t.name for t in TABLES)}")


def kind_of(table: Table) -> Kind | None:
    """The kind of run that makes a table; None for a table that belongs to no run."""
    return next((kind for kind in KINDS if table in kind.tables), None)
