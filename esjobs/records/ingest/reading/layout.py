"""Columns of a format as canonical fields: one table per format, read by common code."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import InputError
from esjobs.core.fields import DERIVED_FIELDS, JOB_FIELDS, FieldType
from esjobs.core.fields import field as catalogue_field

Codes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Column:
    """A target and the columns it is read from (lower case, any case matches); the first with a value wins.

    ``target``: a canonical field, or a helper (then ``lenient``: unreadable is missing). ``whole_number``: an
    id, ``1.0`` is read as ``1``. ``unset``: the producer's value for "not measured". ``members``: of a map,
    the prefix of columns that hold one member each (``counter.``).
    """

    target: str
    names: tuple[str, ...]
    type: FieldType
    scale: float = 1.0
    bounded: bool = False
    lower: bool = False
    whole_number: bool = False
    unset: float | None = None
    lenient: bool = False
    members: str = ""


def column_of(target: str, *names: str, **options: Any) -> Column:
    """Return the column of a canonical field, typed and bounded as the catalogue says."""
    spec = catalogue_field(target)
    return Column(target, names, spec.type, bounded=spec.bounded, **options)


@dataclass
class Values:
    """A converted column: typed values, and per row a code above 0 where the cell was rejected.

    ``problems``: None if there are none. ``column``: its name in the file.
    """

    values: pa.Array
    problems: Codes | None = None
    column: str = ""


Derive = Callable[[dict[str, Values]], None]


def time_between(values: dict[str, Values], target: str, begin: str, end: str) -> None:
    """Fill missing durations with the time between two moments; a negative one stays missing."""
    start, stop, spec = values.get(begin), values.get(end), values.get(target)
    if start is None or stop is None or (spec is not None and not spec.values.null_count):
        return
    seconds = pc.divide(
        pc.subtract(stop.values.view(pa.int64()), start.values.view(pa.int64())).cast(pa.float64()), 1e6
    )
    # clocks of two machines: an end before the start is no duration
    seconds = pc.if_else(pc.greater_equal(seconds, 0.0), seconds, pa.scalar(None, pa.float64()))
    if spec is None:
        values[target] = Values(seconds)
    else:
        spec.values = pc.if_else(spec.values.is_null(), seconds, spec.values)


@dataclass(frozen=True)
class Layout:
    """The specifics of a format.

    ``nulls``: spellings of a missing cell, ``text_nulls`` more of them in text columns. ``trim``: blanks
    around text are not data. ``derive`` fills fields from other fields of the record.
    """

    format: str
    columns: tuple[Column, ...]
    nulls: tuple[str, ...] = ()
    text_nulls: tuple[str, ...] = ()
    trim: bool = False
    derive: Derive = lambda _values: None
    hit_id: str | None = None


@dataclass(frozen=True)
class Binding:
    """The columns of one file matched to a layout. ``sources[target]``: names in the file, best first."""

    layout: Layout
    sources: dict[str, tuple[str, ...]]
    unknown: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    types: dict[str, FieldType] = field(default_factory=dict)

    @property
    def used(self) -> tuple[str, ...]:
        """Every column of the file that is read."""
        return tuple(name for names in self.sources.values() for name in names)

    def notes(self, file: str) -> tuple[str, ...]:
        """Say which columns are not read."""
        notes = []
        if self.computed:
            notes.append(f"{file}: ignored columns that esjobs computes: {', '.join(self.computed)}")
        if self.unknown:
            shown = ", ".join(name or "(no name)" for name in self.unknown[:40])
            more = f" and {len(self.unknown) - 40} more" if len(self.unknown) > 40 else ""
            notes.append(
                f"{file}: ignored {len(self.unknown)} columns that esjobs does not use: {shown}{more}"
            )
        return tuple(notes)


_COMPUTED = {spec.name for spec in DERIVED_FIELDS}


def bind(layout: Layout, header: Sequence[str], file: str) -> Binding:
    """Match a header with a layout; :class:`InputError` when a column that is read appears twice."""
    # names of columns are compared without case and blanks, but a table is read by its own spelling
    by_name: dict[str, list[str]] = {}
    for name in header:
        by_name.setdefault(name.strip().lower(), []).append(name)
    sources: dict[str, tuple[str, ...]] = {}
    types: dict[str, FieldType] = {}
    for column in layout.columns:
        present = [name for alias in column.names for name in _at_most_one(by_name, alias, file)]
        types.update(dict.fromkeys(present, column.type))
        if column.members:
            members = _members(header, column.members, file)
            types.update(dict.fromkeys(members, "number"))
            present += members
        if present:
            sources[column.target] = tuple(present)
    # columns that esjobs computes itself are noted apart: their values may differ from ours
    rest: dict[bool, list[str]] = {True: [], False: []}
    for lower, names in by_name.items():
        rest[lower in _COMPUTED] += (name for name in names if name not in types)
    return Binding(layout, sources, tuple(rest[False]), tuple(rest[True]), types)


def _at_most_one(by_name: Mapping[str, list[str]], alias: str, file: str) -> list[str]:
    names = by_name.get(alias, [])
    if len(names) > 1:
        raise InputError(f"{file}: column {alias} appears {len(names)} times ({', '.join(names)}); keep one")
    return names


def _members(header: Sequence[str], prefix: str, file: str) -> list[str]:
    columns: dict[str, str] = {}
    for name in header:
        if not name.strip().lower().startswith(prefix):
            continue
        member = member_of(name, prefix)
        if not member:
            raise InputError(f"{file}: column {name} has no name after the prefix; write {prefix}NAME")
        if member in columns:
            raise InputError(f"{file}: columns {columns[member]} and {name} have the same meaning; keep one")
        columns[member] = name
    return list(columns.values())


def member_of(name: str, prefix: str) -> str:
    """The name of the member that a column holds.

    >>> member_of("Counter.INST_RETIRED.ANY", "counter.")
    'INST_RETIRED.ANY'
    """
    return name.strip()[len(prefix) :].strip()


def require(binding: Binding, filled: Sequence[str], file: str, header: Sequence[str]) -> None:
    """Refuse a file whose header lacks a required field that nothing fills, before a row is read."""
    for spec in JOB_FIELDS:
        if not spec.required or spec.name in binding.sources or spec.name in filled:
            continue
        column = next(column for column in binding.layout.columns if column.target == spec.name)
        names = " or ".join(column.names)
        seen = ", ".join(header[:12]) + (", ..." if len(header) > 12 else "")
        way_out = "" if spec.name == "job_id" else f", or fill it with --set {spec.name}=VALUE"
        raise InputError(
            f"{file}: no column for {spec.name}. Format {binding.layout.format} reads it from {names} "
            f"(separated by commas, any case){way_out}; the file has: {seen[:300]}"
        )
