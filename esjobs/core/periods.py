"""Calendar periods: ``2025-W26``, ``2025-06``, ``yesterday``, ``7d``; UTC, ISO weeks."""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta

Span = tuple[datetime, datetime]
"""Start and end, half-open, UTC."""

FORMS = (
    "2025, 2025-06, 2025-W26, 2025-06-30, today, yesterday, 7d, 2w, 24h, this-week, last-week, this-month, "
    "last-month, this-year, last-year"
)
"""An example of every form, for messages."""

_YEAR = re.compile(r"\d{4}", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_WEEK = re.compile(r"(\d{4})-[wW](\d{2})", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# nine digits are beyond the calendar, and still quick to compute with
_LAST_SO_MANY = re.compile(r"(?:last-)?(\d{1,9})-?(h|hours?|d|days?|w|weeks?)", re.ASCII)
_ONE_DAY = timedelta(days=1)


def calendar_period(text: str) -> tuple[date, date] | None:
    """Return first and last day of a year, month, ISO week or day; None for another form.

    Raises :class:`ValueError` if it is not in the calendar, such as ``2025-13``.

    >>> [str(day) for day in calendar_period("2025-W26")], calendar_period("7d")
    (['2025-06-23', '2025-06-29'], None)
    """
    if _YEAR.fullmatch(text):
        return _year(date(int(text), 1, 1))
    if month := _MONTH.fullmatch(text):
        return _month(date(int(month[1]), int(month[2]), 1))
    if week := _WEEK.fullmatch(text):
        return _week(date.fromisocalendar(int(week[1]), int(week[2]), 1))
    if _DAY.fullmatch(text):
        return (day := date.fromisoformat(text)), day
    return None


def relative_period(text: str, now: datetime) -> Span | None:
    """Return start and end of a period relative to ``now``; None for another form.

    ``7d`` and ``2w`` end before today; ``this-week`` is the whole calendar week; ``24h`` ends now, to the
    second. Raises :class:`OverflowError` or :class:`ValueError` outside the calendar.

    >>> start, end = relative_period("7d", datetime(2025, 6, 30, 12, tzinfo=UTC))
    >>> start.date().isoformat(), end.date().isoformat()
    ('2025-06-23', '2025-06-30')
    """
    word = re.sub(r"[\s_-]+", "-", text.strip().lower())
    now = now.astimezone(UTC).replace(microsecond=0)
    today = now.date()
    if word in _NAMED:
        first, last = _NAMED[word](today)
        return _midnight(first), _midnight(last + _ONE_DAY)
    if counted := _LAST_SO_MANY.fullmatch(word):
        number, unit = int(counted[1]), counted[2][0]
        # hours end now, days at the last midnight: only whole days can be aggregated
        if unit == "h":
            return now - timedelta(hours=number), now
        return _midnight(today - timedelta(days=number * (7 if unit == "w" else 1))), _midnight(today)
    return None


def is_relative(text: str) -> bool:
    """True if a text names a period relative to now."""
    try:
        return relative_period(text, datetime(2000, 1, 1, tzinfo=UTC)) is not None
    except (OverflowError, ValueError):
        return True  # of this form, although outside of the calendar


def is_period(text: str) -> bool:
    """True if a text names a period other than a single day.

    >>> is_period("2025-06"), is_period("last-week"), is_period("2025-06-30")
    (True, True, False)
    """
    stripped = text.strip()
    named = any(form.fullmatch(stripped) for form in (_YEAR, _MONTH, _WEEK))
    return named or is_relative(text)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(0), UTC)


def _week(day: date) -> tuple[date, date]:
    first = day - timedelta(days=day.weekday())
    return first, first + timedelta(days=6)


def _month(day: date) -> tuple[date, date]:
    return day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1])


def _year(day: date) -> tuple[date, date]:
    return day.replace(month=1, day=1), day.replace(month=12, day=31)


_NAMED: dict[str, Callable[[date], tuple[date, date]]] = {
    "today": lambda day: (day, day),
    "yesterday": lambda day: (day - _ONE_DAY, day - _ONE_DAY),
    "this-week": _week,
    "last-week": lambda day: _week(day - timedelta(days=7)),
    "this-month": _month,
    "last-month": lambda day: _month(day.replace(day=1) - _ONE_DAY),
    "this-year": _year,
    "last-year": lambda day: _year(day.replace(month=1, day=1) - _ONE_DAY),
}
