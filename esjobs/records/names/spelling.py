"""Values that people choose rows by, held against what is stored: misspelt ones are refused, case is not."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

import pyarrow as pa

from esjobs.core.errors import KeywordError, UsageError
from esjobs.core.fields import Field
from esjobs.core.tables import Table
from esjobs.core.words import LEVELS, METHODS, titled

Chosen = Mapping[tuple[str, ...], Sequence[str]]
"""Columns -> the values that a row has in one of them; without values, any."""

_LISTED = 12
"""Up to so many values are named; of more only those alike."""

_CLOSED: Mapping[str, tuple[str, ...]] = {"level": LEVELS, "method": METHODS}
"""Columns with values that the program gives, not the records: one of them may be missing from the rows."""


def chosen_rows(table: Table, chosen: Chosen, read: Callable[[Chosen], pa.Table]) -> pa.Table:
    """The rows that ``read`` gives for the values chosen, each spelt as it is stored.

    ``read``: the rows of the table with these values; called again, without and with values, only when a
    value is in none of the first rows. Raises :class:`UsageError` for a value that the table does not have.
    """
    chosen = {columns: values for columns, values in chosen.items() if values}
    for column, accepted in _CLOSED.items():
        if (column,) in chosen:
            chosen[column,] = as_stored(f"there is no {column}", chosen[column,], accepted)
    rows = read(chosen)
    absent = [
        columns for columns in chosen if columns[0] not in _CLOSED and _lacks(rows, columns, chosen[columns])
    ]
    if not absent:
        return rows
    everything = read({})
    spelt = {
        columns: as_stored(
            f"{table.name} have no {' or '.join(map(titled, columns))}",
            chosen[columns],
            _values(everything, columns),
            how=f"esjobs show {table.name} --format csv",
        )
        for columns in absent
    }
    return rows if all(spelt[columns] == chosen[columns] for columns in absent) else read(chosen | spelt)


def as_stored(start: str, values: Iterable[str], there: Collection[str], how: str = "") -> tuple[str, ...]:
    """Each value as it is spelt ``there``; one that is not raises :class:`UsageError` that says ``start``.

    >>> as_stored("flags have no name", ["iaas", "CERN"], ["CERN", "IAAS"])
    ('IAAS', 'CERN')
    """
    return tuple(value if value in there else _forgiven(start, value, there, how) for value in values)


def _forgiven(start: str, value: str, there: Collection[str], how: str) -> str:
    alike = sorted(each for each in there if each.casefold() == value.casefold())
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise UsageError(f"{start} '{value}'; there are {', '.join(alike)}: write one of them as it stands")
    raise UsageError(f"{start} '{value}'; {accepted(value, there, how)}")


def by_words(start: str, value: str, there: Collection[str], how: str = "") -> str:
    """The one name whose words begin with those of a text, in any order; else as :func:`as_stored`.

    >>> by_words("no job names a CPU model", " 7742 epyc", ["AMD EPYC 7742", "AMD EPYC 7302"])
    'AMD EPYC 7742'
    """
    asked = _words(value)
    exact = [each for each in there if _words(each) == asked]
    alike = exact or sorted(each for each in there if asked and _begin_with(_words(each), asked))
    if len(alike) == 1:
        return alike[0]
    if alike:
        listed = ", ".join(alike[:_LISTED]) + (f" and {len(alike) - _LISTED} more" if alike[_LISTED:] else "")
        raise UsageError(f"'{value}' may be {listed}: name one of them")
    return _forgiven(start, value, there, how)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _begin_with(words: Sequence[str], asked: Iterable[str]) -> bool:
    return all(any(word.startswith(each) for word in words) for each in asked)


def accepted(value: str, there: Collection[str], how: str = "") -> str:
    """What can be written in the place of a value that is not there: all there is, or what is close to it."""
    if not there:
        return "there are no rows at all"
    if len(there) <= _LISTED:
        return f"there are {', '.join(sorted(there))}"
    close = _close(value, there)
    return "; ".join(filter(None, [f"close are {', '.join(close)}" * bool(close), f"list them with: {how}"]))


def refuse_unknown_keywords(given: Iterable[str], known: Collection[str]) -> None:
    """Raise :class:`KeywordError`, with the keyword that was meant, for one that the method does not take."""
    for name in given:
        if name not in known:
            close = _close(name, known)
            meant = f"did you mean {close[0]}? " if close else ""
            raise KeywordError(f"no keyword '{name}'; {meant}there are {', '.join(known)}")


def _close(value: str, there: Iterable[str]) -> list[str]:
    """The nearest three, whatever their case."""
    folded: dict[str, str] = {}
    for each in there:
        folded.setdefault(each.casefold(), each)
    return [folded[each] for each in get_close_matches(value.casefold(), folded, n=3, cutoff=0.5)]


def column_named(table: Table, name: str) -> Field:
    """A column of a table; :class:`UsageError` with the name that was meant for one that it lacks."""
    if name in table.column_names:
        return table.column(name)
    close = _close(name, table.column_names)
    meant = f"did you mean {close[0]}? " if close else ""
    raise UsageError(
        f"{table.name} have no column '{name}'; {meant}there are {', '.join(table.column_names)}"
    )


def _lacks(rows: pa.Table, columns: Iterable[str], values: Iterable[str]) -> bool:
    return not set(values) <= _values(rows, columns)


def _values(rows: pa.Table, columns: Iterable[str]) -> set[str]:
    found = (value for column in columns for value in rows.column(column).unique().to_pylist())
    return {str(value) for value in found if value is not None}
