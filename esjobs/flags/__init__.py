"""Flags with memory: what became of a deviation from night to night, and what people said to it."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "flags",
    sections=(("flags", Lazy("esjobs.flags.settings:WatchSettings")),),
    steps=(StepEntry("watch", Lazy("esjobs.flags.night:WATCH"), after=("fit", "decompose")),),
    facade=Lazy("esjobs.flags.facade:Flags"),
)
