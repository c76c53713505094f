"""Windows: half-open, UTC, whole days where a step needs them."""

from datetime import UTC, date, datetime, timedelta, timezone

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.core.errors import WindowError
from esjobs.core.window import Window, format_time, parse_time
from tests.messages import raised

TIMES = st.datetimes(timezones=st.just(UTC))


@given(TIMES, TIMES)
def test_text_round_trip(a: datetime, b: datetime) -> None:
    if a == b:
        return
    window = Window(min(a, b), max(a, b))
    assert Window.parse(str(window)) == window


@pytest.mark.parametrize("text", ["", "2018-08-01/", "a/b", "2018-08-01/2018-08-01", "2018-08-02/2018-08-01"])
def test_malformed_or_empty_is_refused_in_one_line(text: str) -> None:
    with raised(WindowError):
        Window.parse(text)


def test_naive_times_are_refused() -> None:
    with raised(WindowError):
        Window(datetime(2018, 8, 1), datetime(2018, 8, 2))  # noqa: DTZ001


def test_offsets_become_utc() -> None:
    assert parse_time("2018-08-01T00:00:00+02:00") == datetime(2018, 7, 31, 22, tzinfo=UTC)
    berlin = timezone(timedelta(hours=2))
    assert format_time(datetime(2018, 8, 1, 2, tzinfo=berlin)) == "2018-08-01"


def test_days_touched() -> None:
    for text, first, last in (
        ("2018-08-01/2018-08-03", date(2018, 8, 1), date(2018, 8, 2)),
        ("2018-08-01T23:00/2018-08-02T01:00", date(2018, 8, 1), date(2018, 8, 2)),
        ("2018-08-01/2018-08-02", date(2018, 8, 1), date(2018, 8, 1)),
        ("0001-01-01/9999-12-31", date(1, 1, 1), date(9999, 12, 30)),
    ):
        window = Window.parse(text)
        assert (window.first_day, window.last_day) == (first, last)
    assert str(Window.of_days(date(2018, 8, 1), date(2018, 8, 1))) == "2018-08-01/2018-08-02"
    with raised(WindowError):
        Window.of_days(date(2018, 8, 1), date.max)


@pytest.mark.parametrize(
    "text",
    ["0001-01-01T00:00:00+14:00/2018-08-01", "2018-08-01/9999-12-31T23:59:59-12:00", "1/2", "10000-01-01/2"],
)
def test_times_that_no_calendar_has_are_refused(text: str) -> None:
    with pytest.raises(WindowError):
        Window.parse(text)


def test_whole_days() -> None:
    assert Window.parse("2018-08-01/2018-08-03").require_whole_days("fit").whole_days
    with raised(WindowError):
        Window.parse("2018-08-01T01:00/2018-08-03").require_whole_days("fit")


def test_of_accepts_what_python_offers() -> None:
    expected = Window.parse("2018-08-01/2018-09-01")
    assert Window.of(("2018-08-01", "2018-09-01")) == expected
    assert Window.of((date(2018, 8, 1), date(2018, 9, 1))) == expected
    assert Window.of(expected) is expected


def test_one_midnight_is_its_day_and_another_time_is_no_window() -> None:
    expected = Window.parse("2018-08-01/2018-08-02")
    for day in (date(2018, 8, 1), datetime(2018, 8, 1, tzinfo=UTC), pd.Timestamp("2018-08-01", tz="UTC")):
        assert Window.of(day) == expected
    with pytest.raises(WindowError):
        Window.of(datetime(2018, 8, 1, 12, tzinfo=UTC))
