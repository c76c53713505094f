"""What several contacts changed together: coverage of a planted mean, closed forms, what is left out."""

import math
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import esjobs
from esjobs.provisioning.matching import Effect
from esjobs.provisioning.overall import overall
from tests.cli.running import run
from tests.contract.jobs import START, job, put


def found(effect: float, error: float, n: int = 20, *, extrapolated: bool = False) -> Effect:
    """An effect with the interval that an error makes."""
    reach = float(stats.t.ppf(0.975, n - 2)) * error
    return Effect(effect, 0.0, effect, effect - reach, effect + reach, n, extrapolated)


@pytest.mark.parametrize("n_contacts", [3, 10, 25])
@pytest.mark.parametrize("spread", [0.0, 0.05, 0.2])
def test_intervals_hold_the_planted_mean(n_contacts: int, spread: float) -> None:
    rng = np.random.default_rng(5)
    held, tried = 0, 800
    for _ in range(tried):
        effects = []
        for _ in range(n_contacts):
            n, error = int(rng.integers(8, 31)), 0.05 * math.exp(rng.normal(0, 0.5))
            seen = error * math.sqrt(rng.chisquare(n - 2) / (n - 2))
            effects.append(found(0.1 + spread * rng.normal() + error * rng.normal(), seen, n))
        told = overall(effects)
        assert told is not None
        held += told.low <= 0.1 <= told.high
    assert held / tried > 0.93


def test_equal_errors_give_the_plain_mean_and_its_scatter() -> None:
    y = np.array([0.1, 0.3, 0.2, 0.6])
    told = overall([found(each, 0.01) for each in y])
    assert told is not None
    assert told.effect == pytest.approx(y.mean())
    assert told.spread == pytest.approx(math.sqrt(y.var(ddof=1) - 0.01**2))
    reach = stats.t.ppf(0.975, 3) * y.std(ddof=1) / 2
    assert (told.low, told.high) == pytest.approx((y.mean() - reach, y.mean() + reach))


def test_effects_that_agree_too_well_do_not_narrow_the_interval() -> None:
    told = overall([found(0.1, 0.04), found(0.1, 0.04), found(0.1, 0.04), found(0.1, 0.04)])
    assert told is not None
    assert told.spread == 0
    assert told.high - told.effect == pytest.approx(stats.t.ppf(0.975, 3) * 0.04 / 2)
    assert told.verdict(high_is_good=True) == "improved"
    assert told.verdict(high_is_good=False) == "worse"


def test_who_cannot_be_compared_is_left_out() -> None:
    effects = [found(0.1, 0.01), found(0.12, 0.01)]
    assert overall(effects) is None
    assert overall([*effects, found(9.0, 0.01, extrapolated=True)]) is None
    told = overall([*effects, found(0.11, 0.01)])
    assert told is not None
    assert told.n_contacts == 3
    assert overall([found(0.1, 0.0)] * 3) is not None  # names that never scatter


def test_the_command_tells_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)

    def used(user: int, day: int) -> float:
        return 0.5 + user / 100 + (0.2 if user % 5 == 0 and day > 14 else 0) + float(rng.normal(0, 0.02))

    rows = [
        job(
            f"{user}-{day}",
            user=f"u{user:02}",
            end_time=START + timedelta(days=day, hours=3),
            wall_s=3600.0,
            cpu_s=28800.0 * used(user, day),
        )
        for user in range(30)
        for day in range(29)
    ]
    with esjobs.open(f"duckdb:{tmp_path}/jobs.duckdb") as session:
        put(session.store, "load", *rows)
        session.score()
        for user in ("u05", "u10"):
            session.provisioning.contact("user", user, on=date(2018, 8, 15), by="ann")
        assert session.provisioning.overall_effect(days=14) is None
        for user in ("u15", "u20"):
            session.provisioning.contact("user", user, on=date(2018, 8, 15), by="ann")
        told = session.provisioning.overall_effect(days=14)
    assert told is not None
    assert told.low < 0.2 < told.high
    shown = run("provision", "effects", "--days", "14", store=str(tmp_path / "jobs.duckdb"))
    assert shown.exit_code == 0, shown.stderr
    assert "note: 4 contacts together: improved, +0.1" in shown.stderr
