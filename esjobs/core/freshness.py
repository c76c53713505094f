"""Age of results: how long ago the newest day with jobs ended, and whether such numbers may be used."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

FRESH_DAYS, STALE_DAYS = 2, 7
"""Up to the first age of the newest day with jobs the light is green, beyond the second red."""

LIGHTS = ("Yes", "With care", "No")
"""Answers to the question whether the numbers may be used, the best first."""


@dataclass(frozen=True)
class Freshness:
    """Age of the results of a run.

    ``end``: the end of its newest day with jobs; None: not known. ``now``: the time at which its age is told;
    None: a page tells it when somebody looks. ``best``: the answer that fit and nights allow at any age.
    ``made_up``: the jobs are those of the demo.
    """

    end: datetime | None
    now: datetime | None = None
    best: str = LIGHTS[0]
    made_up: bool = False

    @property
    def newest(self) -> str:
        """The newest day with jobs."""
        return "unknown" if self.end is None else (self.end - timedelta(microseconds=1)).date().isoformat()

    @property
    def end_text(self) -> str:
        """The end as a script reads it; empty when it is not known."""
        return "" if self.end is None else self.end.astimezone(UTC).isoformat().replace("+00:00", "Z")

    @property
    def days(self) -> float | None:
        """Age in days; None when either time is not known.

        >>> Freshness(datetime(2025, 7, 1, tzinfo=UTC), datetime(2025, 7, 3, 12, tzinfo=UTC)).days
        2.5
        """
        if self.end is None or self.now is None:
            return None
        return max(0.0, (self.now - self.end).total_seconds() / 86_400)

    @property
    def stale(self) -> bool:
        """True if the numbers are too old to be sent."""
        return self.days is not None and self.days > STALE_DAYS

    @property
    def light(self) -> str:
        """Answer to the question whether the numbers may be used."""
        by_age = int(self.days is not None and self.days > FRESH_DAYS)
        if self.stale or self.end is None:
            by_age = 2
        return LIGHTS[max(by_age, LIGHTS.index(self.best))]

    @property
    def ago(self) -> str:
        """Age in words, with the day on which it was told; empty without a clock."""
        if self.days is None or self.now is None:
            return ""
        days = round(self.days)
        return f" ({days:,} day{'s' * (days != 1)} before {self.now.date().isoformat()})"

    @property
    def sentence(self) -> str:
        """The newest day with jobs, and its age."""
        more = "; synthetic data of the demo" if self.made_up else ""
        return f"newest day with jobs {self.newest}{self.ago}{more}"
