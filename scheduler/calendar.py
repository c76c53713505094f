"""Trigger times: cron expressions in a named time zone, daylight saving followed; pure functions."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger

from esjobs.core.errors import SettingsError

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_SHIFT = timedelta(hours=3)  # Clocks are never changed by more in a night
_MOST = 1_000  # Triggers that are listed: after a longer absence it only matters that there were some


@dataclass(frozen=True)
class Calendar:
    """Times of a cron expression (minute, hour, day, month, day of the week; 0 and 7 are Sunday) in a zone.

    A time that a clock change skips is taken where the clock continues; an hour that comes twice fires once.
    Raises :class:`SettingsError` for an invalid expression.

    >>> calendar = Calendar("30 3 * * *", "Europe/Zurich")
    >>> now = datetime(2025, 3, 29, 12, tzinfo=UTC)
    >>> calendar.next_after(now).isoformat()
    '2025-03-30T01:30:00+00:00'
    """

    cron: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        _rule(self.cron)

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first time after a moment, in UTC; None if there is none."""
        zone, rule = ZoneInfo(self.zone), _rule(self.cron)
        # The library steps through local days as if each had 24 hours, and leaves out times shortly after
        # midnight where clocks change; on a dial that never changes it does not.
        dial = moment.astimezone(zone).replace(tzinfo=UTC) - _LONGEST_SHIFT
        while (dial := rule.get_next_fire_time(None, dial)) is not None:
            # of a time that comes twice the first; one that clocks leave out is read as before the change
            found: datetime = dial.replace(tzinfo=zone, fold=0).astimezone(UTC)
            if found > moment:
                return found
            dial += timedelta(microseconds=1)
        return None

    def between(self, after: datetime, until: datetime) -> list[datetime]:
        """Return the times after a moment up to another, in order; the first thousand at most."""
        found: list[datetime] = []
        following = self.next_after(after)
        while following is not None and following <= until and len(found) < _MOST:
            found.append(following)
            following = self.next_after(following)
        return found


class CalendarTrigger(BaseTrigger):  # type: ignore[misc]  # the library has no types
    """Calendar as a trigger of the scheduler's library."""

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime | None:
        """Return the first time after the last one and after now."""
        return self._calendar.next_after(max(previous or now, now))


@cache
def _rule(cron: str) -> Any:
    *others, days = cron.split() or [""]
    # the library counts days of the week from Monday, cron from Sunday
    named = re.sub(r"(?<![/\d])[0-7](?!\d)", lambda found: _DAYS[int(found[0]) % 7], days)
    try:
        return CronTrigger.from_crontab(" ".join([*others, named]), UTC)
    except ValueError as error:
        raise SettingsError(
            f"nights.cron = '{cron}' is not a valid schedule: {error}; write minute, hour, day, month and "
            "weekday, such as 30 3 * * *"
        ) from error
