"""What indices are called when a question is put to some of those that an expression stands for."""

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from urllib.parse import quote

from esjobs.store.elastic.transport.cluster import Cluster, RefusedError

PATTERN = "*,"
"""What stands unquoted in the name of indices."""

_LONGEST = 3000
"""Characters of names in one address; a cluster refuses more than 4096 in its first line by default."""


def without(expression: str, prefix: str) -> str:
    """An expression, none of whose patterns stands for an index whose name begins with a prefix and a dash.

    What is named in full after the patterns is taken as it is.

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
    """Whether indices that an expression stands for can be asked by their own names with the same answer.

    Not where an alias filters them, or where that cannot be told.
    """
    parts = [part for part in expression.split(",") if not part.startswith("-")]
    beyond = {name for name in indices if not any(fnmatchcase(name, part) for part in parts)}
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


def addresses(indices: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Indices in pieces whose names fit into one address.

    >>> [len(piece) for piece in addresses(["jobs-2026.01.01"] * 400)]
    [187, 187, 26]
    """
    piece: list[str] = []
    length = 0
    for name in indices:
        if piece and length + len(name) + 1 > _LONGEST:
            yield tuple(piece)
            piece, length = [], 0
        piece.append(name)
        length += len(name) + 1
    if piece:
        yield tuple(piece)
