"""Decomposition of deviations: CPU mix, SMT, declaration, unexplained."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "decomposition",
    steps=(
        StepEntry("decompose", Lazy("esjobs.flags.decomposition.night:DECOMPOSE"), after=("fit", "drift")),
    ),
)
