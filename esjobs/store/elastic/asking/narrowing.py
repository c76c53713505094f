"""The jobs of some groups in some bins as a clause: as good as exact where that takes few conditions.

What it lets through beside them costs time; whoever asks looks at the groups of the answer again.
"""

from calendar import monthrange
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from esjobs.store.elastic.asking.clauses import Clause, all_of, any_of, negated
from esjobs.store.elastic.asking.composite import Grouping
from esjobs.store.elastic.asking.days import between, moment_of

_MOST_PIECES = 300
"""Pieces of a clause, each with two conditions or three; products take 1024 at least."""
_MOST_VALUES = 10_000

Keys = Mapping[str, Any]
"""A group as the index tells it: by the name of a column in answers, the time of its days as ``day``."""


def narrowed(asked: Grouping, rows: Sequence[Keys], wanted: Sequence[tuple[Clause, Sequence[int]]]) -> Clause:
    """The clause of all that is wanted: of each bin, in its clause, some of the rows, by their numbers."""
    by = _telling(asked, rows)
    if by is None:
        return any_of([clause for clause, _ in wanted])
    beside = "day" if asked.days else next((name for name in _columns(asked) if name != by), "")
    pieces = [_pieces(rows, numbers, by, beside) for _, numbers in wanted]
    if sum(map(len, pieces)) > _MOST_PIECES:
        pieces = [_pieces(rows, numbers, by, "") for _, numbers in wanted]
    said = []
    for (clause, numbers), of_bin in zip(wanted, pieces, strict=True):
        if len(numbers) == len(rows):
            said.append(clause)
            continue
        parts = [
            all_of([*_is(asked, beside, value), _among(asked, by, among)]) for value, among in of_bin.items()
        ]
        said.append(all_of([clause, any_of(parts)]))
    return any_of(said)


_ANY = object()


def _pieces(rows: Sequence[Keys], numbers: Sequence[int], by: str, beside: str) -> dict[Any, set[Any]]:
    """By the value of one key the values of the other."""
    found: dict[Any, set[Any]] = defaultdict(set)
    for number in numbers:
        found[rows[number][beside] if beside else _ANY].add(rows[number][by])
    return found


def _columns(asked: Grouping) -> list[str]:
    """The keys whose values a clause can name."""
    return [
        name
        for name, column in asked.asked_columns.items()
        if asked.live[column.field].field.type in ("keyword", "integer")
    ]


def _telling(asked: Grouping, rows: Sequence[Keys]) -> str | None:
    """The key that tells most groups apart; None where there is none."""
    distinct = {name: len({row[name] for row in rows}) for name in _columns(asked)}
    name = max(distinct, key=distinct.__getitem__, default=None)
    return name if name is not None and 1 < distinct[name] <= _MOST_VALUES else None


def _is(asked: Grouping, name: str, value: Any) -> list[Clause]:
    if value is _ANY:
        return []
    if name != "day":
        return [_among(asked, name, {value})]
    start = moment_of(value)
    days = {"day": 1, "week": 7, "month": monthrange(start.year, start.month)[1]}
    end = start + timedelta(days=days[asked.span])
    return [between(asked.days, start, end)]


def _among(asked: Grouping, name: str, values: set[Any]) -> Clause:
    path = asked.columns[name].path
    known = [value for value in values if value is not None]
    said: list[Clause] = [{"terms": {path: known}}] if known else []
    if None in values:
        said.append(negated({"exists": {"field": path}}))
    return any_of(said)
