"""Arrow rows as JSON documents and back, column by column.

Times are text with microseconds, days text. What JSON cannot write, NaN and the infinities, stands as text
in a hidden object of the document and comes back as what it was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.store.elastic.layout import LONGEST_TERM, NOT_FINITE, SCAN_ONLY

Document = dict[str, Any]


def documents(rows: pa.RecordBatch) -> list[Document]:
    """One document per row; what is null is left out."""
    names, columns, odd, too_long = [], [], [], []
    for item in rows.schema:
        column = rows.column(item.name)
        names.append(item.name)
        columns.append(_plain(column, item.type).to_pylist())
        if pa.types.is_floating(item.type):
            strange = pc.invert(pc.fill_null(pc.is_finite(column), True))
            odd += [(row, item.name) for row in pc.indices_nonzero(strange).to_pylist()]
        elif pa.types.is_string(item.type):
            long = pc.fill_null(pc.greater(pc.utf8_length(column), LONGEST_TERM), False)
            too_long += pc.indices_nonzero(long).to_pylist()
    found = (
        [
            {name: value for name, value in zip(names, values, strict=True) if value is not None}
            for values in zip(*columns, strict=True)
        ]
        if names
        else []
    )
    for row, name in odd:
        found[row].setdefault(NOT_FINITE, {})[name] = repr(found[row].pop(name))
    for row in {*too_long, *(row for row, _ in odd)}:
        found[row][SCAN_ONLY] = True
    return found


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in a type whose Python values JSON can write."""
    if pa.types.is_timestamp(kind):
        return pc.strftime(column, format="%Y-%m-%dT%H:%M:%SZ")
    if pa.types.is_date(kind):
        return pc.strftime(column, format="%Y-%m-%d")
    return column


def columns(found: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Documents as a batch; what a document lacks is null."""
    arrays = []
    odd = [(row, item[NOT_FINITE]) for row, item in enumerate(found) if NOT_FINITE in item]
    for item in schema:
        values = [document.get(item.name) for document in found]
        for row, strange in odd:
            if item.name in strange:
                values[row] = float(strange[item.name])
        if pa.types.is_timestamp(item.type):
            arrays.append(pa.array(values, pa.string()).cast(item.type))
        elif pa.types.is_date(item.type):
            arrays.append(pc.strptime(pa.array(values, pa.string()), "%Y-%m-%d", "s").cast(item.type))
        else:
            arrays.append(pa.array(values, item.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
