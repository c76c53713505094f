"""Cells to maps of numbers: one column of objects, a column a member, or both.

What a file has becomes long columns of row, name and number, which are checked at once. Members without a
value are left out, a map without members is missing; names come sorted, so that equal maps are equal bytes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import arrow_type
from esjobs.records.ingest.base import MAX_COUNT
from esjobs.records.ingest.convert import (
    BAD_NAME,
    NEGATIVE,
    NOT_MAP,
    NOT_NUMBER,
    OUT_OF_RANGE,
    REPEATED,
    as_double,
    cast_where_possible,
    clean_text,
)
from esjobs.records.ingest.reading.layout import Codes, Column, Layout, Values

_MAP = arrow_type("map")
_Rows = npt.NDArray[np.int64]


class RepeatedNames(dict[str, object]):
    """An object of JSON that has a name twice: the last values, and all ``pairs`` as they were written."""

    def __init__(self, pairs: Sequence[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.pairs = tuple(pairs)

    def text(self) -> str:
        """As JSON, with all pairs."""
        members = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in self.pairs)
        return "{" + ", ".join(members) + "}"


def object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON from its pairs, as ``object_pairs_hook``: one with a name twice can be told.

    >>> type(json.loads('{"X": 1, "X": 2}', object_pairs_hook=object_of)).__name__
    'RepeatedNames'
    """
    found = dict(pairs)
    return found if len(found) == len(pairs) else RepeatedNames(pairs)


@dataclass(frozen=True)
class _Members:
    """Members in any order: their row, name and number (null: none)."""

    rows: _Rows
    names: pa.Array
    numbers: pa.Array


def map_of(
    rows: int, objects: Sequence[pa.Array], members: Mapping[str, pa.Array], column: Column, layout: Layout
) -> Values:
    """Return the maps of ``rows`` rows; one with a wrong or repeated member is null and marked.

    ``objects``: columns of maps, structs or JSON texts; ``members``: columns by the member that they hold.
    """
    codes = np.zeros(rows, dtype=np.uint8)
    parts = [part for cells in objects for part in _of_objects(_contiguous(cells), layout, codes)]
    parts += [_of_column(name, _contiguous(cells), layout, codes) for name, cells in members.items()]
    found = _joined(parts)
    # a member without a number is none; a wrong name or number marks its row
    found = _of(found, found.numbers.is_valid().to_numpy(zero_copy_only=False))
    found = _named(found, codes)
    _bounded(found, column, codes)
    order = _order(found, codes)
    order = order[codes[found.rows[order]] == 0]
    counts = np.bincount(found.rows[order], minlength=rows)
    # rows in order, of each as many members as it has: the layout of a map array
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    maps = pa.MapArray.from_arrays(
        pa.array(offsets, mask=np.append(counts == 0, False)),
        found.names.take(pa.array(order)),
        found.numbers.take(pa.array(order)),
    )
    return Values(maps.cast(_MAP), codes if codes.any() else None)


def _contiguous(cells: pa.Array) -> pa.Array:
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def _of_objects(cells: pa.Array, layout: Layout, codes: Codes) -> list[_Members]:
    kind = cells.type
    if pa.types.is_null(kind):
        return []
    if pa.types.is_struct(kind):
        children = zip(kind, cells.flatten(), strict=True)
        return [_of_column(child.name, values, layout, codes) for child, values in children]
    if pa.types.is_map(kind):
        ends = cells.offsets.to_numpy()
        # a null map may have members in the buffers
        lengths = np.where(cells.is_valid().to_numpy(zero_copy_only=False), np.diff(ends), 0)
        at = np.repeat(np.arange(len(cells)), lengths)
        entries = cells.cast(pa.list_(kind.field(0).type)).flatten()
        names, values = entries.flatten()
        numbers = _doubles(values, at, layout, codes)
        return [_Members(at, names, numbers)]
    return [_of_texts(clean_text(cells.cast(pa.string()), layout), codes)]


def _of_column(name: str, cells: pa.Array, layout: Layout, codes: Codes) -> _Members:
    at = np.arange(len(cells))
    valid = cells.is_valid().to_numpy(zero_copy_only=False)
    if not valid.all():
        at, cells = at[valid], cells.filter(pa.array(valid))
    return _Members(at, pa.repeat(pa.scalar(name), len(cells)), _doubles(cells, at, layout, codes))


