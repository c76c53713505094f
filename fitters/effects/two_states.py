"""Probability that an effect is that of another state whose size is known as a range.

Three explanations: the usual scatter about 0; the other state, anywhere in the range, with the usual scatter;
anything else, broadly. The first is by far the most frequent.
"""

import math

from scipy import special

SHARE = 0.05
"""Share of names in another state, in either direction, that is expected before anything is seen."""
_OTHER_SHARE, _OTHER_WIDTH = 0.05, 0.3  # Of effects with any other cause, and their scatter in ln


def other_state_probability(effect: float, error: float, scatter: float, low: float, high: float) -> float:
    """Return the probability that an effect in ln is that of the other state, of its own sign.

    ``error``: of the effect; ``scatter``: of usual effects; ``low``, ``high``: of the state's, above 0.

    >>> [round(other_state_probability(x, 0.02, 0.05, 0.39, 0.55), 2) for x in (-0.47, 0.1, 0.36, 0.8)]
    [0.87, 0.0, 0.58, 0.0]
    """
    size = abs(effect)
    width = math.hypot(error, scatter)
    inside = special.ndtr((size - low) / width) - special.ndtr((size - high) / width)
    state = SHARE / 2 * float(inside) / (high - low)
    usual = (1.0 - SHARE - _OTHER_SHARE) * _normal(size, width)
    other = _OTHER_SHARE * _normal(size, math.hypot(width, _OTHER_WIDTH))
    return state / (state + usual + other)


def _normal(value: float, width: float) -> float:
    return math.exp(-0.5 * (value / width) ** 2) / (width * math.sqrt(2.0 * math.pi))
