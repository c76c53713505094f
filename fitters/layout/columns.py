"""Columns of foreign libraries as NumPy arrays: labels as integer codes, numbers as float64.

pandas and Arrow columns are recognised by the methods they have, never by importing those libraries.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.errors import InputError
from fitters.layout.arrays import Codes, Floats
from fitters.layout.kernels import count

TYPE_LIMIT = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Labels:
    """A label column, factorised."""

    # The different labels, sorted (by their text if they cannot be compared with each other)
    names: NDArray[Any]
    codes: Codes  # one per row: Position in `names`; -1 where the label is missing

    def __len__(self) -> int:
        return int(self.codes.size)

    def __getitem__(self, rows: Any) -> "Labels":
        """Return the labels of some rows, under the same names.

        >>> factorise(["b", "a", "b"], "unit")[[0, 2]].used().names.tolist()
        ['b']
        """
        return Labels(self.names, self.codes[rows])

    def used(self) -> "Labels":
        """Return the same labels under the names that occur; this object if all do."""
        seen = np.zeros(self.names.size + 1, bool)  # the last place is that of missing labels, -1
        seen[self.codes] = True
        if seen[:-1].all():
            return self
        places = np.append(np.cumsum(seen[:-1], dtype=np.int32) - np.int32(1), np.int32(-1))
        return Labels(self.names[seen[:-1]], places[self.codes])

    def each(self) -> NDArray[Any]:
        """Return the label of every row, None where it is missing."""
        return np.append(self.names.astype(object), [None])[self.codes]


def factorise(column: object, what: str) -> Labels:
    """Encode a column of labels as integer codes.

    ``column``: NumPy array, list, pandas Series, Index or Categorical, Arrow Array or ChunkedArray, or
    Labels; None, NaN and NA are missing. ``what``: its name in errors. Encoded columns are not read as text.
    Raises :class:`InputError` if it is not one-dimensional or has a value that cannot be a label.

    >>> factorise(["b", "a", None, "b"], "unit").codes.tolist()
    [1, 0, -1, 1]
    >>> factorise([30, 10, 30], "task").names.tolist()
    [10, 30]
    """
    if isinstance(column, Labels):
        _require_rows(len(column), what)
        return column.used()
    if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
        raise InputError(f"{what} is a single value, {column!r:.60}; expected a column of labels")
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.ndim == 1 and column.size:
        _require_rows(column.size, what)
        return _integer_labels(column)
    raw_codes, names = _encode(column, what)
    if raw_codes.ndim != 1:
        raise InputError(f"{what} has {raw_codes.ndim} dimensions; expected one")
    _require_rows(raw_codes.size, what)
    return _sorted_and_used(raw_codes, names)


def _require_rows(rows: int, what: str) -> None:
    if rows > TYPE_LIMIT:
        raise InputError(f"{what} has {rows} rows; at most {TYPE_LIMIT} can be fitted")


def factorise_pair(task: object, unit: object) -> tuple[Labels, Labels, int]:
    """Return the codes of task and unit labels, and their length; both need the same rows, at least one."""
    tasks, units = factorise(task, "task"), factorise(unit, "unit")
    n = tasks.codes.size
    if n == 0:
        raise InputError("no rows; at least one is required")
    if units.codes.size != n:
        raise InputError(f"unit has {units.codes.size} rows and task has {n}; they must be equal")
    return tasks, units, n


def _encode(column: Any, what: str) -> tuple[NDArray[Any], NDArray[Any]]:
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # pandas Series of categories
        return np.asarray(column.cat.codes), _names(column.cat.categories)
    if hasattr(column, "categories") and hasattr(column, "codes"):  # pandas Categorical
        return np.asarray(column.codes), _names(column.categories)
    if hasattr(column, "dictionary_encode"):  # Arrow
        return _encode_arrow(column)
    if hasattr(column, "factorize"):  # pandas Series or Index
        codes, names = column.factorize()
        return np.asarray(codes), _names(names)
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputError(f"{what} has {column.ndim} dimensions; expected one")
    # a list of a masked array has None where it is masked
    return _encode_objects(column.tolist() if isinstance(column, np.ndarray) else list(column), what)


def _encode_arrow(column: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    column = column.dictionary_encode()
    if hasattr(column, "combine_chunks"):
        column = column.unify_dictionaries().combine_chunks()
    if hasattr(column, "num_chunks"):  # a chunked column without any chunk
        return np.empty(0, np.int32), np.empty(0, object)
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, _names(column.dictionary.to_pylist())


def _integer_labels(column: NDArray[Any]) -> Labels:
    # int32 codes 0, 1, ... without a gap are used uncopied.
    low, high = int(column.min()), int(column.max())
    if high - low > 4 * column.size + 1000:
        names, codes = np.unique(column, return_inverse=True)
        return Labels(names, codes.astype(np.int32))
    # a table is cheaper than a sort
    shifted: Any = column if low == 0 else column - column.dtype.type(low)
    places: Codes = shifted.astype(np.int32, copy=False)
    occurs = count(places, high - low + 1) > 0
    if not occurs.all():
        places = np.cumsum(occurs, dtype=np.int32)[places] - np.int32(1)
    return Labels(np.flatnonzero(occurs) + low, places)


def _encode_objects(values: list[Any], what: str) -> tuple[NDArray[Any], NDArray[Any]]:
    table: dict[Hashable, int] = {}
    try:
        raw = np.fromiter((table.setdefault(value, len(table)) for value in values), np.int64, len(values))
    except TypeError as error:
        raise InputError(
            f"{what} contains a value that cannot be a label ({error}); accepted: text and numbers"
        ) from None
    names = list(table)
    missing = [index for index, name in enumerate(names) if _is_missing(name)]
    if missing:
        lookup = np.arange(len(names))
        lookup[missing] = -1
        raw = lookup[raw]
    return raw, _names(names)


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124 - only NaN and NaT differ from themselves
    except (TypeError, ValueError):  # pandas' NA refuses to be a truth value
        return True


def _names(values: Any) -> NDArray[Any]:
    listed = list(values)
    if listed and all(type(value) is int or isinstance(value, np.integer) for value in listed):
        try:
            # integers as such: sorted by value, and without an object each
            return np.array(listed, np.int64)
        except OverflowError:
            pass
    names = np.empty(len(listed), object)
    names[:] = listed
    return names


def _sorted_and_used(codes: NDArray[Any], names: NDArray[Any]) -> Labels:
    used = np.zeros(len(names) + 1, bool)  # the last place catches the missing
    used[codes] = True
    indices = np.flatnonzero(used[:-1])
    kept = names[indices]
    order = _sort_order(kept)
    lookup = np.full(len(names) + 1, -1, np.int32)
    lookup[indices[order]] = np.arange(len(order), dtype=np.int32)
    return Labels(kept[order], lookup[codes])


def _sort_order(names: NDArray[Any]) -> NDArray[np.intp]:
    if names.dtype != object:
        return np.argsort(names, kind="stable")
    values = names.tolist()
    try:
        return np.array(sorted(range(len(values)), key=values.__getitem__), np.intp)
    except TypeError:
        return np.array(sorted(range(len(values)), key=lambda i: (str(values[i]), i)), np.intp)


def read_numbers(column: object, what: str, rows: int) -> Floats:
    """Read a column of numbers as float64, missing as NaN.

    ``what``: its name in errors; ``rows``: its length.
    Raises :class:`InputError` for text or complex numbers, another dimension or length.

    >>> read_numbers([1, None, 2.5], "value", 3).tolist()
    [1.0, nan, 2.5]
    """
    values = _as_array(column)
    is_text = values.dtype.kind == "O" and any(isinstance(value, str) for value in values.flat)
    if is_text or values.dtype.kind in "SUcmM":
        raise InputError(f"{what} has no numbers (type {values.dtype}); expected real numbers")
    try:
        numbers = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} has no numbers ({error}); expected real numbers") from None
    if values.ndim != 1:
        raise InputError(f"{what} has {values.ndim} dimensions; expected one")
    if numbers.size != rows:
        raise InputError(f"{what} has {numbers.size} rows and the labels have {rows}; they must be equal")
    return numbers


def _as_array(column: Any) -> NDArray[Any]:
    if isinstance(column, np.ma.MaskedArray):
        return np.ma.filled(column.astype(np.float64), np.nan)
    if hasattr(column, "to_numpy"):
        return _from_frame(column)
    if isinstance(column, np.ndarray):
        return column
    return np.asarray(list(column) if isinstance(column, Iterable) else column)


def _from_frame(column: Any) -> NDArray[Any]:
    if hasattr(column, "null_count"):  # Arrow
        numbers = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    elif column.dtype.kind in "biuf":  # pandas; nullable types spell missing as NA
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        numbers = column.to_numpy()
    return np.asarray(numbers)
