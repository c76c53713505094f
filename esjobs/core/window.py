"""Half-open intervals of UTC time."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from esjobs.core.errors import WindowError
from esjobs.core.periods import FORMS, calendar_period, is_period, is_relative, relative_period

_TIME = "expected one in UTC, such as 2018-08-01 or 2018-08-15T12:00:00Z"
_ACCEPTED = (
    "expected START/END (ISO dates or times in UTC, such as 2018-08-01/2018-09-01), a period, or two "
    "periods: " + FORMS
)


def parse_time(text: str) -> datetime:
    """Read an ISO 8601 date or time; without an offset it is UTC.

    >>> parse_time("2018-08-01").isoformat()
    '2018-08-01T00:00:00+00:00'
    >>> parse_time("2018-08-01T02:00:00+02:00").isoformat()
    '2018-08-01T00:00:00+00:00'
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise WindowError(f"'{text}' is not an ISO date or time; {_TIME}") from error
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise WindowError(f"'{text}' is outside the years 1 to 9999 in UTC; {_TIME}") from error


def format_time(moment: datetime) -> str:
    """Format a time as ISO 8601 with ``Z``; midnight as the date alone.

    >>> format_time(datetime(2018, 8, 1, tzinfo=UTC)), format_time(datetime(2018, 8, 1, 12, tzinfo=UTC))
    ('2018-08-01', '2018-08-01T12:00:00Z')
    """
    moment = moment.astimezone(UTC)
    if moment.time() == time(0):
        return moment.date().isoformat()
    return moment.replace(tzinfo=None).isoformat() + "Z"


@dataclass(frozen=True, order=True)
class Window:
    """Half-open interval [start, end) of UTC time.

    Raises :class:`WindowError` if it is empty or a time is naive.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise WindowError(
                f"a window requires times with a zone, not {self.start} and {self.end}; use UTC"
            )
        if self.end <= self.start:
            raise WindowError(
                f"the window {format_time(self.start)}/{format_time(self.end)} is empty; its end must be "
                "after its start"
            )

    @classmethod
    def parse(cls, text: str, now: datetime | None = None) -> "Window":
        """Read ``START/END`` or a period: ``2018-08``, ``2018-W31``, ``yesterday``, ``7d``.

        ``now``: reference of relative periods, which are refused without it. Two periods span from the start
        of the first to the end of the second: ``2018-06/2018-08``.

        >>> str(Window.parse("2018-08-01/2018-09-01")), str(Window.parse("2018-08"))
        ('2018-08-01/2018-09-01', '2018-08-01/2018-09-01')
        >>> str(Window.parse("yesterday", datetime(2018, 8, 2, 12, tzinfo=UTC)))
        '2018-08-01/2018-08-02'
        """
        start, slash, end = text.partition("/")
        if slash:
            # a day is its midnight here, as every time is a moment; a longer period is all of it
            first, last = (_period(side, now) if is_period(side) else None for side in (start, end))
            return cls(
                parse_time(start) if first is None else first.start,
                parse_time(end) if last is None else last.end,
            )
        period = _period(text, now)
        if period is None:
            raise WindowError(f"'{text}' is not a window; {_ACCEPTED}")
        return period

    @classmethod
    def of(cls, value: object, now: datetime | None = None) -> "Window":
        """Read a window, its text, a pair of times, a day or a pandas Period.

        Times without a zone are UTC. Raises :class:`WindowError` for anything else.

        >>> str(Window.of((date(2018, 8, 1), "2018-09-01")))
        '2018-08-01/2018-09-01'
        """
        if isinstance(value, Window):
            return value
        if isinstance(value, str):
            return cls.parse(value, now)
        period: Any = value
        # a pandas Period by its members: importing pandas to ask for the type takes half a second
        if hasattr(period, "start_time") and hasattr(period, "freq"):
            return cls.of((period.start_time, (period + 1).start_time))
        if isinstance(value, date):
            return cls._of_day(value)
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise WindowError(f"{value!r} is not a window; {_ACCEPTED}, or a pair of times")
        for part in value:
            if not isinstance(part, str | date):
                raise WindowError(f"{part!r} is not a time; expected a text, a date or a datetime")
        start, end = (parse_time(part if isinstance(part, str) else part.isoformat()) for part in value)
        return cls(start, end)

    @classmethod
    def _of_day(cls, day: date) -> "Window":
        moment = parse_time(day.isoformat())
        if moment.time() != time(0):
            raise WindowError(f"{day} is a single time; specify a day, or the start and end of a window")
        return cls.of_days(moment.date(), moment.date())

    @classmethod
    def of_days(cls, first: date, last: date) -> "Window":
        """Return the whole days from first to last, both included."""
        # Python has no midnight after it
        if last == date.max:
            raise WindowError(
                f"no window can end after {last}, the last possible day; correct the times of the jobs"
            )
        return cls(
            datetime.combine(first, time(0), UTC), datetime.combine(last + timedelta(days=1), time(0), UTC)
        )

    @property
    def days(self) -> int:
        """Length in whole days.

        >>> Window.parse("2018-08-01/2018-08-31").days
        30
        """
        return (self.end - self.start).days

    @property
    def whole_days(self) -> bool:
        """True if both ends are midnight."""
        return self.start.time() == time(0) and self.end.time() == time(0)

    def require_whole_days(self, step: str) -> "Window":
        """Return the window. Raises :class:`WindowError` naming the step if it is not whole days."""
        if not self.whole_days:
            raise WindowError(
                f"{step} requires whole days from midnight to midnight UTC, not {self}; only query and "
                "export accept other times"
            )
        return self

    @property
    def first_day(self) -> date:
        """First day that the window touches."""
        return self.start.astimezone(UTC).date()

    @property
    def last_day(self) -> date:
        """Last day that the window touches."""
        return (self.end - timedelta(microseconds=1)).astimezone(UTC).date()

    def __str__(self) -> str:
        return f"{format_time(self.start)}/{format_time(self.end)}"


def _period(text: str, now: datetime | None) -> Window | None:
    """Return the window of a period; None if the text is not one."""
    try:
        if (days := calendar_period(text.strip())) is not None:
            return Window.of_days(*days)
        if now is not None and (span := relative_period(text, now)) is not None:
            return Window(*span)
    except (ValueError, OverflowError) as error:
        raise WindowError(f"'{text}' is not in the calendar; {_ACCEPTED}") from error
    # below the entry points nobody reads the clock
    if now is None and is_relative(text):
        raise WindowError(
            f"'{text}' is relative to the present time, which is not available here; specify START/END"
        )
    return None
