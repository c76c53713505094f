"""Flags with memory: deviations from night to night, and people's answers to them."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "flags",
    sections=(("flags", Lazy("esjobs.flags.settings:WatchSettings")),),
    steps=(StepEntry("watch", Lazy("esjobs.flags.night:WATCH"), after=("fit", "decompose")),),
    facade=Lazy("esjobs.flags.facade:Flags"),
)
