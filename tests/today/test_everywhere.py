"""Errors everywhere: one incident, sites that are expected to have it, days that are not learned from."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest

from esjobs.schema.today import EVERYWHERE, OWNERS, WAITED
from esjobs.today.days import Day, Followed, Remembered
from esjobs.today.settings import TodaySettings
from esjobs.today.sums import DAYS_BACK, Sums
from esjobs.today.watching import Watch

FIRST = date(2026, 3, 2)
SITES, TASKS, DAYS = 8, 6, 22
BAD, LAST = 16, 18
ERRORS = ("stage-in", "payload", "pilot")


def sums(seed: int, share: float = 0.1) -> Sums:
    """Jobs of sites and tasks that fail more or less often; on bad days a share of all fails to stage in."""
    rng = np.random.default_rng(seed)
    day, site, task = (
        each.ravel() for each in np.meshgrid(*map(np.arange, (DAYS, SITES, TASKS)), indexing="ij")
    )
    rate = np.array([0.004, 0.01, 0.02, 0.03, 0.05, 0.06])[task] * rng.uniform(0.7, 1.4, SITES)[site]
    jobs = rng.poisson(400.0, len(day))
    failed = rng.multinomial(rng.binomial(jobs, rate), [0.2, 0.5, 0.3])
    failed[:, 0] += rng.binomial(jobs - failed.sum(axis=1), share * ((day >= BAD) & (day <= LAST)))
    n = np.column_stack([jobs - failed.sum(axis=1), failed])
    used = n > 0
    outcome = np.tile(np.arange(4), (len(day), 1))[used]
    of = {name: np.repeat(each[:, None], 4, axis=1)[used] for name, each in (("site", site), ("task", task))}
    count = n[used].astype(float)
    finished, nothing = outcome == 0, np.zeros(len(outcome))
    core_s = count * 8 * 10_000
    codes = {**of, "queue": of["site"], "kind": of["task"] % 2, "outcome": outcome}
    names: dict[str, Any] = {
        "site": [f"S{number}" for number in range(SITES)],
        "queue": [f"Q{number}" for number in range(SITES)],
        "kind": ["simul", "pile"],
        "task": [f"{number}" for number in range(TASKS)],
        "outcome": ["finished", *ERRORS],
    }
    for owner in OWNERS:
        codes[owner], names[owner] = np.zeros(len(outcome), np.int64), [""]
    measured = np.where(finished, core_s, 0.0)
    return Sums(
        day=np.repeat(day[:, None], 4, axis=1)[used] + FIRST.toordinal(),
        codes=codes,
        names=names,
        n_jobs=count,
        core_s=core_s,
        n_measured=np.where(finished, count, 0.0),
        measured_core_s=measured,
        cpu_s=measured * 0.8 * np.exp(0.02 * rng.standard_normal(len(outcome))),
        **dict.fromkeys(("n_memory", "memory_b", "memory_cores", "n_unknown_cpu"), nothing),
        waited=np.zeros((len(outcome), len(WAITED))),
    )


@pytest.fixture(scope="module")
def nights() -> tuple[Watch, list[list[Any]], list[dict[str, Any]]]:
    """The watch after all nights, incidents of each night, and rows of ``today_days``."""
    made = sums(3)
    first = FIRST - timedelta(days=DAYS_BACK)
    watch = Watch(made.names["site"], first, FIRST + timedelta(days=DAYS), TodaySettings())
    incidents, rows = [], list[dict[str, Any]]()
    for number in range(DAYS):
        night = FIRST + timedelta(days=number)
        rows += watch.night(night, made.rows(made.day <= night.toordinal()), {})
        incidents.append(watch.incidents)
    return watch, incidents, rows


def test_an_error_that_fails_a_share_of_all_jobs_is_one_incident(nights: Any) -> None:
    _, incidents, _ = nights
    for number in range(BAD, LAST + 1):
        (one,) = incidents[number]
        assert (one.site, one.state, one.since) == (EVERYWHERE, "open", FIRST + timedelta(days=BAD))
        assert one.cause_key == '["failed", ["category", "stage-in"]]'
    assert [one.state for one in incidents[LAST + 2]] == ["closed"]


@pytest.mark.parametrize("metric", ["failed", "failed: stage-in", "failed: payload"])
def test_sites_are_expected_to_have_it_once_and_only_while_it_lasts(nights: Any, metric: str) -> None:
    _, _, rows = nights
    for number in range(12, DAYS):
        of_day = [
            row
            for row in rows
            if row["day"] == FIRST + timedelta(days=number)
            and row["metric"] == metric
            and row["site"] != EVERYWHERE
        ]
        assert len(of_day) == SITES
        observed, expected = (sum(row[f"{name}_sum"] for row in of_day) for name in ("observed", "expected"))
        assert expected == pytest.approx(observed, rel=0.3), number


@pytest.mark.parametrize(("ended", "bad_days"), [(0, 3), (2, 2)])
def test_its_days_count_as_usual_ones(ended: int, bad_days: int) -> None:
    made = sums(3)
    made = made.rows(made.day <= FIRST.toordinal() + LAST)
    error = Followed((("category", "stage-in"),), "failed", age=LAST - BAD + 1, ended=ended)
    day = Day(made, FIRST.toordinal() + LAST + 1, Remembered(), [error])
    stage_in = day.sums.codes["outcome"] == 1
    bad = stage_in & (day.age <= 3) & (day.age >= max(ended, 1))
    before = stage_in & (day.age > 3)
    usual = day.sums.n_jobs[before].sum() / (LAST + 1 - 3)
    assert day.failed[bad].sum() == pytest.approx(bad_days * usual, rel=0.1)
    others = ~bad & ~day.sums.finished
    assert (day.failed[others] == day.sums.n_jobs[others]).all()
