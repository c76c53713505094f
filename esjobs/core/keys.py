"""Derived keys of a question that are not fields of jobs."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from esjobs.core.fields import Field

Part = Literal["week", "month", "hour"]


@dataclass(frozen=True)
class TimePart:
    """Part of a time in UTC: Monday of its week, first day of its month, or hour of the day (0 to 23)."""

    name: str
    part: Part
    field: str = "end_time"

    @property
    def meaning(self) -> Field:
        """Field that describes the key in an answer."""
        if self.part == "hour":
            return Field(self.name, "integer", "h", "hour of the day, 0 to 23", groupable=True)
        return Field(self.name, "day", "UTC", f"first day of the {self.part}", groupable=True)


@dataclass(frozen=True)
class Bins:
    """Bin number of a number.

    ``edges`` ascend; bin 0 is below the first, bin ``n`` starts at edge ``n`` (from 1). Missing and NaN:
    null.
    """

    name: str
    field: str
    edges: tuple[float, ...]

    @property
    def meaning(self) -> Field:
        """Field of the number of a bin, counted from 0."""
        return Field(self.name, "integer", "", f"bin of {self.field}", groupable=True)


@dataclass(frozen=True)
class Named:
    """Texts under other names, several of them perhaps under one: sites of queues.

    ``names``: pairs of value and name, null included; unlisted values map to null.
    """

    name: str
    field: str
    names: tuple[tuple[str | None, str | None], ...]

    @property
    def meaning(self) -> Field:
        """Field of the name."""
        return Field(self.name, "keyword", "", f"name of {self.field}", groupable=True)


MadeKey = TimePart | Bins | Named


def beginning(part: Part, day: date) -> date:
    """Return the first day of the week or month of a day.

    >>> beginning("week", date(2025, 7, 2)).isoformat(), beginning("month", date(2025, 7, 2)).isoformat()
    ('2025-06-30', '2025-07-01')
    """
    return day - timedelta(days=day.weekday()) if part == "week" else day.replace(day=1)  # ISO weeks
