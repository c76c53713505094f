"""Factors of single days, and change points in them."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "drift",
    sections=(("drift", Lazy("esjobs.flags.drift.settings:DriftSettings")),),
    steps=(StepEntry("drift", Lazy("esjobs.flags.drift.night:DRIFT"), after=("fit",)),),
    offers={"drift.limits": Lazy("esjobs.flags.drift.settings:limits")},
)
