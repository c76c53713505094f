"""The question of a run of speed factors, with its settings as the steps take them."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Self

from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.publish.question import Question
from esjobs.records.names.cpu_models import RESOLVER
from esjobs.schema.kinds import Kind
from esjobs.speed.settings import FitSettings


class SpeedQuestion(Question):
    """How fast were queues and CPU models in a window; a restriction is one of the buckets in the fits."""

    @classmethod
    def ask(
        cls,
        kind: Kind,
        window: Window,
        settings: object,
        tasks: Iterable[str] = (),
        where: Iterable[str] = (),
        *,
        versions: Mapping[str, str] | None = None,
    ) -> Self:
        """A question of today's methods, and of how names of CPUs are resolved today."""
        added = {**RESOLVER, **(versions or {})}
        return super().ask(kind, window, settings, tasks, where, versions=added)

    @cached_property
    def rules(self) -> CleaningRules:
        """The rules under which jobs enter the buckets."""
        return CleaningRules.of(self.settings["rules"])

    @cached_property
    def fit(self) -> FitSettings:
        """What enters the fits and when a name gets a verdict."""
        return FitSettings.model_validate(self.settings["fit"])
