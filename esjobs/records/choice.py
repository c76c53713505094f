"""Choice of rows of a result table by keywords."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arguments import Names, listed
from esjobs.core.errors import UsageError

FILTER_COLUMNS = {
    "level": "level",
    "type": "processing_type",
    "name": "name",
    "site": "rc_site",
    "method": "method",
    "user": "user",
    "project": "project",
    "detector": "detector",
    "application": "application",
}
"""Keyword of a filter -> column."""


def chosen_values(filters: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Columns and the values that keywords choose; none of a keyword that is absent or None."""
    return {column: values_of(keyword, filters.get(keyword)) for keyword, column in FILTER_COLUMNS.items()}


def values_of(keyword: str, values: "Names | object | None") -> tuple[str, ...]:
    """Values of a filter; () for None. Raises :class:`UsageError` for an empty list."""
    chosen = () if values is None else listed(values)  # type: ignore[arg-type]
    if values is not None and not chosen:
        # without the filter every row would be shown to somebody who asked for none
        raise UsageError(f"no {keyword} is given to choose rows by; leave {keyword} out for every row")
    return chosen


def with_values(rows: pa.Table, chosen: Mapping[str, Sequence[str]]) -> pa.Table:
    """Rows that have one of the values in each column."""
    for column, values in chosen.items():
        if values:
            rows = rows.filter(pc.is_in(rows.column(column), pa.array(values, pa.string())))
    return rows
