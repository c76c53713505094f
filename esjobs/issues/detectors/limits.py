"""Numbers compared with limits: whether a finding counts. Rules bring limits; the published ones are here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from esjobs.issues.detectors.measured import Bools, Measured, Reason

Comparison = Literal[">", ">=", "<", "<="]


@dataclass(frozen=True, slots=True)
class Limit:
    """A number of a finding (``value``, or a name in its numbers) and what it must be."""

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
    """The limits of the ``adaptive`` variant of periodic phases."""
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
"""The limits of PIKA, by detector; the others have none that was published."""


def flagged(found: Measured, limits: Iterable[Limit]) -> Bools:
    """Jobs that were assessed and pass every limit; a number that is missing passes none.

    Raises ``KeyError`` for a number that the detector does not give.
    """
    flags: Bools = found.reason == Reason.ASSESSED
    for limit in limits:
        flags = flags & passed(found, limit)
    return flags


def passed(found: Measured, limit: Limit) -> Bools:
    """Jobs whose number is as the limit wants it."""
    number = found.value if limit.number == "value" else found.numbers[limit.number]
    compare = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[limit.comparison]
    met: Bools = compare(number, limit.limit)
    return met
