"""Arrow rows as JSON documents and back, column by column.

Times are text with microseconds, days text. What JSON cannot write, NaN and the infinities, stands as text
in a hidden object of the document and comes back as what it was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.store.elastic.layout import NOT_FINITE


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
