"""Arrow tables to the typed pandas frames that users work with."""

import sys
from importlib.abc import MetaPathFinder
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


def spare_pandas() -> None:
    """Keep this process from importing pandas for nothing; from now on it can make no frame.

    Arrow looks for pandas once, when the first array is made of Python values, whether frames are wanted or
    not: half of the time that a short command takes. What it does not find then, it does without.
    """
    if "pandas" in sys.modules:
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(absent)


class _Absent(MetaPathFinder):
    """Says that there is no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Nothing of any other module; raises :class:`ModuleNotFoundError` for pandas."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def as_from_frame(table: pa.Table) -> pa.Table:
    """The rows as pandas would write them: with its account of types, by which it reads the same frame back.

    Dictionaries of numbers are maps, whatever their names.
    """
    frame = frame_of(table)
    maps = [name for name in frame.columns if any(isinstance(value, dict) for value in frame[name])]
    rows = pa.Table.from_pandas(frame.drop(columns=maps), preserve_index=False)
    for name in maps:
        items = [list(value.items()) if isinstance(value, dict) else None for value in frame[name]]
        column = pa.array(items, pa.map_(pa.string(), pa.float64()))
        rows = rows.add_column(frame.columns.get_loc(name), name, column)
    return rows
