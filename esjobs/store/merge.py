"""Groups that belong together, added up."""

from collections.abc import Sequence

import pyarrow as pa

from esjobs.core.query import Maximum, Metric, Minimum


def merged(parts: pa.Table, keys: Sequence[str], metrics: Sequence[Metric]) -> pa.Table:
    """Rows of equal keys as one: sums added, extremes compared; null only where all are.

    ``parts``: columns keys, then metrics, as a store aggregates. Without keys there is one row.
    """
    how = [(metric.name, {Minimum: "min", Maximum: "max"}.get(type(metric), "sum")) for metric in metrics]
    found = parts.group_by(list(keys), use_threads=False).aggregate(how)
    names = [*keys, *(f"{name}_{kind}" for name, kind in how)]
    columns = [found.column(name) for name in names]
    return pa.Table.from_arrays(columns, names=parts.column_names).cast(parts.schema)
