"""Page of the fields of a job, the metrics of queries and of time series."""

from esjobs.core import fields
from esjobs.core.metrics import METRICS as SAMPLED
from esjobs.records.jobs.query import METRICS
from esjobs.records.jobs.questions.metrics import GENERIC

_HEAD = """# Fields and metrics

{note}
## Fields of a job

In parentheses: unit, unless the name ends in `_s` or `_b`, else type. `*`: `--by` can group by it. Computed
fields are never stored.
"""
_QUERY = """
## Metrics of `esjobs query`

In parentheses: unit; weight of a job, if jobs are weighted; jobs that are left out.
"""
_SERIES = """
## Metrics of time series

In base units. Other metrics keep their name behind `x_`. Those marked + add up over units, others have a
mean.
"""


def fields_page(note: str) -> str:
    """Return the page."""
    lines = [_HEAD.format(note=note)]
    for field in (*fields.JOB_FIELDS, *fields.DERIVED_FIELDS):
        kind = field.unit or ("" if field.type == "keyword" else field.type)
        kind = "" if (kind, field.name[-2:]) in {("s", "_s"), ("B", "_b")} else kind
        marks = "*" if field.groupable else ""
        also = ["required"] * field.required + ["computed"] * (field.derived is not None)
        bracket = ", ".join(filter(None, (kind, *also)))
        lines.append(f"- `{field.name}`{marks}{f' ({bracket})' if bracket else ''}: {field.meaning}")
    lines.append(_QUERY)
    for metric in METRICS:
        bracket = "; ".join(
            filter(None, (metric.unit, metric.weight, metric.leaves_out.replace("jobs ", "")))
        )
        lines.append(f"- `{metric.name}`{f' ({bracket})' if bracket else ''}: {metric.meaning}")
    generic = ", ".join(f"`{name}` ({meaning})" for name, meaning in GENERIC.items())
    lines.append(f"\nOf any number of the catalogue, as `FUNCTION:FIELD`: {generic}.")
    lines.append(_SERIES)
    for sampled in SAMPLED:
        mark = " +" if sampled.over_units == "sum" else ""
        lines.append(f"- `{sampled.name}` ({sampled.unit}{mark}): {sampled.meaning}")
    return "\n".join(lines) + "\n"
