"""Windows in words: what they mean, relative to a moment that is given."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.core.errors import WindowError
from esjobs.core.window import Window
from tests.messages import raised

NOW = datetime(2025, 7, 2, 15, 30, 12, 345678, tzinfo=UTC)
"""A Wednesday."""

MEANT = {
    "2025": "2025-01-01/2026-01-01",
    "2025-06": "2025-06-01/2025-07-01",
    "2024-02": "2024-02-01/2024-03-01",
    "2025-12": "2025-12-01/2026-01-01",
    "2025-W26": "2025-06-23/2025-06-30",
    "2025-w01": "2024-12-30/2025-01-06",
    "2020-W53": "2020-12-28/2021-01-04",
    "2025-06-30": "2025-06-30/2025-07-01",
    "today": "2025-07-02/2025-07-03",
    "yesterday": "2025-07-01/2025-07-02",
    "1d": "2025-07-01/2025-07-02",
    "7d": "2025-06-25/2025-07-02",
    "last-7d": "2025-06-25/2025-07-02",
    "Last 7 days": "2025-06-25/2025-07-02",
    "2w": "2025-06-18/2025-07-02",
    "24h": "2025-07-01T15:30:12Z/2025-07-02T15:30:12Z",
    "this-week": "2025-06-30/2025-07-07",
    "last_week": "2025-06-23/2025-06-30",
    "this-month": "2025-07-01/2025-08-01",
    "last-month": "2025-06-01/2025-07-01",
    "this-year": "2025-01-01/2026-01-01",
    "last-year": "2024-01-01/2025-01-01",
}


@pytest.mark.parametrize(("text", "window"), MEANT.items())
def test_words_mean(text: str, window: str) -> None:
    assert str(Window.parse(text, NOW)) == window
    assert str(Window.of(text, NOW)) == window


@pytest.mark.parametrize(
    "text",
    ["2025-13", "2025-W54", "2021-W53", "2025-02-30", "0000", "9999", "9999-12", "0d", "0h", "999999999w"],
)
def test_what_is_not_in_the_calendar_is_refused(text: str) -> None:
    with raised(WindowError):
        Window.parse(text, NOW)


@pytest.mark.parametrize(
    "text", ["", "7", "d", "-7d", "7 d ago", "next-week", "2025-6", "20250601", "٢٠٢٥", "7m"]
)
def test_what_is_no_window_names_the_forms(text: str) -> None:
    with raised(WindowError):
        Window.parse(text, NOW)


def test_words_need_a_clock() -> None:
    with raised(WindowError):
        Window.parse("7d")
    assert str(Window.parse("2025-06")) == "2025-06-01/2025-07-01"


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC)), st.integers(1, 200))  # noqa: DTZ001
def test_periods_hold_together(now: datetime, number: int) -> None:
    today = now.date()
    for unit in ("week", "month", "year"):
        this, last = (Window.parse(f"{which}-{unit}", now) for which in ("this", "last"))
        assert this.start <= now < this.end
        assert last.end == this.start
        assert this.whole_days
    last_days = Window.parse(f"{number}d", now)
    assert last_days.days == number
    assert last_days.last_day == today - timedelta(days=1)
    iso = today.isocalendar()
    assert Window.parse(f"{iso.year:04}-W{iso.week:02}", now) == Window.parse("this-week", now)
    assert Window.parse(str(today), now) == Window.of_days(today, today)
    assert isinstance(today, date)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2025-10/2025-12", "2025-10-01/2026-01-01"),
        ("2025-W26/2025-W27", "2025-06-23/2025-07-07"),
        ("2024/2025-06", "2024-01-01/2025-07-01"),
        ("2025-06-10/2025-06", "2025-06-10/2025-07-01"),
        ("2025-06/2025-06-10", "2025-06-01/2025-06-10"),
        ("last-month/yesterday", "2025-06-01/2025-07-02"),
        ("2025-06-01/2025-07-01", "2025-06-01/2025-07-01"),
    ],
)
def test_periods_on_both_sides_go_to_the_end_of_the_second(text: str, meant: str) -> None:
    assert str(Window.parse(text, NOW)) == meant


@pytest.mark.parametrize("text", ["2025-12/2025-10", "2025-13/2025-14", "today/", "a/b", "2025-06/x"])
def test_two_periods_that_are_no_window_are_refused(text: str) -> None:
    with pytest.raises(WindowError):
        Window.parse(text, NOW)
