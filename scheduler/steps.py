"""Steps of every night in order: those of all capabilities, each after its predecessors."""

from collections.abc import Iterable

from esjobs.core.capability import Capability, ordered
from esjobs.records.night import NightStep


def night_steps(capabilities: Iterable[Capability]) -> tuple[NightStep, ...]:
    """Return the steps of a night.

    A step that follows from the runs of a night alone takes :func:`esjobs.records.night.runs_inputs` and runs
    again only with them; one with external inputs (pending mail) runs every time.
    """
    entries = [entry for capability in capabilities for entry in capability.steps]
    return tuple(entry.load.load() for entry in ordered(entries))
