"""Bounds of quotients and products of fields as clauses, without scripts.

Where all but one field of a quotient are whole numbers of few values (cores), each of these leaves a bound of
the field that remains: of 8 cores, memory over cores lies above 2 GB where memory lies above 16 GB. The bound
is the very number from which on the division, rounded as it is, meets the condition, so that the clause is
exact. Of other quotients a clause says what can lie within the bounds: CPU time over wall-clock time x cores
lies below a tenth at most where the CPU time lies below a tenth of the greatest divisor of a step.
"""

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING

from esjobs.core import fields
from esjobs.core.fields import Quotient
from esjobs.core.query import In, Range

if TYPE_CHECKING:
    from esjobs.store.elastic.asking.clauses import Clause, Clauses

MOST_CLASSES = 64
"""Values of a whole number, each with a clause of its own."""
_MOST_CELLS = 256
"""Steps of all divisors together, each with a clause of its own."""
_MOST_ULPS = 4096
_EXACT = 2.0**53
"""Up to here whole numbers are what they are when they are divided."""
_FIRST, _LAST = 1.0, 2.0**22
_SAFE = 1e-9
"""Relative distance from a limit within which rounding could decide."""

Step = tuple[float | None, float | None]


def exactly(clauses: "Clauses", of: Quotient, bounds: Range) -> "list[Clause] | None":
    """Clauses any one of which holds exactly where the quotient lies within bounds; None: cannot be said.

    One look at the values of the whole number.
    """
    match of.over, of.under:
        case (free,), (whole,):
            divided = True
        case (free, whole), ():
            divided = False
        case _:
            return None
    if (fields.field(free).type, fields.field(whole).type) != ("number", "integer") or not _finite(bounds):
        return None
    values = clauses.distinct(whole)
    if values is None or len(values) > MOST_CLASSES or any(value < 0 for value in values):
        return None
    said: list[Clause] = []
    for value in values:
        if value == 0:
            if divided:
                continue  # no value at all
            return None
        limits = _limits(free, bounds, float(value), divided=divided)
        if limits is None:
            return None
        both = clauses.filters([In(whole, (value,)), limits])
        if both is None:
            return None
        said.append({"bool": {"filter": both}})
    return said


def possibly(clauses: "Clauses", of: Quotient, bounds: Range) -> "list[Clause] | None":
    """Clauses any one of which holds where a quotient can lie within bounds that are not negative.

    None where nothing can be said: it may lie there anywhere.
    """
    if len(of.over) != 1 or not of.under or not _finite(bounds):
        return None
    low, high = _ends(bounds)
    if (low is not None and low < 0) or (high is not None and high < 0):
        return None
    steps = [_steps(clauses, name) for name in of.under]
    if math.prod(map(len, steps)) > _MOST_CELLS:
        return None
    said: list[Clause] = []
    for cell in product(*steps):
        needed: list[Range] = [
            Range(name, ge=first, lt=last) if first != last else Range(name, ge=first, le=last)
            for name, (first, last) in zip(of.under, cell, strict=True)
            if first is not None or last is not None
        ]
        least, greatest = (_product(ends) for ends in zip(*cell, strict=True))
        positive = all(first is not None and first > 0 for first, _ in cell)
        if positive and high is not None and greatest is not None:
            needed.append(Range(of.over[0], le=high * greatest * (1 + _SAFE)))
        if positive and low is not None and least is not None:
            needed.append(Range(of.over[0], ge=low * least * (1 - _SAFE)))
        both = clauses.filters(needed)
        if both is None:
            return None
        said.append({"bool": {"filter": both}})
    return said


def _finite(bounds: Range) -> bool:
    given = [bound for bound in (bounds.gt, bounds.ge, bounds.lt, bounds.le) if bound is not None]
    return bool(given) and all(map(math.isfinite, given))


def _ends(bounds: Range) -> tuple[float | None, float | None]:
    lows = [bound for bound in (bounds.gt, bounds.ge) if bound is not None]
    highs = [bound for bound in (bounds.lt, bounds.le) if bound is not None]
    return max(lows, default=None), min(highs, default=None)


def _product(ends: tuple[float | None, ...]) -> float | None:
    known = [end for end in ends if end is not None]
    return math.prod(known) if len(known) == len(ends) else None


def _limits(free: str, bounds: Range, by: float, *, divided: bool) -> Range | None:
    """The bounds of the field that remains, where the other one is ``by``."""

    def of(value: float) -> float:
        return value / by if divided else value * by

    lows: list[float] = []
    highs: list[float] = []
    for bound, beyond, side in (
        (bounds.gt, True, lows),
        (bounds.ge, False, lows),
        (bounds.lt, False, highs),
        (bounds.le, True, highs),
    ):
        if bound is None:
            continue
        least = reaching(of, bound * by if divided else bound / by, bound, beyond=beyond)
        if least is None or abs(least) > _EXACT:
            return None
        side.append(least)
    return Range(free, ge=max(lows, default=None), lt=min(highs, default=None))


def reaching(of: Callable[[float], float], near: float, bound: float, *, beyond: bool) -> float | None:
    """The least number of which a rising function reaches a bound, or goes beyond it; None: not found."""

    def reached(value: float) -> bool:
        return of(value) > bound if beyond else of(value) >= bound

    value = near
    for _ in range(_MOST_ULPS):
        if not reached(value):
            value = math.nextafter(value, math.inf)
        elif reached(before := math.nextafter(value, -math.inf)):
            value = before
        else:
            return value
    return None


def _steps(clauses: "Clauses", name: str) -> list[Step]:
    """Steps that cover all values of a divisor: the values themselves where they are few."""
    if fields.field(name).type == "integer":
        values = clauses.distinct(name)
        if values is not None and len(values) <= MOST_CLASSES // 8:
            return [(value, value) for value in values if value]
    return list(_doubling())


def _doubling() -> Iterator[Step]:
    first = _FIRST
    yield None, first
    while first < _LAST:
        yield first, first * 2
        first *= 2
    yield first, None
