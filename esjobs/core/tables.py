"""Result tables: columns with units and meanings, writer, display.

A table is an index (``esjobs-<name>``) in a cluster and a table in DuckDB, with the same columns. Rows are
replaced by partition and switched atomically; a table of runs has ``latest_<name>``. Columns are only added,
at the end, within a major version.
"""

from dataclasses import dataclass
from typing import Literal

from esjobs.core.errors import UsageError
from esjobs.core.fields import Field, FieldType
from esjobs.core.identity import content_id

LOAD_COLUMNS = ("load_id", "import_id")
"""Columns with the load that a row came with; the ingest step fills them."""

LOAD_TIMES = ("loaded_at", "imported_at")
"""Columns with the time of that load; the ingest step fills them."""

Packed = Literal["", "beside", "alone"]


@dataclass(frozen=True)
class Table:
    """Result table.

    ``partition``: column whose value is replaced as a whole. ``entered``: rows that people enter, never
    replaced by a run. ``time``: column that a window filters; empty if none. ``shown``: columns of a
    terminal; empty: all. ``order``: sort columns, descending with ``-``; empty: the first six. ``key``:
    identity of a row inside a run. ``before``: columns whose value in the previous run stands in
    ``NAME_before``. ``named``: column that a dashboard's filter on ``name`` means. ``packed``: partitions of
    many rows that are read as a whole; a cluster keeps them as columns, beside a document per row, or alone,
    where no dashboard reads them.
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
    named: str = "name"
    packed: Packed = ""

    def __post_init__(self) -> None:
        ordered = (item.removeprefix("-") for item in self.order)
        # a misspelt column fails at import, and not in the middle of a night
        for name in (self.partition, *ordered, *self.key, *self.before, *map(name_before, self.before)):
            self.column(name)

    def column(self, name: str) -> Field:
        """Return a column by name. Raises :class:`UsageError` that lists all columns."""
        for candidate in self.columns:
            if candidate.name == name:
                return candidate
        raise UsageError(
            f"table '{self.name}' has no column '{name}'; its columns are {', '.join(self.column_names)}"
        )

    @property
    def layout(self) -> str:
        """Digest of the columns; a change marks partitions as out of date."""
        # meanings and units may be reworded without making stored rows stale
        return content_id({item.name: item.type for item in self.columns})

    @property
    def load_column(self) -> str | None:
        """Column that names the load of a row; None if no source supplies the table."""
        return next((name for name in LOAD_COLUMNS if name in self.column_names), None)

    @property
    def given_columns(self) -> tuple[Field, ...]:
        """Columns that a source supplies: all but the load and its time."""
        return tuple(item for item in self.columns if item.name not in (*LOAD_COLUMNS, *LOAD_TIMES))

    @property
    def has_latest(self) -> bool:
        """True if it is replaced per run, so that ``latest_...`` exists."""
        return self.partition == "run"

    @property
    def shown_order(self) -> tuple[str, ...]:
        """Sort columns of a display, descending with ``-``."""
        return self.order or self.column_names[:6]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Column names in display order."""
        return tuple(column.name for column in self.columns)


def column(name: str, kind: FieldType, meaning: str, unit: str = "", values: tuple[str, ...] = ()) -> Field:
    """Return a column; ``values``: all possible values of a keyword."""
    return Field(name, kind, unit, meaning, groupable=kind in _GROUPABLE, values=values)


def name_before(name: str) -> str:
    """Return the name of a column with the value in the previous run.

    >>> name_before("k")
    'k_before'
    """
    return f"{name}_before"


def columns(names: str) -> tuple[str, ...]:
    """Split names at spaces.

    >>> columns("level name k")
    ('level', 'name', 'k')
    """
    return tuple(names.split())


# Types that queries over results may group by: their values compare equal identically in every engine
_GROUPABLE = ("keyword", "integer", "boolean", "day")
