"""Kinds of questions that runs answer: what enters such a question, its steps in order, and their tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from esjobs.core.tables import Table


@dataclass(frozen=True)
class Kind:
    """A kind of question.

    ``tables``: replaced per run by its steps. ``sections``: sections of the settings in its question;
    ``versions``: of its methods, by name. ``preferred``: values that come first, by column; the first
    ``method`` is the headline. ``named``: the name of the kind enters run ids. ``command``: runs all its
    steps, each of which has a command of its own name; None: no command makes its runs.
    """

    name: str
    tables: tuple[Table, ...]
    sections: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    preferred: Callable[[Mapping[str, Any]], Mapping[str, Sequence[str]]] = lambda _: {}
    named: bool = True
    command: str | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps that make its tables, in order; a run that has them all is complete."""
        # a step may make several tables: a dict keeps the first of each, in order
        return tuple(dict.fromkeys(table.made_by for table in self.tables))

    def made_by(self, step: str) -> tuple[Table, ...]:
        """The tables that a step writes."""
        return tuple(table for table in self.tables if table.made_by == step)

    def asks(self, described: Mapping[str, Any]) -> bool:
        """True if a question, as plain data, is of this kind."""
        # the id of a run of speed hashes a question without its kind
        return described.get("kind") == (self.name if self.named else None)
