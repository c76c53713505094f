"""Captions of charts with a line."""

from typing import Any

from dashboards.view.rows import Row
from esjobs.core.numbers import count, number, percent
from esjobs.core.text import visible

# The line takes no smaller scatter of declarations than this; see the method
_LEAST_SCATTER = 0.02


def line_caption(line: Row | None, benchmark: Any, level: object) -> str:
    """The slope of a line, what it rests on, and why it is dashed; ``line``: its row, None without one."""
    name = visible(str(benchmark or "corepower"))
    models = level == "cpu_model"
    if line is None or not line["slope"]:
        few = "CPU models have a reference score" if models else "queues declare a value of their own"
        return f"No line for {name}: too few {few}."
    text = f"Line: k = ({number(line['slope'], line['slope_err'])}) × {name}"
    if models:
        text += f", from the reference scores of {count(line['n_entries'])} CPU models."
    else:
        text += f", from {count(line['n_entries'])} declared values of {count(line['n_groups'])} sites."
    if line["tau"] is not None:
        least = ", the assumed minimum" if line["tau"] <= _LEAST_SCATTER else ""
        text += f" Scatter beyond the errors: {percent(line['tau'])}{least}."
    if line["status"] != "ok":
        text += f" Dashed, because no verdict uses it: {visible(str(line['reason'] or line['status']))}."
    return text
