"""The closed language that stores understand: filters, metrics, drop rules, queries.

Keys and fields are names from the catalogue, values are bound parameters. There are no joins and no
expressions; ratios are made above the store. What a store cannot answer exactly it must refuse.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
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
    """The field equals one of the values; a missing value never does."""

    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class NotIn:
    """The text is there and equals none of the values: a missing one is not different, it is missing.

    Of numbers, days and times the same is said by what lies below and above.
    """

    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Missing:
    """The field is null."""

    field: str


@dataclass(frozen=True)
class Present:
    """The field is not null."""

    field: str


@dataclass(frozen=True)
class Range:
    """The number lies between the bounds that are given; a missing value and NaN do not."""

    field: str
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None


@dataclass(frozen=True)
class Days:
    """The day lies between two days, both included; a missing value does not."""

    field: str
    first: date
    last: date

    @classmethod
    def of_window(cls, window: Window, field: str = "day") -> "Days":
        """The days that a window touches; costs the same for a day and for ten thousand years."""
        return cls(field, window.first_day, window.last_day)


@dataclass(frozen=True)
class Times:
    """The time lies in [start, end); None: no such end. A missing value does not."""

    field: str
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class Like:
    """The field matches one of the patterns; ``*`` stands for any text, case does not matter."""

    field: str
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class NotLike:
    """The field matches none of the patterns; ``*`` stands for any text, case does not matter.

    A missing value matches no pattern, so it passes.
    """

    field: str
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class Either:
    """At least one of the filters holds (same field, several values or null)."""

    filters: tuple["In | NotIn | Missing | Present | Range | Days | Times | Like", ...]


Filter = In | NotIn | Missing | Present | Range | Days | Times | Like | NotLike | Either


@dataclass(frozen=True)
class DropRule:
    """A job is kept when ``keep`` holds; else it is dropped under ``reason``.

    ``missing``: what happens to a job whose field is null. With ``pass`` it is kept, and counted as
    a note under ``unknown``.
    """

    reason: str
    keep: In | Present | Range | NotLike
    missing: Literal["drop", "pass"] = "drop"
    unknown: str | None = None


@dataclass(frozen=True)
class Count:
    """The number of jobs."""

    name: str = "n_jobs"


@dataclass(frozen=True)
class Sum:
    """The sum of a field over the jobs that have it; null when none has."""

    field: str
    name: str


@dataclass(frozen=True)
class SumProduct:
    """The sum of the product of two fields over the jobs that have both; squares when they are equal."""

    left: str
    right: str
    name: str


@dataclass(frozen=True)
class SumWhere:
    """The sum of a field over those jobs that have every field named in ``having`` (a ratio's terms)."""

    field: str
    having: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class Minimum:
    """The smallest value of a field."""

    field: str
    name: str


@dataclass(frozen=True)
class Maximum:
    """The largest value of a field."""

    field: str
    name: str


@dataclass(frozen=True)
class Moment:
    """The sum of a product of fields over some jobs; without fields the number of these jobs.

    Jobs count that have every one of the ``factors`` and every field named in ``having``, and for which the
    filters hold.
    """

    factors: tuple[str, ...]
    name: str
    having: tuple[str, ...] = ()
    where: tuple[Filter, ...] = ()


@dataclass(frozen=True)
class Quantile:
    """The value that a fraction of the jobs which have a number stay below; exact, as NumPy's default.

    Between two jobs the value is interpolated linearly. Missing values and NaN are left out; null where no
    job has a number.
    """

    field: str
    fraction: float
    name: str


Metric = Count | Sum | SumProduct | SumWhere | Minimum | Maximum | Moment | Quantile


def is_count(metric: Metric) -> bool:
    """Whether a metric counts jobs: a whole number, 0 where there is none."""
    return isinstance(metric, Count) or (isinstance(metric, Moment) and not metric.factors)


def adds_up(metric: Metric) -> bool:
    """Whether the metric of two groups together is the sum of theirs."""
    return not isinstance(metric, Minimum | Maximum | Quantile)


@dataclass(frozen=True)
class Query:
    """Group the jobs of a window, or the visible rows of a result table, by keys and sum over each group.

    ``keys``: groupable fields; those that are resolved above the store (``cpu_model``, ``site``) are not
    among them for jobs. ``drops``: ordered; each job counts under the first rule it fails; of jobs only.
    ``window`` None: all that is stored. ``over``: the result table; None: the jobs. A window chooses its rows
    by the table's ``time``; over a column of days it is made of whole days.

    ``made``: what those among the keys mean that are no fields; of jobs only. ``books`` False: whoever asks
    looks at the table alone, and a store may leave the books empty where they would cost a second look at the
    jobs.
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
        for made in self.made:
            if made.name not in self.keys or self.over is not None:
                raise UsageError(f"'{made.name}' is made of '{made.field}' and no key of jobs here")
        for key in self.keys:
            if self.made_key(key) is not None:
                continue
            key_field = self.field(key)
            if not key_field.groupable or isinstance(key_field.derived, fields.Resolved):
                listed = "esjobs fields" if self.over is None else "docs/tables.md"
                raise UsageError(f"a store cannot group by '{key}'; see: {listed}")
        for name in filter_fields((*self.where, *(rule.keep for rule in self.drops))):
            derived = self.field(name).derived
            if isinstance(derived, fields.Resolved):
                raise UsageError(f"a store cannot filter by '{name}'; filter by {derived.field}")
        for metric in self.metrics:
            for name in metric_fields(metric):
                self.field(name)
        if self.over is not None:
            self._check_rows(self.over)

    def field(self, name: str) -> Field:
        """What a name means here: a field of jobs or a column of the table; else :class:`UsageError`."""
        return fields.field(name) if self.over is None else self.over.column(name)

    def made_key(self, name: str) -> MadeKey | None:
        """The key of a name that is made for this question; None for a field."""
        return next((made for made in self.made if made.name == name), None)

    def key_field(self, name: str) -> Field:
        """What an answer has under a key."""
        made = self.made_key(name)
        return self.field(name) if made is None else made.meaning

    def _check_rows(self, table: Table) -> None:
        if self.drops:
            raise UsageError(f"rows of '{table.name}' are dropped by no rule; say it as a filter")
        if self.window is not None and not table.time:
            raise UsageError(f"rows of '{table.name}' belong to no moment; leave the window out")
        if self.window is not None and table.column(table.time).type == "day":
            self.window.require_whole_days(f"a query over '{table.name}'")


@dataclass(frozen=True)
class Select:
    """Stream jobs: which fields (empty: all stored ones), of which window, under which filters.

    ``drops``: only the jobs that pass all these rules, the same as a :class:`Query` with them would bin.
    ``order``: a field to sort by, the largest first behind ``-``; jobs without a value, or with NaN, come
    last either way, equal ones by source and job_id. ``limit``: so many jobs at most. Without an order jobs
    come as they are, and a limit takes any.
    """

    fields: tuple[str, ...] = ()
    window: Window | None = None
    where: tuple[Filter, ...] = ()
    drops: tuple[DropRule, ...] = ()
    order: str = ""
    limit: int | None = None

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """The field to sort by, if there is one."""
        return (self.order.removeprefix("-"),) if self.order else ()


def metric_fields(metric: Metric) -> tuple[str, ...]:
    """The fields that a metric reads."""
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
    """The fields that filters read."""
    for item in filters:
        if isinstance(item, Either):
            yield from filter_fields(item.filters)
        else:
            yield item.field
