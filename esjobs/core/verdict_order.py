"""Sort order of verdicts in tables, charts, pages and answers."""

from collections.abc import Mapping
from typing import Any


def verdict_order(flag: Mapping[str, Any]) -> tuple[bool, bool, float, str]:
    """Return the sort key of a verdict: confirmed first, then by size of the deviation, missing last.

    >>> rows = [("A", -0.1, None), ("B", None, None), ("C", 0.3, None), ("D", -0.25, True)]
    >>> flags = [dict(zip(("name", "deviation", "confirmed"), row)) for row in rows]
    >>> [flag["name"] for flag in sorted(flags, key=verdict_order)]
    ['D', 'C', 'A', 'B']
    """
    deviation = flag["deviation"]
    size = 0.0 if deviation is None else abs(deviation)
    # names last: equal deviations keep one order everywhere
    return flag["confirmed"] is not True, deviation is None, -size, str(flag["name"])
