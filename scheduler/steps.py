"""Steps of every night, in order: those of all capabilities, each after the ones it names."""

from collections.abc import Iterable

from esjobs.core.capability import Capability, ordered
from esjobs.records.night import NightStep


def night_steps(capabilities: Iterable[Capability]) -> tuple[NightStep, ...]:
    """Return the steps that capabilities add to a night.

    A step that follows from the runs of a night alone takes :func:`esjobs.records.night.runs_inputs` and is
    done again only when a run of the night was; one that looks at the world (mail that waits) is done every
    time.
    """
    entries = [entry for capability in capabilities for entry in capability.steps]
    return tuple(entry.load.load() for entry in ordered(entries))
