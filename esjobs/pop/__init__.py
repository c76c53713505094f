"""Parallel efficiency of jobs (POP metrics) from reports of TALP, of the DLB library."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "pop",
    sections=(("pop", Lazy("esjobs.pop.settings:TalpSettings")),),
    steps=(StepEntry("talp", Lazy("esjobs.pop.night:TALP"), after=("ingest",)),),
    after_ingest=Lazy("esjobs.pop.reports:joined"),
    facade=Lazy("esjobs.pop.facade:Pop"),
)
