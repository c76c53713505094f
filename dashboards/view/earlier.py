"""Tables of runs that an earlier version made, with what later versions keep beside."""

import json
import math
from typing import Any

from dashboards.view.rows import Row
from esjobs.core.verdict_order import verdict_order
from esjobs.core.words import standing

_BARS, _REACH = 20, 5.0


def brought_up(tables: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The rows of a run by table, completed in place from the columns that earlier versions had."""
    for row in tables.get("flags", ()):
        row["finding"] = row["finding"] or row["sentence"]
        row["status_shown"] = row["status_shown"] or standing(str(row["verdict"]), row["confirmed"])
    flags = tables.get("flags", ())
    if any(row["rank"] is None for row in flags):
        for rank, row in enumerate(sorted(flags, key=verdict_order), 1):
            row["rank"] = rank
    if not tables.get("pulls"):
        tables["pulls"] = [bar for fit in tables.get("fits", ()) for bar in _bars(fit)]
    return tables


def _bars(fit: Row) -> list[Row]:
    """The bars of a fit whose histogram was kept as a text."""
    step = 2 * _REACH / _BARS
    key = {column: fit[column] for column in ("run", "level", "processing_type", "method")}
    return [
        {**key, "low": -_REACH + step * place, "high": -_REACH + step * (place + 1), "n_buckets": n}
        for place, n in enumerate(counts_of(fit["pulls"]))
    ]


def counts_of(text: Any) -> list[float]:
    """The counts of a stored histogram of pulls; none when the text holds anything else.

    >>> len(counts_of(str([1] * 20))), counts_of("[1, 2]"), counts_of("nothing")
    (20, [], [])
    """
    try:
        found = json.loads(str(text))
    except ValueError:
        return []
    if not isinstance(found, list) or len(found) != _BARS:
        return []
    if not all(isinstance(n, int | float) and math.isfinite(n) and n >= 0 for n in found):
        return []
    return [float(n) for n in found] if sum(found) > 0 else []
