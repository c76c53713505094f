"""Arrow tables to the typed pandas frames that users work with."""

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def frame_of(table: pa.Table) -> "pd.DataFrame":
    """Nullable integers, booleans and strings, times in UTC, NaN for missing numbers; a fresh index.

    Maps are dictionaries, lists arrays, one object per row.
    """
    # a third of the time that an import of esjobs takes is pandas', which only frames need
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}
    frame: pd.DataFrame = table.to_pandas(
        types_mapper=nullable.get, date_as_object=False, maps_as_pydicts="strict"
    )
    return frame


def rows_of(frame: "pd.DataFrame") -> pa.Table:
    """A frame as an Arrow table again; dictionaries of numbers are maps, whatever their names."""
    maps = [name for name in frame.columns if any(isinstance(value, dict) for value in frame[name])]
    rows = pa.Table.from_pandas(frame.drop(columns=maps), preserve_index=False)
    for name in maps:
        items = [list(value.items()) if isinstance(value, dict) else None for value in frame[name]]
        column = pa.array(items, pa.map_(pa.string(), pa.float64()))
        rows = rows.add_column(frame.columns.get_loc(name), name, column)
    return rows
