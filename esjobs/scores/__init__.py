"""How well jobs use what they are given: scores of counters and issues, rankings, what was asked for."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "scores",
    sections=(("scores", Lazy("esjobs.scores.settings:EfficiencySettings")),),
    steps=(StepEntry("score", Lazy("esjobs.scores.night:SCORE"), after=("aggregate", "detect")),),
    offers={"scores.rank": Lazy("esjobs.scores.rank:rank")},
    facade=Lazy("esjobs.scores.facade:Scores"),
)
