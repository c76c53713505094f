"""Kinds of questions that runs answer: their steps in order, and the tables that these write."""

from dataclasses import dataclass

from esjobs.core.tables import Table


@dataclass(frozen=True)
class Kind:
    """A kind of question. ``tables``: what its steps write, each replaced as a whole per run."""

    name: str
    tables: tuple[Table, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps that make its tables, in order; a run that has them all is complete."""
        return tuple(dict.fromkeys(table.made_by for table in self.tables))

    def made_by(self, step: str) -> tuple[Table, ...]:
        """The tables that a step writes."""
        return tuple(table for table in self.tables if table.made_by == step)
