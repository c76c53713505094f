"""Speed factors of queues, sites and CPU models, their lines and verdicts."""

from esjobs.core.capability import Capability, Lazy, StepEntry

# Days are scored before windows are fitted, which takes longest
CAPABILITY = Capability(
    "speed",
    sections=(("fit", Lazy("esjobs.speed.settings:FitSettings")),),
    steps=(StepEntry("fit", Lazy("esjobs.speed.night:FIT"), after=("backfill",)),),
    facade=Lazy("esjobs.speed.facade:Speed"),
)
