"""Footprints, tags and issues of jobs."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "issues",
    sections=(("issues", Lazy("esjobs.issues.settings:DetectSettings")),),
    steps=(StepEntry("detect", Lazy("esjobs.issues.night:DETECT"), after=("aggregate", "watch")),),
    facade=Lazy("esjobs.issues.facade:Issues"),
    after_ingest=Lazy("esjobs.issues.series_jobs:noted"),
)
