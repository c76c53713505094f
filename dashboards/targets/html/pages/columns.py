"""Rows packed for a browser: a list per column, repeated texts once, what is read beside what sorts it."""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import groupby
from typing import Any

import numpy as np

from dashboards.spec import Entry, Panel, look_of
from dashboards.targets.html.cells import moment, read
from dashboards.targets.html.marks import look
from dashboards.view.rows import Row
from esjobs.core.text import visible

Packed = dict[str, Any]

# Formats whose texts are those of the column
_AS_THEY_ARE = ("name", "text", "sentence", "shared")
# Mean number of repetitions from which texts of a column are stored once
_SHARED_FROM = 2


@dataclass
class Columns:
    """The columns of a pool, added as panels ask for them; each is kept once.

    ``exact``: numbers have ten digits, for sums of which small differences are shown.
    """

    rows: Sequence[Row]
    exact: bool = False
    packed: dict[str, Packed] = field(default_factory=dict)

    def value(self, column: str) -> str:
        """The name of a column with its values: numbers, truth values, texts, times as texts."""
        if self.exact:
            self.packed.setdefault(column, {"v": [_exact(row.get(column)) for row in self.rows]})
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


def _exact(value: Any) -> Any:
    return float(f"{value:.10g}") if isinstance(value, float) else plain(value)


def pack(values: Sequence[Any]) -> Packed:
    """A column: its values (``v``), or where they repeat their list and places in it (``d``, ``i``).

    Long columns of numbers are bytes in base 64: counts (``n``) in as few bytes as the largest needs or as
    runs, others (``f``) in four, which is seven digits.

    >>> pack(["evgen", "evgen", None, "evgen"]), pack([1.5, None])
    ({'d': ['evgen', None], 'i': [0, 0, 1, 0]}, {'v': [1.5, None]})
    >>> pack([7] * 80 + [None] * 20), pack([0.5 + n for n in range(64)])["f"][:12]
    ({'n': {'r': [7, 80, None, 20]}}, 'AAAAPwAAwD8A')
    """
    if not any(isinstance(value, str) for value in values):
        return _numbers(values)
    if len(set(values)) * _SHARED_FROM > len(values) > _SHARED_FROM:
        return {"v": list(values)}
    return _once(values)


def _once(values: Sequence[Any]) -> Packed:
    """Each value once, and the places of all."""
    places: dict[Any, int] = {}
    numbers = [places.setdefault(value, len(places)) for value in values]
    return {"d": list(places), "i": counts(numbers)}


def _numbers(values: Sequence[Any]) -> Packed:
    if len(values) < _PACKED_FROM or any(isinstance(value, bool) for value in values):
        return {"v": list(values)}
    numbers = np.array(values, np.float64)
    finite = numbers[~np.isnan(numbers)]
    if np.all((finite >= 0) & (finite < _UNKNOWN[4]) & (finite == np.floor(finite))):
        return {"n": counts([None if value is None else int(value) for value in values])}
    if len(set(values)) * _SHARED_FROM < len(values):
        return _once(values)
    with np.errstate(over="ignore"):
        floats = numbers.astype("<f4")
    # a number beyond what four bytes tell became infinite
    if np.isinf(floats).any():
        return {"v": list(values)}
    return {"f": base64.b64encode(floats.tobytes()).decode()}


def counts(values: Sequence[int | None]) -> Any:
    """Whole numbers from 0 on: as a list, in so many bytes each (``w``, ``b``), or as runs (``r``).

    Unknown is the largest number of so many bytes.
    """
    if len(values) < _PACKED_FROM:
        return list(values)
    runs = [item for value, same in groupby(values) for item in (value, sum(1 for _ in same))]
    largest = max(filter(None, values), default=0)
    width = next(each for each, unknown in _UNKNOWN.items() if largest < unknown)
    # base 64 takes four letters for three bytes
    if len(runs) * _LETTERS_OF_A_RUN < len(values) * width * 4 / 3:
        return {"r": runs}
    packed = np.array([_UNKNOWN[width] if value is None else value for value in values], f"<u{width}")
    return {"w": width, "b": base64.b64encode(packed.tobytes()).decode()}


def steps(places: Sequence[int]) -> Any:
    """Places of rows: ``{"to": n}`` where they are the first n in their order, else as :func:`counts`.

    >>> steps([0, 1, 2, 3]), steps([3, 1])
    ({'to': 4}, [3, 1])
    """
    if all(place == number for number, place in enumerate(places)):
        return {"to": len(places)}
    return counts(places)


# Shorter columns are lists, which people can read
_PACKED_FROM = 64
# By the bytes of a number, the one that means unknown
_UNKNOWN = {1: 2**8 - 1, 2: 2**16 - 1, 4: 2**32 - 1}
# Approximate size of both numbers of a run
_LETTERS_OF_A_RUN = 3


def numbered(rows: Iterable[Row]) -> list[Row]:
    """Rows that know their place in a pool."""
    return [{**row, PLACE: place} for place, row in enumerate(rows)]


PLACE = "\0place"  # Internal column with the position of a row
