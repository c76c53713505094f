"""What a result table is: columns with units and meanings, who writes it, how it is shown; none of its own.

Each capability names its tables in a file of its own; :mod:`esjobs.schema.catalogue` lists them all.

A table is an index in Elasticsearch (``esjobs-<name>``) and a table in DuckDB, with the same columns.
Rows are replaced a partition at a time (a day of buckets, a run of results, a load) and become visible in
one atomic switch. Beside a table of runs there is ``latest_<name>`` (``esjobs-latest-<name>``) with the rows
of the latest run alone. Columns may be added at the end; none is renamed or dropped within a major version.
"""

from dataclasses import dataclass

from esjobs.core.errors import UsageError
from esjobs.core.fields import Field, FieldType
from esjobs.core.identity import content_id

LOAD_COLUMNS = ("load_id", "import_id")
"""What a table calls the load that a row came with; the ingest step fills it."""

LOAD_TIMES = ("loaded_at", "imported_at")
"""What a table calls the moment of that load; the ingest step fills it."""


@dataclass(frozen=True)
class Table:
    """A result table.

    ``partition``: the column whose value is replaced as a whole. ``entered``: holds what people enter
    (imported declarations); no run ever replaces it. ``time``: the column by which a query's window chooses
    rows, a time or a day; empty where rows belong to no moment. ``made_by``: the step that writes it.
    ``shown``: the columns that a terminal has room for, by which a person decides; none: all. ``order``: the
    columns by which rows that belong to no run are shown, the largest first behind ``-``; none: the first
    six. ``key``: of a table of runs, what tells the rows of one run apart; ``before``: the columns of which a
    row also has the value in the run before, in a column of that name with ``_before`` at its end.
    """

    name: str
    meaning: str
    partition: str
    columns: tuple[Field, ...]
    entered: bool = False
    time: str = ""
    made_by: str = ""
    shown: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    before: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ordered = (item.removeprefix("-") for item in self.order)
        for name in (self.partition, *ordered, *self.key, *self.before, *map(name_before, self.before)):
            self.column(name)

    def column(self, name: str) -> Field:
        """A column by its name, or :class:`UsageError` that lists them all."""
        for candidate in self.columns:
            if candidate.name == name:
                return candidate
        raise UsageError(f"table '{self.name}' has no column '{name}'; it has {', '.join(self.column_names)}")

    @property
    def layout(self) -> str:
        """A text that moves when a column comes, goes or changes its type.

        It is part of what marks a partition as up to date: rows that were written before a column was added
        lack it, so they are written again.
        """
        return content_id({item.name: item.type for item in self.columns})

    @property
    def load_column(self) -> str | None:
        """The column that names the load of a row; None for tables that no source gives."""
        return next((name for name in LOAD_COLUMNS if name in self.column_names), None)

    @property
    def given_columns(self) -> tuple[Field, ...]:
        """What a source gives of a row: all but its load and the moment of that."""
        return tuple(item for item in self.columns if item.name not in (*LOAD_COLUMNS, *LOAD_TIMES))

    @property
    def has_latest(self) -> bool:
        """Whether it is replaced per run, so that readers need a name, ``latest_...``, for one run of it."""
        return self.partition == "run"

    @property
    def shown_order(self) -> tuple[str, ...]:
        """The columns by which its rows are shown, the largest first behind ``-``."""
        return self.order or self.column_names[:6]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in the order in which they are shown."""
        return tuple(column.name for column in self.columns)


def column(name: str, kind: FieldType, meaning: str, unit: str = "", values: tuple[str, ...] = ()) -> Field:
    """A column; ``values``: all that a keyword can be, where these are known."""
    return Field(name, kind, unit, meaning, groupable=kind in _GROUPABLE, values=values)


def name_before(name: str) -> str:
    """The column that has what another column had in the run before.

    >>> name_before("k")
    'k_before'
    """
    return f"{name}_before"


def columns(names: str) -> tuple[str, ...]:
    """Names of columns, written with spaces between.

    >>> columns("level name k")
    ('level', 'name', 'k')
    """
    return tuple(names.split())


_GROUPABLE = ("keyword", "integer", "boolean", "day")
"""What queries over results may group by: values that are equal or not, in every engine alike."""
