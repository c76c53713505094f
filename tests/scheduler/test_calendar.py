"""Times of triggers: daylight saving, days of the week as cron counts them, expressions that mean nothing."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from esjobs.core.errors import SettingsError
from scheduler.calendar import Calendar
from tests.messages import raised


def times(calendar: Calendar, after: datetime, days: float) -> list[str]:
    return [
        moment.strftime("%m-%d %H:%M") for moment in calendar.between(after, after + timedelta(days=days))
    ]


def test_a_time_is_that_of_its_zone_before_and_after_a_change_of_the_clocks() -> None:
    calendar = Calendar("30 4 * * *", "Europe/Zurich")
    assert times(calendar, datetime(2025, 3, 28, 12, tzinfo=UTC), 3) == [
        *("03-29 03:30", "03-30 02:30", "03-31 02:30")
    ]
    assert times(calendar, datetime(2025, 10, 24, 12, tzinfo=UTC), 3) == [
        *("10-25 02:30", "10-26 03:30", "10-27 03:30")
    ]


def test_a_time_that_clocks_leave_out_comes_once_and_one_that_comes_twice_too() -> None:
    calendar = Calendar("30 2 * * *", "Europe/Zurich")
    assert times(calendar, datetime(2025, 3, 29, 12, tzinfo=UTC), 2) == ["03-30 01:30", "03-31 00:30"]
    assert times(calendar, datetime(2025, 10, 25, 12, tzinfo=UTC), 2) == ["10-26 00:30", "10-27 01:30"]


def test_every_night_of_a_year_has_one_trigger_wherever_the_clocks_change() -> None:
    for zone in ("Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"):
        for hour in range(0, 24, 3):
            calendar = Calendar(f"5 {hour} * * *", zone)
            fired = calendar.between(datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
            assert 364 <= len(fired) <= 366, (zone, hour)
            gaps = [later - earlier for earlier, later in pairwise(fired)]
            assert min(gaps) >= timedelta(hours=23), (zone, hour)
            assert max(gaps) <= timedelta(hours=25), (zone, hour)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ("0", ["Sun"]),
        ("7", ["Sun"]),
        ("1-3", ["Mon", "Tue", "Wed"]),
        ("sat", ["Sat"]),
        ("1,5", ["Mon", "Fri"]),
    ],
)
def test_days_of_the_week_count_from_sunday(days: str, expected: list[str]) -> None:
    calendar = Calendar(f"0 3 * * {days}")
    start = datetime(2025, 6, 1, 12, tzinfo=UTC)  # a Sunday
    fired = calendar.between(start, start + timedelta(days=7))
    order = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert sorted((each.strftime("%a") for each in fired), key=order.index) == expected


@pytest.mark.parametrize("cron", ["", "daily", "30 3 * *", "70 3 * * *", "30 3 * * funday", "30 3 * * 8"])
def test_an_expression_that_means_nothing_is_refused_in_one_line(cron: str) -> None:
    with raised(SettingsError):
        Calendar(cron)


def test_an_expression_without_a_time_has_no_next_one() -> None:
    assert Calendar("0 3 30 2 *").next_after(datetime(2025, 1, 1, tzinfo=UTC)) is None
