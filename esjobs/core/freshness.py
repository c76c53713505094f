"""Age of results: time since the end of the newest day with jobs."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

FRESH_DAYS, STALE_DAYS = 2, 7
"""Up to the first age of the newest day with jobs the light is green, beyond the second red."""

LIGHTS = ("Yes", "With care", "No")
"""Answers to the question whether the numbers may be used, the best first."""

OF_DEMO = "synthetic grid: queue table"
"""Source of the declared values of the demo."""


@dataclass(frozen=True)
class Freshness:
    """Age of the results of a run.

    ``end``: end of the newest day with jobs, None if unknown. ``now``: None lets a page compute the age when
    it is opened. ``best``: best answer that fit and nights allow. ``made_up``: jobs of the demo.
    """

    end: datetime | None
    now: datetime | None = None
    best: str = LIGHTS[0]
    made_up: bool = False

    @property
    def newest(self) -> str:
        """Newest day with jobs."""
        return "unknown" if self.end is None else (self.end - timedelta(microseconds=1)).date().isoformat()

    @property
    def end_text(self) -> str:
        """End as ISO time; empty if unknown."""
        return "" if self.end is None else self.end.astimezone(UTC).isoformat().replace("+00:00", "Z")

    @property
    def days(self) -> float | None:
        """Age in days; None if either time is unknown.

        >>> Freshness(datetime(2025, 7, 1, tzinfo=UTC), datetime(2025, 7, 3, 12, tzinfo=UTC)).days
        2.5
        """
        if self.end is None or self.now is None:
            return None
        # jobs of a day that is not over have an age of 0
        return max(0.0, (self.now - self.end).total_seconds() / 86_400)

    @property
    def stale(self) -> bool:
        """True if the numbers are too old to send."""
        return self.days is not None and self.days > STALE_DAYS

    @property
    def light(self) -> str:
        """Answer to whether the numbers may be used."""
        by_age = int(self.days is not None and self.days > FRESH_DAYS)
        if self.stale or self.end is None:
            by_age = 2
        return LIGHTS[max(by_age, LIGHTS.index(self.best))]

    @property
    def ago(self) -> str:
        """Age in words with the reference day; empty without a clock."""
        if self.days is None or self.now is None:
            return ""
        days = round(self.days)
        return f" ({days:,} day{'s' * (days != 1)} before {self.now.date().isoformat()})"

    @property
    def sentence(self) -> str:
        """Newest day with jobs, with its age."""
        more = "; synthetic data of the demo" if self.made_up else ""
        return f"newest day with jobs {self.newest}{self.ago}{more}"
