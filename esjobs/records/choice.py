"""Choice of rows of a result table by keywords."""

from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arguments import Names, listed
from esjobs.core.errors import UsageError
from esjobs.core.row_filters import ROW_FILTERS
from esjobs.core.tables import Table
from esjobs.records.names.spelling import Chosen


def chosen_values(table: Table, filters: Mapping[str, object]) -> Chosen:
    """Columns of a table and the values that filters choose; none for a filter that is absent or None."""
    return {
        each.columns_in(table.column_names): values_of(each.name, filters.get(each.name))
        for each in ROW_FILTERS
    }


def values_of(keyword: str, values: "Names | object | None") -> tuple[str, ...]:
    """Values of a filter; () for None. Raises :class:`UsageError` for an empty list."""
    chosen = () if values is None else listed(values)  # type: ignore[arg-type]
    if values is not None and not chosen:
        # without the filter every row would be shown to somebody who asked for none
        raise UsageError(f"the list for {keyword} is empty; omit {keyword} to select all rows")
    return chosen


def with_values(rows: pa.Table, chosen: Chosen) -> pa.Table:
    """Rows that have one of the values in any column of each group."""
    for columns, values in chosen.items():
        if values:
            accepted = pa.array(values, pa.string())
            has_one = [pc.is_in(rows.column(column), accepted) for column in columns]
            rows = rows.filter(reduce(pc.or_, has_one))
    return rows
