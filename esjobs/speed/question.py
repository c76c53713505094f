"""Question of a run of speed factors, with its settings."""

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
    """Question about the speed of queues, sites and CPU models in a window; a restriction selects buckets."""

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
        """Return a question with the current methods and resolver of CPU names."""
        added = {**RESOLVER, **(versions or {})}
        return super().ask(kind, window, settings, tasks, where, versions=added)

    @cached_property
    def rules(self) -> CleaningRules:
        """Cleaning rules of the jobs in buckets."""
        return CleaningRules.of(self.settings["rules"])

    @cached_property
    def fit(self) -> FitSettings:
        """Settings of fits and verdicts."""
        return FitSettings.model_validate(self.settings["fit"])
