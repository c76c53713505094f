"""Daily watch of sites: efficiency and failures against what was expected, and incidents with memory."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "today",
    sections=(("today", Lazy("esjobs.today.settings:TodaySettings")),),
    steps=(StepEntry("today", Lazy("esjobs.today.night:TODAY"), after=("fit", "watch")),),
    facade=Lazy("esjobs.today.facade:Today"),
)
