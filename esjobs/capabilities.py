"""Capabilities of the program, in the order of the catalogue; those of other packages after them."""

from importlib import import_module
from importlib.util import find_spec

from esjobs.core.capability import Capability
from esjobs.core.plugins import broken, warn
from esjobs.schema.catalogue import FOREIGN, NAMES

# Packages of capabilities that are not ``esjobs.NAME``
_ELSEWHERE = {
    "jobs": "esjobs.records",
    "decomposition": "esjobs.flags.decomposition",
    "drift": "esjobs.flags.drift",
    "nights": "scheduler",
    "notifications": "scheduler.notifications",
}


def _capability(name: str) -> Capability:
    # a capability that has tables alone needs no package
    package = _ELSEWHERE.get(name, f"esjobs.{name}")
    if find_spec(package) is None:
        return Capability(name)
    found: Capability = import_module(package).CAPABILITY
    return found


def _usable(own: tuple[Capability, ...]) -> tuple[Capability, ...]:
    """Capabilities of other packages whose settings can be read; logs a line for each other one."""
    if not FOREIGN:
        return ()
    from esjobs.settings import Settings

    taken = {*Settings.model_fields, *(name for each in own for name, _ in each.sections)}
    usable = []
    for each in FOREIGN:
        try:
            _require_sections(each, taken)
        except MemoryError:
            raise
        # the code of another package must not end the program
        except (Exception, SystemExit) as error:
            warn(
                f"{each.package}: the settings of capability '{each.name}' cannot be loaded: {broken(error)}"
            )
        else:
            usable.append(each)
            # two foreign packages must not share a section either
            taken |= {name for name, _ in each.sections}
    return tuple(usable)


def _require_sections(capability: Capability, taken: set[str]) -> None:
    for name, model in capability.sections:
        if name in taken:
            raise ValueError(f"section '{name}' already exists; use a different name")
        # defaults must be valid: settings without the section are built from them
        model.load()()


_OWN = tuple(_capability(name) for name in NAMES)

CAPABILITIES: tuple[Capability, ...] = (*_OWN, *_usable(_OWN))
"""Every capability. Nothing of them is imported yet but the objects themselves."""
