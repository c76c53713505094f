"""What several contacts changed together: coverage of a planted mean, closed forms, what is left out."""

import math
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import esjobs
from esjobs.provisioning.matching import Change, Effect, effect
from esjobs.provisioning.overall import overall, shared_errors
from tests.cli.running import run
from tests.contract.jobs import START, job, put
from tests.messages import compare_text


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


@pytest.mark.parametrize(("n_names", "n_contacts"), [(20, 8), (60, 10), (100, 25), (200, 50)])
def test_where_nothing_changed_anything_a_verdict_is_as_rare_as_promised(
    n_names: int, n_contacts: int
) -> None:
    """200 made-up programmes each; their groups overlap, the more the more are contacted."""
    rng = np.random.default_rng(17)
    verdicts, apart = 0, 0
    for _ in range(200):
        level, hours = rng.normal(0.7, 0.1, n_names), rng.lognormal(3, 1, n_names)
        before, after = level + rng.normal(0, 0.05, (2, n_names))
        names = [Change(f"n{k}", before[k], after[k], hours[k]) for k in np.argsort(before)]
        chosen = {2 + int(k) for k in rng.choice(n_names // 2, n_contacts, replace=False)}
        others = [each for k, each in enumerate(names) if k not in chosen]
        effects = [found for k in chosen if (found := effect(names[k], others)) is not None]
        day, n = date(2026, 3, 1), len(effects)
        told = overall(effects, shared_errors(effects, ["user"] * n, [day] * n, 28))
        alone = overall(effects)
        assert told is not None
        assert alone is not None
        verdicts += told.verdict(high_is_good=True) != "no change seen"
        apart += alone.verdict(high_is_good=True) != "no change seen"
    assert verdicts <= 20  # 10 are promised at most; more than 20 come once in a thousand times
    if n_contacts == 50:
        assert apart > 20  # as if they were independent


def test_what_effects_share_is_the_covariance_of_their_predictions() -> None:
    """Against the hat matrix of one line through the same names."""
    rng = np.random.default_rng(2)
    x = rng.normal(0.7, 0.1, 20)
    y = 0.2 - 0.3 * x + rng.normal(0, 0.05, 20)
    others = [Change(f"n{k}", x[k], x[k] + y[k], 20.0) for k in range(20)]
    mine = [Change("a", 0.65, 0.7, 20.0), Change("b", 0.8, 0.7, 20.0), Change("c", 0.7, 0.7, 20.0)]
    effects = [found for each in mine if (found := effect(each, others)) is not None]
    days = [date(2026, 3, 1), date(2026, 3, 1), date(2026, 3, 15)]
    shared = shared_errors(effects, ["user"] * 3, days, 28)
    design = np.stack([np.ones(20), x], axis=1)
    residuals = y - design @ np.linalg.lstsq(design, y)[0]
    inverse = np.linalg.inv(design.T @ design)
    expected = residuals @ residuals / 18 * (np.array([1, 0.65]) @ inverse @ np.array([1, 0.8]))
    assert shared[0, 1] == pytest.approx(expected)
    assert shared[0, 2] / shared_errors(effects, ["user"] * 3, days[:1] * 3, 28)[0, 2] == pytest.approx(0.25)
    assert shared.diagonal().tolist() == [0, 0, 0]
    assert shared_errors(effects, ["user", "project", "user"], days, 28)[0, 1] == 0


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
        session.scores.compute()
        for user in ("u05", "u10"):
            session.provisioning.contact("user", user, on=date(2018, 8, 15), by="ann")
        assert session.provisioning.effects(days=14).details is None
        for user in ("u15", "u20"):
            session.provisioning.contact("user", user, on=date(2018, 8, 15), by="ann")
        told = session.provisioning.effects(days=14).details
    assert told is not None
    assert told.low < 0.2 < told.high
    shown = run("provision", "effects", "--days", "14", store=str(tmp_path / "jobs.duckdb"))
    assert shown.exit_code == 0, shown.stderr
    compare_text(shown.stderr)
