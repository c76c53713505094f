"""Round numbers and moments for the axes of figures."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

Moment = TypeVar("Moment")


def spread(moments: Sequence[Moment], most: int) -> list[Moment]:
    """Return the first and the last of several, and some between them."""
    places = np.unique(np.linspace(0, len(moments) - 1, min(len(moments), most)).round().astype(int))
    return [moments[place] for place in places]


def round_values(low: float, high: float) -> list[float]:
    """Return three to six round numbers between two.

    >>> round_values(0.81, 0.828), round_values(0.0, 2.4e6)
    ([0.81, 0.815, 0.82, 0.825], [0.0, 500000.0, 1000000.0, 1500000.0, 2000000.0])
    """
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= rough)
    # 1e-9: an end that is round itself is not lost to rounding
    first = math.ceil(low / step - 1e-9)
    numbers = range(first, math.floor(high / step + 1e-9) + 1)
    # 3 times 0.1 would be written as 0.30000000000000004
    return [float(f"{number * step:.12g}") for number in numbers]


def short_number(value: float) -> str:
    """Format a number on an axis.

    >>> short_number(1.5e6), short_number(0.825), short_number(20_000.0)
    ('1.5 M', '0.825', '20 k')
    """
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g} {prefix}"
    return f"{value:g}"


def widened(values: Sequence[float], share: float) -> tuple[float, float]:
    """Return the ends of an axis over values, with a margin that is a share of it; never below 0.

    >>> widened([10.0, 20.0], 0.1), widened([0.0], 0.1)
    ((9.0, 21.0), (0.0, 0.1))
    """
    low, high = min(values), max(values)
    # equal values have no width, and an axis of 0 to 0 no scale
    margin = share * (high - low or high or 1.0)
    return max(0.0, low - margin), high + margin


def path(points: Sequence[str], *, closed: bool = False) -> str:
    """Return the line through points (``x,y``) as the path of an SVG; empty without points."""
    return f"M{'L'.join(points)}{'Z' * closed}" if points else ""


def heights(low: float, high: float, bottom: int) -> Callable[[float], float]:
    """Return the function from values to heights in a figure; its axis goes from ``low``, at ``bottom``, to
    ``high``.
    """
    # SVG counts from the top, of which 8 stay free
    return lambda value: float(round(bottom - (value - low) / (high - low) * (bottom - 8), 1))
