"""Tables as all fits return them: read-only columns of equal length, with a name for every row."""

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

    def row(self, name: object) -> dict[str, Any]:
        """Return one row by its name as a dict; `UnknownNameError` if there is none."""
        columns = self.columns()
        for index, other in enumerate(columns["name"]):
            if other == name:
                return {key: column[index] for key, column in columns.items()}
        raise UnknownNameError(f"there is no row named {name!r}")
