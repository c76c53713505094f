"""Comparison of measurements with limits; the published limits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from esjobs.issues.detectors.measured import Mask, Measured, Reason

Comparison = Literal[">", ">=", "<", "<="]


@dataclass(frozen=True, slots=True)
class Limit:
    """Required range of a number: ``value`` or a further number."""

    number: str
    comparison: Comparison
    limit: float


_PHASES = (
    Limit("peak", ">=", 1.8),
    Limit("median", "<=", 0.1),
    Limit("r", "<=", -0.4),
    Limit("periods", ">=", 10.0),
    Limit("load_mean", ">=", 0.1),
    Limit("load_range", ">=", 0.7),
)
_BLOCKING = (*_PHASES, Limit("io_ratio", ">=", 1.0))
_OFFLOADING = (*_PHASES, Limit("other_mean", ">=", 0.1), Limit("other_range", ">=", 0.7))


def adaptive(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """Return limits of the ``adaptive`` variant of periodic phases."""
    return tuple(
        Limit("median_adaptive", each.comparison, each.limit) if each.number == "median" else each
        for each in limits
    )


PUBLISHED: Mapping[str, tuple[Limit, ...]] = {
    "imbalance": (Limit("value", ">", 0.2),),
    "congestion": (Limit("value", ">=", 40.0),),
    "io_blocking": _BLOCKING,
    "io_blocking adaptive": adaptive(_BLOCKING),
    "synchronous_offloading": _OFFLOADING,
    "synchronous_offloading adaptive": adaptive(_OFFLOADING),
    "leak": (Limit("value", ">=", 0.01), Limit("value", "<=", 1.0), Limit("ratio", "<", 1.0)),
}
"""Limits published by PIKA."""


def flagged(found: Measured, limits: Iterable[Limit]) -> Mask:
    """Return the mask of assessed jobs that meet every limit; a missing number meets none.

    Raises ``KeyError`` for a number that the detector does not have.
    """
    flags: Mask = found.reason == Reason.ASSESSED
    for limit in limits:
        flags = flags & passed(found, limit)
    return flags


def passed(found: Measured, limit: Limit) -> Mask:
    """Return the mask of jobs that pass a limit; a missing number passes none."""
    number = found.value if limit.number == "value" else found.numbers[limit.number]
    # with NaN all of these are false
    compare = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[limit.comparison]
    met: Mask = compare(number, limit.limit)
    return met
