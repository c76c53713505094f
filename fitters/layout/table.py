"""Read-only result tables: columns of equal length, with a name for every row."""

from dataclasses import fields
from typing import Any

import numpy as np

from fitters.errors import UnknownNameError


class Table:
    """Base of the frozen tables: columns of equal length, made read-only."""

    def __post_init__(self) -> None:
        for column in self.columns().values():
            if isinstance(column, np.ndarray):
                column.flags.writeable = False

    def columns(self) -> dict[str, Any]:
        """Columns by name, in order; what `pandas.DataFrame` or `pyarrow.table` take."""
        return {column.name: getattr(self, column.name) for column in fields(self)}  # type: ignore[arg-type]

    def __len__(self) -> int:
        """Count the rows."""
        return len(next(iter(self.columns().values())))

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dicts."""
        columns = self.columns()
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def row(self, name: object) -> dict[str, Any]:
        """Return one row by its name as a dict; `UnknownNameError` if there is none."""
        for row in self.rows():
            if row["name"] == name:
                return row
        raise UnknownNameError(f"no row is named {name!r}")
