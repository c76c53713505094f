"""Scores of jobs: use of resources from counters and issues, rankings, requested against used."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "scores",
    sections=(("scores", Lazy("esjobs.scores.settings:EfficiencySettings")),),
    steps=(StepEntry("score", Lazy("esjobs.scores.night:SCORE"), after=("aggregate", "detect")),),
    offers={"scores.rank": Lazy("esjobs.scores.rank:rank")},
    facade=Lazy("esjobs.scores.facade:Scores"),
)
