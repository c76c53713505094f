"""Names of the bins of a number: in base units for machines, in a unit of their size for people."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from esjobs.core.fields import Field

# Units that people read instead of a base unit, the largest first, and how many base units they are.
_UNITS = {
    "B": (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)),
    "s": (("d", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0)),
}

# No edge but 0 is a smaller number in the unit that is chosen.
_LEAST = 0.1


def stored_name(edges: Sequence[float], number: int) -> str:
    """A bin in base units, for scripts: the lower edge is in it, the upper one is not.

    >>> stored_name((5e8, 1e9), 1), stored_name((5e8, 1e9), 0)
    ('5e+08 to 1e+09', '< 5e+08')
    """
    return _named(_texts(edges, lambda edge, digits: f"{edge:.{digits}g}", 6), number)


def name(of: Field, edges: Sequence[float], number: int) -> str:
    """A bin as people read it, in the unit of which all edges have numbers of some size.

    >>> from esjobs.core import fields
    >>> memory, time = fields.field("mem_per_core_b"), fields.field("queue_s")
    >>> name(memory, (5e8, 1e9), 1), name(memory, (5e8, 1e9), 2)
    ('0.5 to 1 GB', '>= 1 GB')
    >>> name(time, (0.0, 5400.0), 1), name(time, (5.0, 48456.6), 1)
    ('0 to 1.5 h', '5 to 48,457 s')
    """
    unit, size = _unit(of, edges)
    return _named(_texts([edge / size for edge in edges], _read, 4), number) + (f" {unit}" if unit else "")


def _unit(of: Field, edges: Sequence[float]) -> tuple[str, float]:
    least = min((abs(edge) for edge in edges if edge), default=0.0)
    units = _UNITS.get(of.unit, (("", 1.0),))
    return next((one for one in units if least >= _LEAST * one[1]), units[-1])


def _read(value: float, digits: int) -> str:
    # as tables show numbers, with more digits where needed
    if abs(value) >= 1e15:
        return f"{value:.{digits}g}"
    return f"{value:,.{max(0, digits - 4)}f}" if abs(value) >= 1e4 else f"{value:.{digits}g}"


def _texts(edges: Sequence[float], text: Callable[[float, int], str], digits: int) -> list[str]:
    # more digits where two edges would read the same
    for more in range(digits, 17):
        texts = [text(edge, more) for edge in edges]
        if all(one != other for one, other in pairwise(texts)):
            return texts
    return [text(edge, 17) for edge in edges]


def _named(edges: Sequence[str], number: int) -> str:
    if number == 0:
        return f"< {edges[0]}"
    if number == len(edges):
        return f">= {edges[-1]}"
    return f"{edges[number - 1]} to {edges[number]}"
