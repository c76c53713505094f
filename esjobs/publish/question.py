"""What a run answers: a window, the settings that count, a restriction, the versions of the methods.

A run is named by its question, not by the moment: who asks again replaces the answer.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from esjobs.core.conditions import written
from esjobs.core.identity import content_id
from esjobs.core.window import Window
from esjobs.publish.stored import StoredRun
from esjobs.schema.kinds import Kind


@dataclass(frozen=True)
class Question:
    """A question of a kind, as plain data that is written and read back without loss.

    ``settings``: the sections that the kind names, each as plain data. ``tasks`` and ``where`` restrict what
    is looked at; ``where`` as people write conditions, ``queue=CERN``.
    """

    kind: Kind
    window: Window
    settings: Mapping[str, Mapping[str, Any]]
    tasks: tuple[str, ...]
    where: tuple[str, ...]
    versions: Mapping[str, str]

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
        """A question of today's methods; ``settings``: has the sections of the kind as attributes.

        ``versions``: beside those of the kind, of what else decides the answer.
        """
        sections = {name: _plain(getattr(settings, name)) for name in kind.sections}
        all_versions = {**kind.versions, **(versions or {})}
        return cls(kind, window, sections, tuple(tasks), tuple(where), all_versions)

    @classmethod
    def of_run(cls, run: StoredRun) -> Self:
        """The question that a stored run answered, with the versions of then."""
        rest = dict(run.settings)
        sections = {name: rest.pop(name) for name in run.kind.sections if name in rest}
        tasks, where = (tuple(rest.pop(name, ())) for name in ("tasks", "where"))
        for name in ("window", "kind"):
            rest.pop(name, None)
        return cls(run.kind, run.window, sections, tasks, where, rest)

    def describe(self) -> dict[str, Any]:
        """The question as plain data, from which :meth:`of_run` makes it again."""
        return {
            **({"kind": self.kind.name} if self.kind.named else {}),
            "window": str(self.window),
            **self.settings,
            "tasks": sorted(self.tasks),
            "where": sorted(self.where),
            **self.versions,
        }

    @property
    def run(self) -> str:
        """The run id: it names the question, not the moment."""
        return content_id(self.describe())

    @property
    def restriction(self) -> tuple[str, ...]:
        """The conditions on what is looked at, as people write them; none: everything."""
        return (*(written("task_id", "=", [task]) for task in self.tasks), *self.where)


def _plain(section: Any) -> dict[str, Any]:
    """A section of the settings, a dataclass or a model, as JSON would give it back."""
    values = section.model_dump(mode="json") if hasattr(section, "model_dump") else asdict(section)
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain
