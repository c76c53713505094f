"""The question of a run of speed factors, with its settings as the steps take them."""

from functools import cached_property

from esjobs.core.rules import CleaningRules
from esjobs.runs.question import Question
from esjobs.speed.settings import FitSettings


class SpeedQuestion(Question):
    """How fast were queues and CPU models in a window; a restriction is one of the buckets in the fits."""

    @cached_property
    def rules(self) -> CleaningRules:
        """The rules under which jobs enter the buckets."""
        return CleaningRules.of(self.settings["rules"])

    @cached_property
    def fit(self) -> FitSettings:
        """What enters the fits and when a name gets a verdict."""
        return FitSettings.model_validate(self.settings["fit"])
