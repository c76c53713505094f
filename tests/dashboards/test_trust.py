"""The light of the page of trust: what makes it yellow and red, in words."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from dashboards.panels.age import LIGHT
from dashboards.targets.vegalite.charts import from_rows
from tests.dashboards.drawn import svg, written

NOW = datetime.now(UTC)


def answered(
    status: str = "ok", *, age: int = 1, failed: date | None = None, valid: bool = True
) -> tuple[str, str]:
    """The word of the light and what it says of the reasons."""
    spec: dict[str, Any] = from_rows(LIGHT)
    fit: dict[str, Any] = {"run": "r", "status": status, "reason": None, "minuit_valid": valid}
    fit |= {"n_jobs": 1200, "n_names": 12, "jobs_share": 0.9}
    end = (NOW - timedelta(days=age)).isoformat()
    nights = [] if failed is None else [{"state": "failed", "failed_night": str(failed)}]
    runs, ledger = LIGHT.joins
    data = {"rows": [fit], runs.name: [{"run": "r", "data_end": end}], ledger.name: nights}
    picture = svg({**spec, "datasets": data})
    return written(picture, "word")[0], " ".join("".join(picture.itertext()).split())


@pytest.mark.parametrize(("age", "word"), [(1, "Yes"), (4, "With care"), (9, "No")])
def test_the_age_of_the_newest_day_decides(age: int, word: str) -> None:
    assert answered(age=age)[0] == word


def test_a_failed_fit_is_red_and_a_minimum_in_doubt_yellow() -> None:
    assert answered("failed")[0] == "No"
    assert answered(valid=False)[0] == "With care"


def test_a_night_that_failed_after_the_newest_day_is_told() -> None:
    word, said = answered(failed=NOW.date())
    assert word == "With care"
    assert f"night of {NOW.date()} failed" in said


def test_a_night_that_failed_before_days_that_are_in_the_numbers_is_history() -> None:
    word, said = answered(failed=NOW.date() - timedelta(days=5))
    assert word == "Yes"
    assert "night" not in said
