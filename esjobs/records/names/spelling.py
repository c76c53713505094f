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

# Up to so many values are named; of more only those alike.
_LISTED = 12

# Columns with values that the program gives, not the records: one of them may be missing from the rows.
_CLOSED: Mapping[str, tuple[str, ...]] = {"level": LEVELS, "method": METHODS}


def _with_closed(chosen: dict[tuple[str, ...], Sequence[str]]) -> Chosen:
    """Spell the values of columns that have a fixed list of them."""
    for column, accepted in _CLOSED.items():
        if (column,) in chosen:
            chosen[column,] = as_stored(f"unknown {column}", chosen[column,], accepted)
    return chosen


def chosen_rows(table: Table, chosen: Chosen, read: Callable[[Chosen], pa.Table]) -> pa.Table:
    """Return the rows that ``read`` gives for the chosen values, each spelt as it is stored.

    ``read`` is called again, without and with values, if a value is in none of the first rows. Raises
    :class:`UsageError` for a value that the table does not have.
    """
    chosen = _with_closed({columns: values for columns, values in chosen.items() if values})
    rows = read(chosen)
    stored = [columns for columns in chosen if columns[0] not in _CLOSED]
    absent = [columns for columns in stored if not set(chosen[columns]) <= _values(rows, columns)]
    if not absent:
        return rows
    everything = read({})
    spelt = dict(chosen)
    for columns in absent:
        spelt[columns] = as_stored(
            f"table {table.name} has no {' or '.join(map(titled, columns))}",
            chosen[columns],
            _values(everything, columns),
            how=f"esjobs show {table.name} --format csv",
        )
    return rows if spelt == chosen else read(spelt)


def as_stored(start: str, values: Iterable[str], stored: Collection[str], how: str = "") -> tuple[str, ...]:
    """Each value as it is spelt ``stored``; one that is not raises :class:`UsageError` that says ``start``.

    >>> as_stored("table flags has no name", ["iaas", "CERN"], ["CERN", "IAAS"])
    ('IAAS', 'CERN')
    """
    return tuple(value if value in stored else _forgiven(start, value, stored, how) for value in values)


def _forgiven(start: str, value: str, stored: Collection[str], how: str) -> str:
    matching = sorted(each for each in stored if each.casefold() == value.casefold())
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UsageError(f"{start} '{value}'; use one of these spellings: {', '.join(matching)}")
    raise UsageError(f"{start} '{value}'; {accepted(value, stored, how)}")


def by_words(start: str, value: str, stored: Collection[str], how: str = "") -> str:
    """The one name whose words begin with those of a text, in any order; else as :func:`as_stored`.

    >>> by_words("no job names a CPU model", " 7742 epyc", ["AMD EPYC 7742", "AMD EPYC 7302"])
    'AMD EPYC 7742'
    """
    wanted = _words(value)
    exact = [each for each in stored if _words(each) == wanted]
    matching = exact or sorted(each for each in stored if wanted and _begin_with(_words(each), wanted))
    if len(matching) == 1:
        return matching[0]
    if matching:
        listed = ", ".join(matching[:_LISTED]) + (
            f" and {len(matching) - _LISTED} more" if matching[_LISTED:] else ""
        )
        raise UsageError(f"'{value}' is ambiguous; use one of: {listed}")
    return _forgiven(start, value, stored, how)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _begin_with(words: Sequence[str], wanted: Iterable[str]) -> bool:
    return all(any(word.startswith(each) for word in words) for each in wanted)


def accepted(value: str, stored: Collection[str], how: str = "") -> str:
    """Return the accepted values for a message: all, or those close to ``value``."""
    if not stored:
        return "no rows are stored"
    if len(stored) <= _LISTED:
        return f"use one of: {', '.join(sorted(stored))}"
    close = _close(value, stored)
    return "; ".join(filter(None, [f"similar: {', '.join(close)}" * bool(close), f"list them: {how}"]))


def refuse_unknown_keywords(names: Iterable[str], existing: Collection[str]) -> None:
    """Raise :class:`KeywordError`, with the keyword that was meant, for one that the method does not take."""
    for name in names:
        if name not in existing:
            close = _close(name, existing)
            meant = f"did you mean {close[0]}? " if close else ""
            raise KeywordError(f"unknown argument '{name}'; {meant}use one of: {', '.join(existing)}")


def _close(value: str, stored: Iterable[str]) -> list[str]:
    folded: dict[str, str] = {}
    for each in stored:
        folded.setdefault(each.casefold(), each)
    return [folded[each] for each in get_close_matches(value.casefold(), folded, n=3, cutoff=0.5)]


def column_named(table: Table, name: str) -> Field:
    """A column of a table; :class:`UsageError` with the name that was meant for one that it lacks."""
    if name in table.column_names:
        return table.column(name)
    close = _close(name, table.column_names)
    meant = f"did you mean {close[0]}? " if close else ""
    raise UsageError(
        f"{table.name} have no column '{name}'; {meant}use one of: {', '.join(table.column_names)}"
    )


def _values(rows: pa.Table, columns: Iterable[str]) -> set[str]:
    found = (value for column in columns for value in rows.column(column).unique().to_pylist())
    return {str(value) for value in found if value is not None}
