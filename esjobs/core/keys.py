"""Keys of a question that are no fields of jobs: what a question makes of one, for this question only.

A question names them among its keys, and brings what they mean with it.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from esjobs.core.fields import Field

Part = Literal["week", "month", "hour"]


@dataclass(frozen=True)
class TimePart:
    """A part of a time, in UTC.

    ``week``: the Monday on which it begins; ``month``: its first day; ``hour``: hour of the day, 0 to 23.
    """

    name: str
    part: Part
    field: str = "end_time"

    @property
    def meaning(self) -> Field:
        """What an answer has under the name."""
        if self.part == "hour":
            return Field(self.name, "integer", "h", "hour of the day, 0 to 23", groupable=True)
        return Field(self.name, "day", "UTC", f"first day of the {self.part}", groupable=True)


@dataclass(frozen=True)
class Bins:
    """The number of the bin in which a number lies.

    ``edges``: ascending; bin 0 lies below the first one, bin ``n`` from edge ``n`` on (counted from 1), up to
    the next one. A missing value and NaN are in none: null.
    """

    name: str
    field: str
    edges: tuple[float, ...]

    @property
    def meaning(self) -> Field:
        """What an answer has under the name."""
        return Field(self.name, "integer", "", f"bin of {self.field}", groupable=True)


@dataclass(frozen=True)
class Named:
    """Texts under other names, several of them perhaps under one: sites of queues.

    ``names``: value, name; null is a value, too. What is not among the values has no name: null.
    """

    name: str
    field: str
    names: tuple[tuple[str | None, str | None], ...]

    @property
    def meaning(self) -> Field:
        """What an answer has under the name."""
        return Field(self.name, "keyword", "", f"name of {self.field}", groupable=True)


MadeKey = TimePart | Bins | Named


def beginning(part: Part, day: date) -> date:
    """The first day of the week or month of a day.

    >>> beginning("week", date(2025, 7, 2)).isoformat(), beginning("month", date(2025, 7, 2)).isoformat()
    ('2025-06-30', '2025-07-01')
    """
    return day - timedelta(days=day.weekday()) if part == "week" else day.replace(day=1)
