"""Dimensions of a question: fields of the catalogue, parts of time, bins of numbers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from esjobs.core import fields
from esjobs.core.errors import UsageError
from esjobs.core.keys import Bins, MadeKey, TimePart
from esjobs.records.jobs.condition_filters import number_in_unit, units_of
from esjobs.records.jobs.questions.bin_names import name as bin_name
from esjobs.records.jobs.questions.bin_names import stored_name

TIMES = {
    "week": "ISO week of the end time in UTC, as 2025-W26",
    "month": "month of the end time in UTC, as 2025-06",
    "hour": "hour of the day of the end time in UTC, 0 to 23",
}
"""Parts of time that jobs can be grouped by, besides the field ``day``."""

MOST_BINS = 200
_MOST_IN_ORDER = ("day", "time")


@dataclass(frozen=True)
class RequestedBins:
    """``FIELD=n`` bins of equal, round width from the smallest value to the largest, or ``FIELD=edges``."""

    field: str
    number: int
    edges: tuple[float, ...]


@dataclass(frozen=True)
class Dimension:
    """A dimension; ``name``: in answers, ``key``: in the store, ``made``: its meaning there."""

    name: str
    key: str
    made: MadeKey | None = None

    @property
    def in_order(self) -> bool:
        """True if groups stand in the order of their values: times and numbers."""
        return self.made is not None or fields.field(self.key).type in _MOST_IN_ORDER

    @property
    def type(self) -> fields.FieldType:
        """Type of its values in answers."""
        if self.made is None:
            return fields.field(self.key).type
        return "integer" if self.name == "hour" else "keyword"

    @property
    def calendar(self) -> bool:
        """True if its values belong to moments, so that another window has others."""
        if isinstance(self.made, TimePart):
            return self.made.part != "hour"
        return self.made is None and fields.field(self.key).type in _MOST_IN_ORDER

    def shown(self, values: Sequence[Any]) -> list[Any]:
        """Values as answers have them."""
        match self.made:
            case TimePart(part="week"):
                return [None if day is None else f"{day:%G-W%V}" for day in values]
            case TimePart(part="month"):
                return [None if day is None else f"{day:%Y-%m}" for day in values]
            case Bins(edges=edges):
                return [None if number is None else stored_name(edges, number) for number in values]
        return list(values)

    def read(self, texts: Sequence[Any]) -> list[Any]:
        """Values of an answer as people read them: bins in a unit of their size."""
        if not isinstance(self.made, Bins):
            return list(texts)
        of, edges = fields.field(self.made.field), self.made.edges
        names = {stored_name(edges, number): bin_name(of, edges, number) for number in range(len(edges) + 1)}
        return [names.get(text, text) for text in texts]


def dimensions(by: Iterable[str], bins: Iterable[Bins] = ()) -> list[Dimension]:
    """Return the dimensions, each once; :class:`UsageError` for what jobs cannot be grouped by."""
    binned = {made.field: made for made in bins}
    requested: dict[str, Dimension] = {}
    for name in by:
        one = _dimension(name, binned)
        # two names of a field are one dimension
        requested.setdefault(one.key, one)
    for name, made in binned.items():
        requested.setdefault(made.name, Dimension(name, made.name, made))
    return list(requested.values())


def _dimension(name: str, binned: dict[str, Bins]) -> Dimension:
    if name in TIMES:
        part = TimePart(name, name)  # type: ignore[arg-type]  # the names are those of the parts
        return Dimension(name, name, part)
    field = fields.field(name)
    if field.name in binned:
        return Dimension(name, binned[field.name].name, binned[field.name])
    if not field.groupable:
        number = field.type in ("integer", "number")
        how = f"add its bins, such as --bins {name}=10" if number else "list fields: esjobs fields"
        raise UsageError(f"jobs cannot be grouped by '{name}'; {how}")
    return Dimension(name, field.name)


def parse_bins(texts: Iterable[str]) -> list[RequestedBins]:
    """Read ``FIELD=10`` and ``FIELD=0,2e9,4GB``; edges in units as conditions take them.

    >>> parse_bins(["cores=1,8"])
    [RequestedBins(field='cores', number=0, edges=(1.0, 8.0))]
    """
    requested: dict[str, RequestedBins] = {}
    for text in texts:
        name, equals, written = text.partition("=")
        if not equals or not written.strip():
            raise UsageError(
                f"'{text}' is not a specification of bins; expected FIELD=NUMBER or FIELD=EDGE,EDGE,..."
            )
        field = fields.field(name.strip())
        if field.type not in ("integer", "number"):
            raise UsageError(
                f"'{field.name}' is not numeric and cannot be binned; group by it without --bins"
            )
        if field.name in requested:
            raise UsageError(f"bins of '{field.name}' are specified twice; put all edges into one --bins")
        requested[field.name] = _bins(field, written)
    return list(requested.values())


def _edges(of: fields.Field, written: str) -> tuple[float, ...]:
    read = [number_in_unit(of, part) for part in written.removesuffix(",").split(",")]
    edges = tuple(float(edge) for edge in read if edge is not None)
    if len(edges) < len(read):
        units = ", ".join(units_of(of))
        raise UsageError(
            f"'{written}' are not edges of bins of {of.name}; expected numbers, as in 0,2e9,4e9"
            + (f", or with a unit: {units}" if units else "")
        )
    return edges


def _bins(of: fields.Field, written: str) -> RequestedBins:
    field = of.name
    # a number without a unit is one of bins, with a unit it may be an edge
    if "," not in written and number_in_unit(of, written) is not None and not written.strip()[-1].isdigit():
        raise UsageError(
            f"'{written}' is a single edge of bins of {field}; end it with a comma, or add edges"
        )
    edges = _edges(of, written)
    if "," in written:
        return RequestedBins(field, 0, _checked(field, edges, written))
    if not edges[0].is_integer() or not 1 <= edges[0] <= MOST_BINS:
        raise UsageError(
            f"{field} cannot have {written} bins; use a number from 1 to {MOST_BINS}, or edges: {written},"
        )
    return RequestedBins(field, int(edges[0]), ())


def _checked(field: str, edges: tuple[float, ...], written: str) -> tuple[float, ...]:
    if not all(map(math.isfinite, edges)) or any(low >= high for low, high in pairwise(edges)):
        raise UsageError(f"the edges of bins of {field} must be finite and ascending; got {written}")
    if len(edges) > MOST_BINS:
        raise UsageError(f"{len(edges)} edges are too many for {field}; use at most {MOST_BINS}")
    return edges
