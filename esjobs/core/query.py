"""Closed query language of stores: filters, metrics, drop rules, queries.

Keys and fields are catalogue names, values are bound parameters. No joins, no expressions. A store answers
exactly or refuses.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain
from typing import Literal

from esjobs.core import fields
from esjobs.core.errors import UsageError
from esjobs.core.fields import Field
from esjobs.core.keys import MadeKey
from esjobs.core.tables import Table
from esjobs.core.window import Window

Value = str | int | float


@dataclass(frozen=True)
class In:
    """Field equals one of the values; missing never does."""

    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class NotIn:
    """Field is present and equals none of the values. Texts only; for numbers, days and times use ranges."""

    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Missing:
    """Field is null."""

    field: str


@dataclass(frozen=True)
class Present:
    """Field is not null."""

    field: str


@dataclass(frozen=True)
class Range:
    """Number within the given bounds; missing and NaN never are."""

    field: str
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None


@dataclass(frozen=True)
class Days:
    """Day between two days, both included; missing never is."""

    field: str
    first: date
    last: date

    @classmethod
    def of_window(cls, window: Window, field: str = "day") -> "Days":
        """Return the days that a window touches."""
        return cls(field, window.first_day, window.last_day)


@dataclass(frozen=True)
class Times:
    """Time in [start, end); None: unbounded. Missing never is."""

    field: str
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class Like:
    """Field matches one of the patterns; ``*`` is the wildcard, case is ignored."""

    field: str
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class NotLike:
    """Field matches none of the patterns, or is missing."""

    field: str
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class Either:
    """At least one of the filters holds (same field, several values or null)."""

    filters: tuple["In | NotIn | Missing | Present | Range | Days | Times | Like", ...]


Filter = In | NotIn | Missing | Present | Range | Days | Times | Like | NotLike | Either


def exactly(field: str, value: str | None) -> In | Missing:
    """Return the filter for one value of a field; None: missing."""
    return Missing(field) if value is None else In(field, (value,))


@dataclass(frozen=True)
class DropRule:
    """Rule that keeps a job if ``keep`` holds, else drops it under ``reason``.

    ``missing``: treatment of null; with ``pass`` the job is kept and noted under ``unknown``.
    """

    reason: str
    keep: In | Present | Range | NotLike
    missing: Literal["drop", "pass"] = "drop"
    unknown: str | None = None


@dataclass(frozen=True)
class Count:
    """Number of jobs."""

    name: str = "n_jobs"


@dataclass(frozen=True)
class Sum:
    """Sum of a field over the jobs that have it; null if none has."""

    field: str
    name: str


@dataclass(frozen=True)
class SumProduct:
    """Sum of the product of two fields over the jobs that have both."""

    left: str
    right: str
    name: str


@dataclass(frozen=True)
class SumWhere:
    """Sum of a field over the jobs that have every field in ``having`` (terms of a ratio)."""

    field: str
    having: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class Minimum:
    """Smallest value of a field."""

    field: str
    name: str


@dataclass(frozen=True)
class Maximum:
    """Largest value of a field."""

    field: str
    name: str


@dataclass(frozen=True)
class Moment:
    """Sum of a product of fields, or the number of jobs without factors.

    Counts jobs that have all ``factors`` and ``having`` and pass the filters.
    """

    factors: tuple[str, ...]
    name: str
    having: tuple[str, ...] = ()
    where: tuple[Filter, ...] = ()


@dataclass(frozen=True)
class Quantile:
    """Exact quantile with linear interpolation, as NumPy's default.

    Missing values and NaN are ignored; null if no job has a number.
    """

    field: str
    fraction: float
    name: str


Metric = Count | Sum | SumProduct | SumWhere | Minimum | Maximum | Moment | Quantile


def is_count(metric: Metric) -> bool:
    """True if a metric counts jobs: an integer, 0 without jobs."""
    return isinstance(metric, Count) or (isinstance(metric, Moment) and not metric.factors)


def adds_up(metric: Metric) -> bool:
    """True if the metric of a union of groups is the sum of theirs."""
    return not isinstance(metric, Minimum | Maximum | Quantile)


@dataclass(frozen=True)
class Query:
    """Grouped sums over the jobs of a window, or over the visible rows of a result table.

    ``keys``: groupable fields or names of ``made``; those resolved above the store are refused. ``drops``: in
    order, each job counts under the first rule it fails. ``window`` None: everything stored. ``over``: result
    table, None for jobs. ``books`` False: a store may omit the books.
    """

    keys: tuple[str, ...]
    metrics: tuple[Metric, ...]
    window: Window | None = None
    where: tuple[Filter, ...] = ()
    drops: tuple[DropRule, ...] = ()
    over: Table | None = None
    made: tuple[MadeKey, ...] = ()
    books: bool = True

    def __post_init__(self) -> None:
        # made from fields of jobs only: result tables have their days and bins as columns
        for made in self.made:
            if made.name not in self.keys or self.over is not None:
                raise UsageError(
                    f"'{made.name}' is derived from '{made.field}' and is not a key of jobs here"
                )
        for key in self.keys:
            if self.made_key(key) is None:
                self._require_groupable(key)
        self._require_filters(filter_fields((*self.where, *(rule.keep for rule in self.drops))))
        for name in chain.from_iterable(map(metric_fields, self.metrics)):
            self.field(name)
        if self.over is not None:
            self._check_rows(self.over)

    def field(self, name: str) -> Field:
        """Return the meaning of a name here. Raises :class:`UsageError` if unknown."""
        return fields.field(name) if self.over is None else self.over.column(name)

    def made_key(self, name: str) -> MadeKey | None:
        """Return the derived key of a name; None for a field."""
        return next((made for made in self.made if made.name == name), None)

    def key_field(self, name: str) -> Field:
        """Return the field that describes a key in the answer."""
        made = self.made_key(name)
        return self.field(name) if made is None else made.meaning

    def _require_filters(self, names: Iterable[str]) -> None:
        for name in names:
            derived = self.field(name).derived
            if isinstance(derived, fields.Resolved):
                raise UsageError(f"a store cannot filter by '{name}'; filter by {derived.field}")

    def _require_groupable(self, key: str) -> None:
        key_field = self.field(key)
        if not key_field.groupable or isinstance(key_field.derived, fields.Resolved):
            listed = "esjobs fields" if self.over is None else "docs/tables.md"
            raise UsageError(f"a store cannot group by '{key}'; list fields: {listed}")

    def _check_rows(self, table: Table) -> None:
        if self.drops:
            raise UsageError(f"rows of '{table.name}' have no drop rules; use a filter")
        if self.window is not None and not table.time:
            raise UsageError(f"rows of '{table.name}' have no time; omit the window")
        # a day cannot be cut: rows of half a day would be all of its rows, or none
        if self.window is not None and table.column(table.time).type == "day":
            self.window.require_whole_days(f"a query over '{table.name}'")


@dataclass(frozen=True)
class Select:
    """Stream of jobs: fields (empty: all stored ones), window and filters.

    ``drops``: only jobs that pass these rules. ``order``: field to sort by, descending with ``-``; missing
    and NaN last, ties by source and job_id. ``limit``: maximum number of jobs; without ``order`` any jobs.
    """

    fields: tuple[str, ...] = ()
    window: Window | None = None
    where: tuple[Filter, ...] = ()
    drops: tuple[DropRule, ...] = ()
    order: str = ""
    limit: int | None = None

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """Sort field as a tuple; empty without one."""
        return (self.order.removeprefix("-"),) if self.order else ()


def metric_fields(metric: Metric) -> tuple[str, ...]:
    """Return the fields that a metric reads."""
    match metric:
        case Count():
            return ()
        case SumProduct(left, right):
            return (left, right)
        case SumWhere(field, having):
            return (field, *having)
        case Moment():
            return (*metric.factors, *metric.having, *filter_fields(metric.where))
        case Sum(field) | Minimum(field) | Maximum(field) | Quantile(field):
            return (field,)


def filter_fields(filters: tuple[Filter, ...]) -> Iterator[str]:
    """Yield the fields that filters read."""
    for item in filters:
        if isinstance(item, Either):
            yield from filter_fields(item.filters)
        else:
            yield item.field
