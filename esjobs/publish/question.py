"""The question that a run answers: window, settings, restriction, method versions.

The run id hashes the question, so the same question replaces its answer.
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
    """Question of a kind as plain data, stored without loss.

    ``settings``: sections named by the kind. ``where``: conditions as people write them.
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
        """Return a question of the present methods.

        ``settings`` has the kind's sections as attributes; ``versions`` adds to those of the kind.
        """
        # no others: settings that cannot change the answer must not change the run id
        sections = {name: _plain(getattr(settings, name)) for name in kind.sections}
        all_versions = {**kind.versions, **(versions or {})}
        return cls(kind, window, sections, tuple(tasks), tuple(where), all_versions)

    @classmethod
    def of_run(cls, run: StoredRun) -> Self:
        """Return the question of a stored run, with its versions."""
        rest = dict(run.settings)
        sections = {name: rest.pop(name) for name in run.kind.sections if name in rest}
        tasks, where = (tuple(rest.pop(name, ())) for name in ("tasks", "where"))
        for name in ("window", "kind"):
            rest.pop(name, None)
        # what is left are the versions of methods
        return cls(run.kind, run.window, sections, tasks, where, rest)

    def describe(self) -> dict[str, Any]:
        """Return the question as plain data for :meth:`of_run`."""
        return {
            **({"kind": self.kind.name} if self.kind.named else {}),
            "window": str(self.window),
            **self.settings,
            # sorted: the order of conditions does not change the answer
            "tasks": sorted(self.tasks),
            "where": sorted(self.where),
            **self.versions,
        }

    @property
    def run(self) -> str:
        """Run id: hash of the question."""
        return content_id(self.describe())

    @property
    def restriction(self) -> tuple[str, ...]:
        """Conditions on tasks and jobs; empty: unrestricted."""
        return (*(written("task_id", "=", [task]) for task in self.tasks), *self.where)


def _plain(section: Any) -> dict[str, Any]:
    # through JSON, so that a new question equals one that was read back
    values = section.model_dump(mode="json") if hasattr(section, "model_dump") else asdict(section)
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain
