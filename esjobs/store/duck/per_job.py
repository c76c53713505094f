"""What is worked out of each job once, below the grouping, for all numbers of a question that need it.

Inside the aggregate functions an expression would be worked out again for each of them, and a condition
behind ``FILTER`` would look at its texts row by row, not at each distinct text once: three times the time for
sums over failed jobs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from esjobs.core.query import Filter
from esjobs.store.duck.schema import quote


@dataclass
class PerJob:
    """Columns beside those that are stored. ``compiled``: filters as one condition."""

    compiled: Callable[[Sequence[Filter]], str]
    _columns: dict[str, str] = field(default_factory=dict)
    _conditions: dict[tuple[Filter, ...], str] = field(default_factory=dict)

    def named(self, expression: str) -> str:
        """The column of an expression, the same for the same one."""
        return self._columns.setdefault(expression, quote(f"per job {len(self._columns)}"))

    def condition(self, filters: tuple[Filter, ...]) -> str:
        """The column that says whether filters hold."""
        if filters not in self._conditions:
            self._conditions[filters] = self.named(self.compiled(filters))
        return self._conditions[filters]

    def rows(self, table: str, where: str) -> tuple[str, str]:
        """What stands behind FROM, and the clause that is left to follow it."""
        if not self._columns:
            return table, where
        made = ", ".join(f"{expression} AS {name}" for expression, name in self._columns.items())
        return f"(\nSELECT *, {made}\nFROM {table}{where}\n)", ""
