"""Rows of a panel: one selection for a store, an index or a frame."""

from dataclasses import dataclass
from typing import Literal

from esjobs.core.query import Metric
from esjobs.core.words import Level


@dataclass(frozen=True)
class Where:
    """Keep rows whose column holds an accepted value; ``negate`` keeps the others.

    Without accepted values: keep rows in which the column is not null (``negate``: in which it is).
    ``above``: keep rows whose magnitude exceeds it, to tell a number from the rounding of zero.
    """

    column: str
    accepted: tuple[str | int | None, ...] = ()
    negate: bool = False
    above: float | None = None


@dataclass(frozen=True)
class Mean:
    """The mean of a column over the rows of a group that have it; null when none has."""

    field: str
    name: str


@dataclass(frozen=True)
class View:
    """Rows of one table, in an order.

    ``table``: a result table, or empty for none. ``level``: rows of that level only, where the table has one.
    ``types``: ``main`` rows of all types together, ``every`` rows of every type. ``sort``: column, with ``-``
    in front for descending and ``|c|`` for its magnitude. ``by``, ``metrics``: what the rows are grouped by
    and what is added up over each group, in the language of :class:`esjobs.core.query.Query`; without, they
    are the rows as they are. ``runs``: rows of the ``latest`` run, or of ``every`` run, the history.
    ``over``: a column of times by which groups are split further, day by day. ``first``: of the groups only
    those are wanted that have rows that meet these conditions, most of them first. ``most``: of rows as they
    are no more than the first so many in their order; 0: all.
    """

    table: str = ""
    where: tuple[Where, ...] = ()
    level: Level | None = None
    types: Literal["main", "every"] = "main"
    sort: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    metrics: tuple[Metric | Mean, ...] = ()
    runs: Literal["latest", "every"] = "latest"
    over: str = ""
    first: tuple[Where, ...] = ()
    most: int = 0


NOTHING = View()  # The view of a panel that shows no rows


# The name of a join that filters of a dashboard do not reach, because its table has other columns
UNFILTERED = "unfiltered"


@dataclass(frozen=True)
class Join:
    """Columns that a chart takes from another view: those of the row that is equal in ``on``.

    ``name``: what the chart calls that view.
    """

    name: str
    view: View
    on: str
    columns: tuple[str, ...]
