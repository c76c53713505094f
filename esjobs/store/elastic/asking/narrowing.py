"""Jobs of some groups in some bins as a clause, approximated from above if that is shorter.

The caller checks the groups of the answer, so a wide clause costs time only.
"""

from calendar import monthrange
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from esjobs.store.elastic.asking.clauses import Clause, all_of, any_of, negated
from esjobs.store.elastic.asking.composite import Grouping
from esjobs.store.elastic.asking.days import between, moment_of

# Pieces of a clause, each with two conditions or three; products take 1024 at least
_MOST_PIECES = 300
_MOST_VALUES = 10_000

Keys = Mapping[str, Any]
"""A group as the index tells it: by the name of a column in answers, the time of its days as ``day``."""


def narrowed(
    requested: Grouping, rows: Sequence[Keys], wanted: Sequence[tuple[Clause, Sequence[int]]]
) -> Clause:
    """Return the clause of the wanted rows, by number, of each bin."""
    by = _telling(requested, rows)
    if by is None:
        return any_of([clause for clause, _ in wanted])
    beside = _beside(requested, by)
    pieces = [_pieces(rows, numbers, by, beside) for _, numbers in wanted]
    if sum(map(len, pieces)) > _MOST_PIECES:
        # by one key alone: more groups than wanted, in fewer pieces
        pieces = [_pieces(rows, numbers, by, "") for _, numbers in wanted]
    of_bins = zip(wanted, pieces, strict=True)
    return any_of(
        [
            # all groups: the bin alone says it
            clause if len(numbers) == len(rows) else all_of([clause, _groups(requested, by, beside, of_bin)])
            for (clause, numbers), of_bin in of_bins
        ]
    )


def _beside(requested: Grouping, by: str) -> str:
    """Return a second key that tells groups apart; empty without one."""
    return "day" if requested.days else next((name for name in _columns(requested) if name != by), "")


def _groups(requested: Grouping, by: str, beside: str, of_bin: Mapping[Any, set[Any]]) -> Clause:
    return any_of(
        [
            all_of([*_is(requested, beside, value), _among(requested, by, among)])
            for value, among in of_bin.items()
        ]
    )


_ANY = object()


def _pieces(rows: Sequence[Keys], numbers: Sequence[int], by: str, beside: str) -> dict[Any, set[Any]]:
    found: dict[Any, set[Any]] = defaultdict(set)
    for number in numbers:
        found[rows[number][beside] if beside else _ANY].add(rows[number][by])
    return found


def _columns(requested: Grouping) -> list[str]:
    return [
        name
        for name, column in requested.requested_columns.items()
        if requested.live[column.field].field.type in ("keyword", "integer")
    ]


def _telling(requested: Grouping, rows: Sequence[Keys]) -> str | None:
    distinct = {name: len({row[name] for row in rows}) for name in _columns(requested)}
    # most distinct values: each of them leaves the fewest groups
    name = max(distinct, key=distinct.__getitem__, default=None)
    return name if name is not None and 1 < distinct[name] <= _MOST_VALUES else None


def _is(requested: Grouping, name: str, value: Any) -> list[Clause]:
    if value is _ANY:
        return []
    if name != "day":
        return [_among(requested, name, {value})]
    start = moment_of(value)
    # a bucket has the start of its span only
    days = {"day": 1, "week": 7, "month": monthrange(start.year, start.month)[1]}
    end = start + timedelta(days=days[requested.span])
    return [between(requested.days, start, end)]


def _among(requested: Grouping, name: str, values: set[Any]) -> Clause:
    path = requested.columns[name].path
    present = [value for value in values if value is not None]
    said: list[Clause] = [{"terms": {path: present}}] if present else []
    # a terms clause cannot ask for what is missing
    if None in values:
        said.append(negated({"exists": {"field": path}}))
    return any_of(said)
