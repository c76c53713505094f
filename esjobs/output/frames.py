"""Arrow tables to the typed pandas frames that users work with."""

import pandas as pd
import pyarrow as pa

_NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Nullable integers, booleans and strings, times in UTC, NaN for missing numbers; a fresh index."""
    frame: pd.DataFrame = table.to_pandas(types_mapper=_NULLABLE.get, date_as_object=False)
    return frame
