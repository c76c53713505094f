"""How the columns of a format become canonical fields: a table per format, read by the common machinery."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import InputError
from esjobs.core.fields import DERIVED_FIELDS, JOB_FIELDS, FieldType

Codes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Column:
    """A target and the columns it is read from; the first that has a value wins.

    ``target``: a canonical field, or a name of the layout's own for a column that only helps to derive one
    (then ``lenient``: what cannot be read is missing). ``names`` are lower case; columns are matched without
    regard to case. ``scale`` multiplies. ``whole_number``: an identifier that must be one, ``1.0`` is
    read as ``1``. ``unset``: a value by which the producer says "not measured". ``members``: of a map, what
    the names of columns begin with that hold one member each (``counter.``); the rest, as it is written, is
    the member's name.
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


@dataclass
class Values:
    """A column after conversion: typed values, and per row a code above 0 where the cell was refused.

    ``problems`` is None when there are none. ``column``: what the file calls it.
    """

    values: pa.Array
    problems: Codes | None = None
    column: str = ""


Derive = Callable[[dict[str, Values]], None]


def _nothing(values: dict[str, Values]) -> None:
    """Derive no field."""


def time_between(values: dict[str, Values], target: str, begin: str, end: str) -> None:
    """Where a duration is missing, take the time between two moments; a negative one stays missing."""
    start, stop, known = values.get(begin), values.get(end), values.get(target)
    if start is None or stop is None or (known is not None and not known.values.null_count):
        return
    seconds = pc.divide(
        pc.subtract(stop.values.view(pa.int64()), start.values.view(pa.int64())).cast(pa.float64()), 1e6
    )
    seconds = pc.if_else(pc.greater_equal(seconds, 0.0), seconds, pa.scalar(None, pa.float64()))
    if known is None:
        values[target] = Values(seconds)
    else:
        known.values = pc.if_else(known.values.is_null(), seconds, known.values)


@dataclass(frozen=True)
class Layout:
    """What is particular about a format.

    ``nulls``: spellings of a missing cell beside the empty one, ``text_nulls`` more of them in text columns.
    ``trim``: blanks around text are not data. ``derive`` fills fields from other fields of the record.
    """

    format: str
    columns: tuple[Column, ...]
    nulls: tuple[str, ...] = ()
    text_nulls: tuple[str, ...] = ()
    trim: bool = False
    derive: Derive = _nothing
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
            notes.append(f"{file}: ignored columns that esjobs computes itself: {', '.join(self.computed)}")
        if self.unknown:
            shown = ", ".join(name or "(no name)" for name in self.unknown[:40])
            more = f" and {len(self.unknown) - 40} more" if len(self.unknown) > 40 else ""
            notes.append(
                f"{file}: ignored {len(self.unknown)} columns that esjobs does not use: {shown}{more}"
            )
        return tuple(notes)


_COMPUTED = {known.name for known in DERIVED_FIELDS}


def bind(layout: Layout, header: Sequence[str], file: str) -> Binding:
    """Match a header with a layout; :class:`InputError` when a column that is read appears twice."""
    by_name: dict[str, list[str]] = {}
    for name in header:
        by_name.setdefault(name.strip().lower(), []).append(name)
    sources: dict[str, tuple[str, ...]] = {}
    types: dict[str, FieldType] = {}
    read: set[str] = set()
    for column in layout.columns:
        present = []
        for alias in column.names:
            names = by_name.get(alias, [])
            if len(names) > 1:
                raise InputError(
                    f"{file}: column {alias} appears {len(names)} times ({', '.join(names)}); keep one"
                )
            read.add(alias)
            present += names
            types.update(dict.fromkeys(names, column.type))
        if column.members:
            members = _members(header, column.members, file)
            read.update(name.strip().lower() for name in members)
            present += members
            types.update(dict.fromkeys(members, "number"))
        if present:
            sources[column.target] = tuple(present)
    rest = [(lower, name) for lower, names in by_name.items() if lower not in read for name in names]
    computed = tuple(name for lower, name in rest if lower in _COMPUTED)
    unknown = tuple(name for lower, name in rest if lower not in _COMPUTED)
    return Binding(layout, sources, unknown, computed, types)


def _members(header: Sequence[str], prefix: str, file: str) -> list[str]:
    """The columns that hold members of a map; :class:`InputError` when two name the same one."""
    columns: dict[str, str] = {}
    for name in header:
        if not name.strip().lower().startswith(prefix):
            continue
        member = member_of(name, prefix)
        if not member:
            raise InputError(f"{file}: column {name} does not say which one; write {prefix}NAME")
        if member in columns:
            raise InputError(f"{file}: columns {columns[member]} and {name} name the same; keep one")
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
    for known in JOB_FIELDS:
        if not known.required or known.name in binding.sources or known.name in filled:
            continue
        column = next(column for column in binding.layout.columns if column.target == known.name)
        names = " or ".join(column.names)
        seen = ", ".join(header[:12]) + (", ..." if len(header) > 12 else "")
        way_out = "" if known.name == "job_id" else f", or fill it with --set {known.name}=VALUE"
        raise InputError(
            f"{file}: no column for {known.name}: format {binding.layout.format} reads it from {names} "
            f"(separated by commas, any case){way_out}; the file has: {seen[:300]}"
        )
