"""Findings of a night: what it says about a site, or about a part of the jobs everywhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field

HOUR = 3600.0
"""Seconds; costs are computed in core s and reported in core-hours."""

Literals = tuple[tuple[str, str], ...]
"""Part of the jobs by dimension and name; empty: all."""


@dataclass(frozen=True)
class Range:
    """Observed value, the expected one and its range of two standard deviations."""

    observed: float
    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """Judgement of one place, a site or everywhere, in one night.

    ``surprising``: the tail is small enough. ``costly``: the loss is large enough. ``z``: of the night,
    ``surprise``: of up to three nights, over their thresholds if above 1. ``cost``: core s of the night;
    ``week``: of the place. ``began``: nights before in which it began, ``earlier`` their cost.
    ``streams``: surprise and cost of the night by metric, where it is about several. ``literals``: the cause;
    ``share``: of the loss that it explains. ``shown``, ``what``: value and words of a metric beside
    efficiency and failures.
    """

    site: str
    metric: str
    surprising: bool
    costly: bool
    z: float
    surprise: float
    cost: float
    week: float
    partial: bool = False
    began: int = 0
    earlier: float = 0.0
    streams: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    efficiency: Range | None = None
    failed: Range | None = None
    literals: Literals = ()
    share: float | None = None
    n_sites: int = 1
    shown: Range | None = None
    what: str | None = None

    def night_of(self, metric: str) -> tuple[float, float]:
        """Return surprise and cost of the night: of all that is surprising, else of one metric."""
        both = self.z, self.cost
        return both if self.surprising else self.streams.get(metric, both)

    @property
    def is_judged(self) -> bool:
        """True if there were jobs."""
        return any(each is not None for each in (self.efficiency, self.failed, self.shown))
