"""Flags with memory: deviations from night to night, and people's answers to them."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "flags",
    sections=(("flags", Lazy("esjobs.flags.settings:WatchSettings")),),
    steps=(
        StepEntry("enter", Lazy("esjobs.flags.answering.night:ENTER")),
        StepEntry("watch", Lazy("esjobs.flags.night:WATCH"), after=("enter", "fit", "decompose")),
    ),
    facade=Lazy("esjobs.flags.facade:Flags"),
)
