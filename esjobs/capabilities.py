"""Capabilities of the program, in the order of the catalogue; those of other packages after them."""

from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec

from esjobs.core.capability import Capability
from esjobs.schema.catalogue import NAMES

_ELSEWHERE = {
    "jobs": "esjobs.records",
    "decomposition": "esjobs.flags.decomposition",
    "drift": "esjobs.flags.drift",
    "nights": "scheduler",
    "notifications": "scheduler.notifications",
}
"""Packages of capabilities that are not ``esjobs.NAME``."""


def _capability(name: str) -> Capability:
    # a capability that has tables alone needs no package
    package = _ELSEWHERE.get(name, f"esjobs.{name}")
    if find_spec(package) is None:
        return Capability(name)
    found: Capability = import_module(package).CAPABILITY
    return found


CAPABILITIES: tuple[Capability, ...] = (
    *(_capability(name) for name in NAMES),
    *(each.load() for each in entry_points(group="esjobs.capabilities")),
)
"""Every capability. Nothing of them is imported yet but the objects themselves."""
