"""Conversion of Arrow tables to typed pandas frames."""

import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def frame_of(table: pa.Table) -> "pd.DataFrame":
    """Return a frame with nullable integers, booleans and strings, times in UTC, NaN for missing numbers.

    Maps become dictionaries, lists become arrays.
    """
    # a third of the time that an import of esjobs takes is pandas', which only frames need
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}
    frame: pd.DataFrame = table.to_pandas(
        types_mapper=nullable.get, date_as_object=False, maps_as_pydicts="strict"
    )
    return frame


def spare_pandas() -> None:
    """Prevent the import of pandas for the rest of the process, which can then make no frame.

    Arrow imports pandas when it converts the first Python values: half of the time of a short command.
    """
    if "pandas" in sys.modules:
        return
    # Arrow looks for pandas once, at its first conversion, and remembers the answer
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(absent)


class _Absent(MetaPathFinder):
    """Import hook that reports pandas as absent."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise :class:`ModuleNotFoundError` for pandas, return None for other modules."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def as_from_frame(table: pa.Table) -> pa.Table:
    """Return the rows with pandas' metadata, from which it restores the same frame.

    Dictionaries of numbers become maps.
    """
    frame = frame_of(table)
    maps = [name for name in frame.columns if any(isinstance(value, dict) for value in frame[name])]
    rows = pa.Table.from_pandas(frame.drop(columns=maps), preserve_index=False)
    for name in maps:
        items = [list(value.items()) if isinstance(value, dict) else None for value in frame[name]]
        column = pa.array(items, pa.map_(pa.string(), pa.float64()))
        rows = rows.add_column(frame.columns.get_loc(name), name, column)
    return rows
