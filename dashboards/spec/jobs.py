"""The jobs themselves as a table that views may be about, and the index in which they are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dashboards.spec.panels import Panel
from dashboards.spec.views import Mean, View
from esjobs.core import fields
from esjobs.core.query import Metric, Moment, Sum, SumProduct, metric_fields
from esjobs.core.tables import Table

# No result table: a store keeps it in its own way, and it may be an index of others
JOBS = Table(
    "jobs",
    "present jobs, one row each; recorded fields only, nothing computed",
    "source",
    fields.JOB_FIELDS,
    time="end_time",
    named="queue",
)


@dataclass(frozen=True)
class IndexFields:
    """Fields of an index for a field of the catalogue: the first of ``names`` in a document counts.

    ``factor``: what makes base units of a number. ``unset``: the number that means not measured. ``values``:
    texts of the index -> those of the catalogue, where they differ.
    """

    names: tuple[str, ...]
    factor: float = 1.0
    unset: float | None = None
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JobsIndex:
    """An index of jobs: its name or pattern, its time field, what stands for which field of the catalogue.

    ``own``: the one that esjobs keeps, whose name begins with the prefix.
    """

    title: str
    time: str
    columns: Mapping[str, IndexFields]
    own: bool = False

    def name(self, prefix: str) -> str:
        """Return the name of the index or pattern."""
        return f"{prefix}-{self.title}" if self.own else self.title


# The index that esjobs keeps itself; its name follows the prefix
OWN = JobsIndex(
    "jobs",
    "end_time",
    {item.name: IndexFields((item.name,)) for item in fields.JOB_FIELDS},
    own=True,
)


# Definition of idle core-hours, for every panel with them
WASTED_IS = (
    "Wall-clock time × cores minus CPU time, over jobs that record all three. A job with more CPU time than "
    "core time counts as negative."
)


def lacking(panel: Panel, index: JobsIndex) -> list[str]:
    """The fields of the catalogue that a panel on jobs needs and an index cannot answer by.

    One that the index does not have, and a number for which several fields stand, of which a document has
    one: nothing adds up the first of several. Of a panel on coverage that is what it shows.
    """
    if panel.kind == "coverage":
        return []
    keys = {*panel.view.by, *multipliers(panel.view)}
    return [
        name
        for name in dict.fromkeys(_columns_read(panel.view))
        if not (names := index.columns.get(name, IndexFields(())).names)
        # keys are asked one after the other, in their order; sums cannot be
        or (len(names) > 1 and name not in keys and fields.field(name).type in ("integer", "number"))
    ]


def multipliers(view: View) -> tuple[str, ...]:
    """The whole numbers by which sums are multiplied: a group of each has sums that need no script.

    Of squares an index knows the sum.
    """
    products = [factors_of(metric) for metric in view.metrics if not isinstance(metric, Mean)]
    # a sum of cores x seconds is the sum of seconds in the group of each number of cores, times it
    integers = [
        name
        for factors in products
        if len(set(factors)) > 1
        for name in factors
        if fields.field(name).type == "integer"
    ]
    return tuple(name for name in dict.fromkeys(integers) if name not in view.by)


def factors_of(metric: Metric) -> tuple[str, ...]:
    """The fields whose product is added up; none where jobs are counted."""
    match metric:
        case Sum(name):
            return (name,)
        case SumProduct(left, right):
            return (left, right)
        case Moment(factors):
            return factors
        case _:
            return ()


def _columns_read(view: View) -> Iterator[str]:
    yield from view.by
    yield from (condition.column for condition in view.where)
    for metric in view.metrics:
        if not isinstance(metric, Mean):
            yield from metric_fields(metric)
