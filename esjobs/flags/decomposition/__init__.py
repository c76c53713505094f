"""Decomposition of deviations: CPU mix, SMT, declaration, unexplained."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "decomposition",
    steps=(StepEntry("reasons", Lazy("esjobs.flags.decomposition.night:REASONS"), after=("fit", "drift")),),
)
