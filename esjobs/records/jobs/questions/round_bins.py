"""Edges of bins where only their number was given: equal widths that people count in."""

import math
from collections.abc import Iterator

# Widths in seconds below a day; days are counted in tens again.
_OF_TIME = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(60.0 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600.0 * hours for hours in (1, 2, 4, 6, 12)),
)
_DAY = 86_400.0


def round_bins(number: int, low: float, high: float, unit: str) -> tuple[float, ...]:
    """Return at most ``number`` lower edges of one round width that cover ``low`` to ``high``.

    A largest value on an edge is in the bin below it. Widths are 1, 2 or 5 times a power of ten, of seconds
    also parts of minutes, hours and days.

    >>> round_bins(10, 3.0, 97.0, "")
    (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0)
    >>> round_bins(4, 0.0, 40_000.0, "s")
    (0.0, 14400.0, 28800.0)
    """
    least = high / number - low / number
    if not least > 0 or low + least in (low, math.inf):
        # one value, or a width that numbers of this size cannot tell apart
        return (low,)
    for width in _widths(least, unit):
        first, last = math.floor(low / width), math.ceil(high / width) - 1
        # a quotient too small for a number is 0, and its value still below it
        first -= first * width > low
        if last - first < number and math.isfinite(first * width):
            return tuple(dict.fromkeys(float(f"{step * width:.15g}") for step in range(first, last + 1)))
    return (low,)


def _widths(least: float, unit: str) -> Iterator[float]:
    # the smallest that is not below ``least`` first
    base = 1.0
    if unit == "s" and least >= 1:
        yield from (width for width in _OF_TIME if width >= least)
        base = _DAY
    power = math.floor(math.log10(least / base)) if least > base or base == 1.0 else 0
    while power <= 308:  # the largest power of ten of a double
        for digit in (1, 2, 5):
            width = float(f"{digit}e{power}") * base
            if least <= width < math.inf:
                yield width
        power += 1