def _doubles(cells: pa.Array, at: _Rows, layout: Layout, codes: Codes) -> pa.Array:
    if pa.types.is_null(cells.type):
        return pa.nulls(len(cells), pa.float64())
    if pa.types.is_nested(cells.type):
        # an object inside the map
        codes[at] = NOT_MAP
        return pa.nulls(len(cells), pa.float64())
    numbers, problems = as_double(cells, layout)
    if problems is not None:
        _mark(codes, at[problems > 0], NOT_NUMBER)
    return numbers


def _of_texts(cells: pa.Array, codes: Codes) -> _Members:
    # where names change from row to row there are no columns
    at: list[int] = []
    names: list[str] = []
    numbers: list[float] = []
    for row, text in enumerate(cells.to_pylist()):
        if text is None:
            continue
        try:
            parsed = json.loads(text, object_pairs_hook=object_of)
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, dict):
            _mark(codes, np.array([row]), NOT_MAP)
            continue
        if isinstance(parsed, RepeatedNames):
            _mark(codes, np.array([row]), REPEATED)
            continue
        for name, value in parsed.items():
            if value is None:
                continue
            number = _number(value)
            if number is None:
                _mark(codes, np.array([row]), NOT_NUMBER)
                continue
            numbers.append(number)
            at.append(row)
            names.append(name)
    return _Members(
        np.array(at, dtype=np.int64), pa.array(names, pa.string()), pa.array(numbers, pa.float64())
    )


def _number(value: object) -> float | None:
    # a counter may be written as a text; true and false are no numbers
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except ValueError:
        return None


def _joined(parts: Sequence[_Members]) -> _Members:
    return _Members(
        np.concatenate([np.empty(0, dtype=np.int64), *(part.rows for part in parts)]),
        pa.concat_arrays([pa.array([], pa.string()), *(part.names.cast(pa.string()) for part in parts)]),
        pa.concat_arrays([pa.array([], pa.float64()), *(part.numbers for part in parts)]),
    )


def _of(members: _Members, kept: npt.NDArray[np.bool_]) -> _Members:
    if kept.all():
        return members
    mask = pa.array(kept)
    return _Members(members.rows[kept], members.names.filter(mask), members.numbers.filter(mask))


def _named(members: _Members, codes: Codes) -> _Members:
    names, broken = cast_where_possible(members.names.cast(pa.binary()), pa.string())
    encoded = names.dictionary_encode()
    clean = pc.utf8_trim_whitespace(encoded.dictionary)
    # few names, many members: each name is looked at once
    bad = pc.or_(pc.equal(pc.utf8_length(clean), 0), pc.match_substring(clean, "\0"))
    wrong = bad.take(encoded.indices).fill_null(True).to_numpy(zero_copy_only=False)
    if broken is not None:
        wrong = wrong | broken
    if wrong.any():
        _mark(codes, members.rows[wrong], BAD_NAME)
    members = _Members(members.rows, clean.take(encoded.indices), members.numbers)
    return _of(members, ~wrong)


def _bounded(members: _Members, column: Column, codes: Codes) -> None:
    numbers = members.numbers.to_numpy(zero_copy_only=False)
    for mask, code in (
        (np.isnan(numbers), NOT_NUMBER),
        ((numbers < 0) & column.bounded, NEGATIVE),
        (np.abs(numbers) > MAX_COUNT, OUT_OF_RANGE),
    ):
        _mark(codes, members.rows[mask], code)


def _order(members: _Members, codes: Codes) -> _Rows:
    """Return the order of members by row and name; rows with a name twice are marked."""
    encoded = members.names.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    rank = np.empty(len(distinct), dtype=np.int64)
    # few distinct names are sorted once; the members of all rows by the numbers of their names
    rank[sorted(range(len(distinct)), key=distinct.__getitem__)] = np.arange(len(distinct))
    ranks = rank[encoded.indices.to_numpy(zero_copy_only=False)] if len(distinct) else members.rows
    order = np.lexsort((ranks, members.rows))
    rows, ranks = members.rows[order], ranks[order]
    twice = (rows[1:] == rows[:-1]) & (ranks[1:] == ranks[:-1])
    if twice.any():
        _mark(codes, rows[1:][twice], REPEATED)
    return order


def _mark(codes: Codes, rows: _Rows, code: int) -> None:
    # the first problem of a row stands
    rows = rows[codes[rows] == 0]
    codes[rows] = code
