"""Kinds of questions that runs answer: what enters such a question, its steps in order, and their tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from esjobs.core.tables import Table


def _no_preference(settings: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    del settings
    return {}


@dataclass(frozen=True)
class Kind:
    """A kind of question.

    ``tables``: what its steps write for a run, each replaced as a whole per run. ``sections``: the sections
    of the settings that enter its question; ``versions``: of the methods behind the answer, by name;
    of what else decides it: who asks adds them.
    ``preferred``: of a run's settings, the values that come first where its rows are shown, by column; the
    first ``method`` is the headline. ``named``: whether the name of the kind enters run ids; without it they
    are those of a time when there was one kind only. ``command``: what to type for all its steps; each then
    has a command of its own name, which also takes the steps between. None: nothing to type makes its runs.
    """

    name: str
    tables: tuple[Table, ...]
    sections: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    preferred: Callable[[Mapping[str, Any]], Mapping[str, Sequence[str]]] = _no_preference
    named: bool = True
    command: str | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps that make its tables, in order; a run that has them all is complete."""
        return tuple(dict.fromkeys(table.made_by for table in self.tables))

    def made_by(self, step: str) -> tuple[Table, ...]:
        """The tables that a step writes."""
        return tuple(table for table in self.tables if table.made_by == step)

    def asks(self, described: Mapping[str, Any]) -> bool:
        """Whether a question, as plain data, is of this kind."""
        return described.get("kind") == (self.name if self.named else None)
