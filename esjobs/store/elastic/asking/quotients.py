"""Bounds of quotients and products of fields as clauses, without scripts.

For each value of an integer divisor the bound becomes a bound of the remaining field: memory per core above 2
GB on 8 cores is memory above 16 GB. The bound is the exact float from which on the rounded division meets the
condition. Other quotients are bounded from above only.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

from esjobs.core import fields
from esjobs.core.fields import Quotient
from esjobs.core.query import In, Range

if TYPE_CHECKING:
    from esjobs.store.elastic.asking.clauses import Clause, Clauses

MOST_CLASSES = 64
"""Most values of an integer that get a clause each."""
# Steps of all divisors together, each with a clause of its own
_MOST_CELLS = 256
# steps to the next float in which a bound must be found
_MOST_ULPS = 4096
# Up to here whole numbers are what they are when they are divided
_EXACT = 2.0**53
# ends of the steps of a divisor of any value: seconds of wall time from 1 to 48 days
FIRST, LAST = 1.0, 2.0**22
SAFE = 1e-9
"""Relative distance from a limit within which rounding could decide."""

Step = tuple[float | None, float | None]
"""Lower and upper end; None: unbounded."""


def exactly(clauses: "Clauses", of: Quotient, bounds: Range) -> "list[Clause] | None":
    """Return clauses whose union is exactly the quotient within bounds; None if impossible."""
    parts = scaled_number(of)
    if parts is None or not _finite(bounds):
        return None
    free, integer, divided = parts
    if (fields.field(free).type, fields.field(integer).type) != ("number", "integer"):
        return None
    # asks the index, so after all that the question alone decides
    values = small_classes(clauses, integer)
    if values is None or (0 in values and not divided):
        return None
    said: list[Clause] = []
    # divided by 0 there is no value at all
    for value in filter(None, values):
        limits = _limits(free, bounds, float(value), divided=divided)
        both = None if limits is None else clauses.filters([In(integer, (value,)), limits])
        if both is None:
            return None
        said.append({"bool": {"filter": both}})
    return said


def scaled_number(of: Quotient) -> tuple[str, str, bool] | None:
    """Return a number and the integer that divides (True) or multiplies it; None for other quotients."""
    match of.over, of.under:
        case (free,), (integer,):
            return free, integer, True
        case (free, integer), ():
            return free, integer, False
    return None


def small_classes(clauses: "Clauses", name: str) -> list[int] | None:
    """Return the values of a whole number, if each can have a clause of its own.

    None for negative values too: they turn the bounds round.
    """
    values = clauses.distinct(name)
    if values is None or len(values) > MOST_CLASSES or any(value < 0 for value in values):
        return None
    return values


def possibly(clauses: "Clauses", of: Quotient, bounds: Range) -> "list[Clause] | None":
    """Return clauses whose union covers the quotient within non-negative bounds; None if unbounded."""
    if len(of.over) != 1 or not of.under or not _finite(bounds):
        return None
    low, high = ends_of(bounds)
    # the margin of rounding below widens positive bounds only
    if min(filter(None, (low, high)), default=0) < 0:
        return None
    steps = [_steps(clauses, name) for name in of.under]
    # more clauses than a search should have: reading may be cheaper
    if math.prod(map(len, steps)) > _MOST_CELLS:
        return None
    said: list[Clause] = []
    for cell in product(*steps):
        divisors = [_within(name, step) for name, step in zip(of.under, cell, strict=True)]
        both = clauses.filters([*divisors, *_dividends(of.over[0], cell, low, high)])
        if both is None:
            return None
        said.append({"bool": {"filter": both}})
    return said


def _within(name: str, step: Step) -> Range:
    """Return the values of a step; one with equal ends is that value alone."""
    first, last = step
    return Range(name, ge=first, lt=last) if first != last else Range(name, ge=first, le=last)


def _dividends(name: str, cell: Sequence[Step], low: float | None, high: float | None) -> Iterator[Range]:
    """Yield bounds of the dividend in a cell of divisors, a little too wide."""
    # a divisor that may be 0 or less bounds nothing
    if not all(first is not None and first > 0 for first, _ in cell):
        return
    least, greatest = (_product(ends) for ends in zip(*cell, strict=True))
    if high is not None and greatest is not None:
        yield Range(name, le=high * greatest * (1 + SAFE))
    if low is not None and least is not None:
        yield Range(name, ge=low * least * (1 - SAFE))


def _finite(bounds: Range) -> bool:
    limits = [bound for bound in (bounds.gt, bounds.ge, bounds.lt, bounds.le) if bound is not None]
    return bool(limits) and all(map(math.isfinite, limits))


def ends_of(bounds: Range) -> Step:
    """Return the least and the greatest bound; None: unbounded."""
    lows = [bound for bound in (bounds.gt, bounds.ge) if bound is not None]
    highs = [bound for bound in (bounds.lt, bounds.le) if bound is not None]
    return max(lows, default=None), min(highs, default=None)


def _product(ends: tuple[float | None, ...]) -> float | None:
    bounded = [end for end in ends if end is not None]
    return math.prod(bounded) if len(bounded) == len(ends) else None


def _limits(free: str, bounds: Range, by: float, *, divided: bool) -> Range | None:
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
    """Return the least number for which a rising function reaches or exceeds a bound; None if not found."""

    def reached(value: float) -> bool:
        return of(value) > bound if beyond else of(value) >= bound

    value = near
    for _ in range(_MOST_ULPS):
        if not reached(value):
            value = math.nextafter(value, math.inf)
        # still reached one step below: the least such number is further down
        elif reached(before := math.nextafter(value, -math.inf)):
            value = before
        else:
            return value
    return None


def _steps(clauses: "Clauses", name: str) -> list[Step]:
    """Return steps that cover all values of a divisor; the values themselves if few."""
    if fields.field(name).type == "integer":
        values = clauses.distinct(name)
        if values is not None and len(values) <= MOST_CLASSES // 8:
            return [(value, value) for value in values if value]
    return list(doubling(FIRST, LAST))


def doubling(first: float, last: float) -> Iterator[Step]:
    """Yield steps over all numbers, each twice as long as the one before; unbounded beyond both ends."""
    yield None, first
    while first < last:
        yield first, first * 2
        first *= 2
    yield first, None
