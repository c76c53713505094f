"""Age of results, and the answer to the question whether they may be used."""

from datetime import UTC, datetime, timedelta

import pytest

from esjobs.core.freshness import FRESH_DAYS, LIGHTS, STALE_DAYS, Freshness

END = datetime(2025, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "best", "light"),
    [
        (0, "Yes", "Yes"),
        (FRESH_DAYS, "Yes", "Yes"),
        (FRESH_DAYS + 0.1, "Yes", "With care"),
        (STALE_DAYS, "Yes", "With care"),
        (STALE_DAYS + 0.1, "Yes", "No"),
        (0, "With care", "With care"),
        (0, "No", "No"),
        (511, "With care", "No"),
        (-3, "Yes", "Yes"),
    ],
)
def test_age_and_fit_make_the_light(days: float, best: str, light: str) -> None:
    age = Freshness(END, END + timedelta(days=days), best)
    assert age.light == light
    assert age.stale is (days > STALE_DAYS)
    assert age.newest == "2025-06-30"


def test_an_unknown_age_is_not_young() -> None:
    assert Freshness(None, END).light == LIGHTS[2]
    assert Freshness(END).days is None
    assert Freshness(END).ago == ""
    assert not Freshness(END).stale
