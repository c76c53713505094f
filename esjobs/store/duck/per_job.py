"""Expressions evaluated once per job, below the grouping.

Inside aggregate functions each would be evaluated again, and filters on texts row by row instead of per
distinct value: three times slower for sums over failed jobs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from esjobs.core.query import Filter
from esjobs.store.duck.schema import quote


@dataclass
class PerJob:
    """Columns beside the stored ones; ``compiled`` joins filters into one condition."""

    compiled: Callable[[Sequence[Filter]], str]
    _columns: dict[str, str] = field(default_factory=dict)
    _conditions: dict[tuple[Filter, ...], str] = field(default_factory=dict)

    def named(self, expression: str) -> str:
        """Return the column of an expression, reused for equal ones."""
        # by text: equal expressions of several metrics share a column
        return self._columns.setdefault(expression, quote(f"per job {len(self._columns)}"))

    def condition(self, filters: tuple[Filter, ...]) -> str:
        """Return the column of a condition."""
        if filters not in self._conditions:
            self._conditions[filters] = self.named(self.compiled(filters))
        return self._conditions[filters]

    def rows(self, table: str, where: str) -> tuple[str, str]:
        """Return the source behind FROM, and the remaining clause."""
        if not self._columns:
            return table, where
        made = ", ".join(f"{expression} AS {name}" for expression, name in self._columns.items())
        return f"(\nSELECT *, {made}\nFROM {table}{where}\n)", ""
