"""Findings of a night: what it says about a site, or about a part of the jobs everywhere."""

from dataclasses import dataclass

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
    ``followed``: surprise and cost of the night in the metric of the place's open incident. ``literals``:
    the cause; ``share``: of the loss that it explains. ``shown``, ``what``: value and words of a metric
    beside efficiency and failures.
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
    followed: tuple[float, float] | None = None
    efficiency: Range | None = None
    failed: Range | None = None
    literals: Literals = ()
    share: float | None = None
    n_sites: int = 1
    shown: Range | None = None
    what: str | None = None

    @property
    def of_night(self) -> tuple[float, float]:
        """Surprise and cost of the night: of all that is surprising, else of the open incident's metric."""
        return (self.z, self.cost) if self.surprising or self.followed is None else self.followed

    @property
    def is_judged(self) -> bool:
        """True if there were jobs."""
        return any(each is not None for each in (self.efficiency, self.failed, self.shown))
