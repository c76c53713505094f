"""Fields and metrics of queries as a table."""

import pyarrow as pa

from esjobs.core import fields
from esjobs.records.jobs.questions.metrics import METRICS


def fields_table() -> pa.Table:
    """Fields and metrics that queries take: kind, name, type, unit, meaning; ``by``: may be grouped by."""
    rows: list[dict[str, object]] = [
        {
            "kind": "field",
            "name": field.name,
            "type": field.type,
            "unit": field.unit,
            "by": field.groupable,
            "meaning": field.meaning + (" (required)" if field.required else ""),
        }
        for field in (*fields.JOB_FIELDS, *fields.DERIVED_FIELDS)
    ]
    rows += [
        {
            "kind": "metric",
            "name": metric.name,
            "type": "number",
            "unit": metric.unit,
            "by": False,
            "meaning": metric.meaning,
        }
        for metric in METRICS
    ]
    return pa.Table.from_pylist(rows)
