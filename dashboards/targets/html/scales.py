"""Axes that a single absurd value cannot stretch: limits from the bulk of the data, the rest at the edge."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Span = tuple[float, float]

_ROUND_RATIOS = (0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0, 3.0, 5.0, 10.0)
_TICKS, _LEAST_TICKS = 9, 3


@dataclass(frozen=True)
class Axis:
    """The interval that an axis covers."""

    low: float
    high: float

    def clip(self, value: float) -> float:
        """The value, or the nearer end for one that lies beyond.

        >>> Axis(0, 2).clip(5.0)
        2
        """
        return min(max(value, self.low), self.high)

    def holds(self, value: float) -> bool:
        """True if the value is on the axis."""
        return self.low <= value <= self.high

    def share(self, value: float) -> float:
        """Position on the axis, 0 at the low end and 1 at the high end."""
        return (value - self.low) / (self.high - self.low)


def axis_of(spans: Sequence[Span], margin: float = 0.04) -> Axis:
    """An axis over all spans (low, high), unless some lie far outside the bulk of their middles.

    The bulk is the 10 % to 90 % range of the middles; the axis reaches at most three times its width beyond
    it. It never falls below 0 when no span does. Without spans: 0 to 1.
    """
    if not spans:
        return Axis(0.0, 1.0)
    low, high = (np.array([span[end] for span in spans], dtype=float) for end in (0, 1))
    middle = (low + high) / 2
    tenth, median, ninetieth = np.quantile(middle, [0.1, 0.5, 0.9])
    # equal middles have no width: the error bars do, else a tenth of the value
    width = max(ninetieth - tenth, float(np.median(high - low)), 0.1 * abs(float(median)), 1e-9)
    start = max(float(low.min()), float(tenth - 3 * width))
    end = min(float(high.max()), float(ninetieth + 3 * width))
    if end <= start:
        start, end = start - width / 2, end + width / 2
    room = margin * (end - start)
    return Axis(max(0.0, start - room) if low.min() >= 0 else start - room, end + room)


def ratio_axis(values: Sequence[float]) -> Axis:
    """An axis of ratios, even around 1, at least from 0.8 to 1.25 and at most from 0.1 to 10."""
    reach = max((abs(math.log(value)) for value in values), default=0.0)
    # a little beyond the farthest value, on both sides alike
    top = math.exp(min(max(1.08 * reach, math.log(1.25)), math.log(10)))
    return Axis(1 / top, top)


def log_axis(values: Sequence[float], room: float = 1.12) -> Axis:
    """A logarithmic axis over positive values, at least a factor 1.5 wide; without any from 1 to 10.

    >>> log_axis([10.0, 40.0], room=2.0)
    Axis(low=5.0, high=80.0)
    """
    if not values:
        return Axis(1.0, 10.0)
    low, high = min(values), max(values)
    # equal values get a factor of 1.5 between them
    widen = max(room, math.sqrt(1.5 * low / high))
    return Axis(low / widen, high * widen)


def log_ticks(axis: Axis) -> list[float]:
    """Round values on a logarithmic axis: even steps on a short one, else as few per decade as leave three.

    >>> log_ticks(Axis(5.0, 80.0)), log_ticks(Axis(84.0, 121.0))
    ([5.0, 10.0, 20.0, 50.0], [90.0, 100.0, 110.0, 120.0])
    """
    if axis.high < 3 * axis.low:
        return _even_ticks(axis)
    decades = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
    found: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7)):
        found = [
            tick for decade in decades for step in steps if axis.holds(tick := float(f"{step}e{decade}"))
        ]
        if len(found) >= _LEAST_TICKS:
            break
    return found[:: math.ceil(len(found) / _TICKS)]


def _even_ticks(axis: Axis) -> list[float]:
    """Multiples of the widest round step that leaves at least three of them."""
    decade = math.floor(math.log10(axis.high - axis.low))
    for place in range(6):
        step = (5, 2, 1)[place % 3] * 10.0 ** (decade - place // 3)
        ticks = range(math.ceil(axis.low / step), math.floor(axis.high / step) + 1)
        if len(ticks) >= _LEAST_TICKS:
            return [float(f"{tick * step:.6g}") for tick in ticks]
    return [axis.low, axis.high]


def ratio_ticks(axis: Axis) -> list[float]:
    """Round ratios on the axis, thinned out when there are many, with 1 always among them.

    >>> ratio_ticks(Axis(0.5, 2.0))
    [0.6, 0.8, 1.0, 1.2, 1.5, 2.0]
    """
    inside = [value for value in _ROUND_RATIOS if axis.holds(value)]
    if len(inside) <= _TICKS:
        return inside
    # every second, counted from 1, so that it stays
    one = inside.index(1.0)
    return [value for place, value in enumerate(inside) if (place - one) % 2 == 0]
