"""Order, number and columns of the rows that ``show`` gives; Arrow sorts them, by values and not by texts."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arguments import Names, count_of_runs, split
from esjobs.core.arrow import schema_of
from esjobs.core.errors import UsageError
from esjobs.core.tables import Table
from esjobs.records.names.spelling import column_named

_NUMBERS = ("integer", "number")
_UNSORTABLE = ("bytes", "map", "list")


@dataclass(frozen=True)
class Ordering:
    """Rows and columns of a table that are wanted: ``keys`` are columns with a direction of Arrow."""

    table: Table
    keys: tuple[tuple[str, str], ...]
    top: int
    columns: tuple[str, ...]

    @classmethod
    def of(
        cls, table: Table, sort: Names | None, descending: bool | None, top: int | None, columns: Names | None
    ) -> "Ordering":
        """The keywords of ``show``; :class:`UsageError` for a column that is not there or has no order."""
        count_of_runs("top", top, "rows")
        names = [] if sort is None else split(sort)
        if descending is not None and not names:
            raise UsageError("a direction requires columns to sort by; specify sort, or omit the direction")
        keys = tuple(_key(table, name, descending) for name in names)
        chosen = tuple(column_named(table, name).name for name in split(columns or ()))
        if columns is not None and not chosen:
            raise UsageError("the list of columns is empty; omit columns to select all")
        return cls(table, keys, top or 0, tuple(dict.fromkeys(chosen)))

    def read(self, filtered: Iterable[str]) -> tuple[str, ...]:
        """The columns that have to be read, in their usual order; none: all of the table."""
        if not self.columns:
            return ()
        usual = (name.removeprefix("-") for name in self.table.shown_order)
        sorts = (name for name, _ in self.keys)
        needed = {*self.columns, *sorts, *usual, *filtered, "run", "severity"}
        return tuple(name for name in self.table.column_names if name in needed)

    def applied(self, rows: pa.Table) -> pa.Table:
        """The rows in this order, missing values last and equal ones as they were."""
        for name in (*self.columns, *(name for name, _ in self.keys)):
            if name not in rows.column_names:
                # a view of the table may leave columns out
                column = pa.nulls(rows.num_rows, schema_of([self.table.column(name)]).field(0).type)
                rows = rows.append_column(name, column)
        if self.keys:
            # Arrow's default: null last, NaN before it
            rows = rows.take(pc.sort_indices(rows, sort_keys=list(self.keys)))
        if self.top:
            rows = rows.slice(0, self.top)
        return rows.select(self.columns) if self.columns else rows


def _key(table: Table, name: str, descending: bool | None) -> tuple[str, str]:
    column = column_named(table, name)
    if column.type in _UNSORTABLE:
        raise UsageError(f"{table.name} cannot be sorted by '{name}', a column of type {column.type}")
    down = column.type in _NUMBERS if descending is None else descending
    return column.name, "descending" if down else "ascending"
