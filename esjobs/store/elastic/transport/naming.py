"""Names of the indices behind an expression."""

from collections.abc import Collection
from fnmatch import fnmatchcase
from urllib.parse import quote

from esjobs.store.elastic.transport.cluster import Cluster, RefusedError

PATTERN = "*,"
"""Unquoted characters in the names of indices."""


def without(expression: str, prefix: str) -> str:
    """Exclude indices of a prefix from the patterns of an expression; full names after them stay.

    >>> without("*", "esjobs"), without("jobs-1,jobs-2", "esjobs"), without("a-*,-a-2,b", "esjobs")
    ('*,-esjobs-*', 'jobs-1,jobs-2', 'a-*,-a-2,-esjobs-*,b')
    """
    parts = expression.split(",")
    patterns = [number for number, part in enumerate(parts) if "*" in part]
    if not patterns:
        return expression
    # an exclusion acts on what stands before it
    last = max(number for number, part in enumerate(parts) if "*" in part or part.startswith("-"))
    return ",".join([*parts[: last + 1], f"-{prefix}-*", *parts[last + 1 :]])


def nameable(cluster: Cluster, expression: str, indices: Collection[str]) -> bool:
    """True if indices behind an expression can be addressed by name with the same result.

    False if an alias filters them, or that is unknown.
    """
    parts = [part for part in expression.split(",") if not part.startswith("-")]
    beyond = {name for name in indices if not any(fnmatchcase(name, part) for part in parts)}
    # every index matches by its own name: no alias is involved
    if not beyond:
        return True
    try:
        behind = cluster.call("GET", f"/_alias/{quote(expression, safe=PATTERN)}")
    except RefusedError:
        return False
    return all(
        any("filter" not in alias for alias in behind.get(name, {}).get("aliases", {}).values())
        for name in beyond
    )
