"""Rows packed for a browser: a list per column, repeated texts once, what is read beside what sorts it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from dashboards.spec import Entry, Panel, look_of
from dashboards.targets.html.cells import moment, read
from dashboards.targets.html.marks import look
from dashboards.view.rows import Row
from esjobs.core.text import visible

Packed = dict[str, Any]

_AS_THEY_ARE = ("name", "text", "sentence", "shared")
"""How fields read whose texts are those of the column itself."""
_SHARED_FROM = 2
"""How often the texts of a column repeat, on average, for them to be kept once."""


@dataclass
class Columns:
    """The columns of a pool, added as panels ask for them; each is kept once, whoever asks."""

    rows: Sequence[Row]
    packed: dict[str, Packed] = field(default_factory=dict)

    def value(self, column: str) -> str:
        """The name of a column with its values: numbers, truth values, texts, times as texts."""
        return self._kept(column, lambda row: plain(row.get(column)))

    def text(self, entry: Entry) -> str:
        """The name of a column with a field of each row as people read it."""
        if entry.show in _AS_THEY_ARE and not (entry.unit or entry.fixed or entry.per):
            return self.value(entry.column)
        parts = (entry.column, entry.show, entry.error, entry.unit, entry.per, entry.fixed and entry.fixed[0])
        return self._kept("~".join(str(part or "") for part in parts), lambda row: read(row, entry))

    def look(self, panel: Panel) -> str:
        """The name of a column with the label of the look in which a chart draws each row."""
        return self._kept(f"look of {panel.id}", lambda row: look(panel, row).label)

    def verdict(self, column: str) -> str:
        """The name of a column with the look of a verdict that stands in another one."""

        def key(row: Row) -> str | None:
            word = row.get(column)
            return None if word is None else look_of(word, row.get("origin"), row.get("confirmed"))

        return self._kept(f"look of {column}", key)

    def made(self, name: str, make: Callable[[Row], Any]) -> str:
        """The name of a column of its own."""
        return self._kept(name, make)

    def _kept(self, name: str, make: Callable[[Row], Any]) -> str:
        if name not in self.packed:
            self.packed[name] = pack([make(row) for row in self.rows])
        return name


def plain(value: Any) -> Any:
    """A value as JSON takes it: texts with every character visible, numbers to seven digits."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, date):
        return value.isoformat()
    return float(f"{value:.7g}") if isinstance(value, float) else value


def pack(values: Sequence[Any]) -> Packed:
    """A column: its values (``v``), or where texts repeat their list and places in it (``d``, ``i``).

    >>> pack(["evgen", "evgen", None, "evgen"]), pack([1.5, None])
    ({'d': ['evgen', None], 'i': [0, 0, 1, 0]}, {'v': [1.5, None]})
    """
    if not any(isinstance(value, str) for value in values):
        return {"v": list(values)}
    places: dict[Any, int] = {}
    numbers = [places.setdefault(value, len(places)) for value in values]
    if len(places) * _SHARED_FROM > len(values) > _SHARED_FROM:
        return {"v": list(values)}
    return {"d": list(places), "i": numbers}


def numbered(rows: Iterable[Row]) -> list[Row]:
    """Rows that know their place in a pool."""
    return [{**row, PLACE: place} for place, row in enumerate(rows)]


PLACE = "\0place"
"""Where a row says its place; no table has such a column."""
