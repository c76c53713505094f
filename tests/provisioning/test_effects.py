"""What contacts changed: intervals against planted effects, the prediction against a second way to it."""

from datetime import date, timedelta

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.core.errors import NoResultError, UsageError
from esjobs.provisioning.matching import Change, Effect, effect
from esjobs.provisioning.placebos import Scored, placebo_effects
from tests.contract.jobs import START, job, put
from tests.messages import raised


def population(rng: np.random.Generator, n: int, common: float = 0.0) -> list[Change]:
    """Names with a level of their own, seen twice with noise; all of them move by ``common``."""
    level = rng.normal(0.7, 0.1, n)
    before, after = level + rng.normal(0, 0.05, n), level + common + rng.normal(0, 0.05, n)
    hours = rng.lognormal(3, 1, n)
    return [Change(f"n{k}", before[k], after[k], hours[k]) for k in range(n)]


def contacted(rng: np.random.Generator, everyone: list[Change]) -> int:
    """Somebody who did badly: one of the lowest quarter, but not the lowest ones."""
    order = sorted(range(len(everyone)), key=lambda k: everyone[k].before)
    return order[int(rng.integers(4, len(everyone) // 4))]


@pytest.mark.parametrize(("planted", "common"), [(0.0, 0.0), (0.0, 0.1), (0.1, 0.0)])
def test_intervals_hold_a_planted_effect(planted: float, common: float) -> None:
    rng = np.random.default_rng(4)
    held, told, naive = 0, 0, 0.0
    for _ in range(500):
        everyone = population(rng, 60, common)
        chosen = everyone.pop(contacted(rng, everyone))
        mine = Change(chosen.name, chosen.before, chosen.after + planted, chosen.hours)
        found = effect(mine, everyone)
        assert found is not None
        told += 1
        held += found.low <= planted <= found.high
        naive += mine.after - mine.before - planted
    assert 0.92 <= held / told <= 0.98
    # what a plain difference would claim: who did badly does better without any doing
    assert naive / told > 0.01


def test_the_prediction_is_that_of_an_indicator() -> None:
    """With a column of its own for the contacted name, least squares give the effect and its error."""
    from scipy import stats

    rng = np.random.default_rng(9)
    others, mine = population(rng, 25), Change("x", 0.7, 0.9, 20.0)
    found = effect(mine, others)
    assert found is not None
    rows = [*others, mine]
    design = np.array([[1.0, each.before, each is mine] for each in rows])
    y = np.array([each.after - each.before for each in rows])
    solved, rest, _, _ = np.linalg.lstsq(design, y)
    freedom = len(rows) - 3
    error = np.sqrt(rest[0] / freedom * np.linalg.inv(design.T @ design)[2, 2])
    reach = stats.t.ppf(0.975, freedom) * error
    assert (found.effect, found.low, found.high) == pytest.approx(
        (solved[2], solved[2] - reach, solved[2] + reach)
    )


def test_who_is_further_out_than_all_others_needs_a_history() -> None:
    others = population(np.random.default_rng(1), 40)
    found = effect(Change("x", 0.05, 0.9, 20.0), others)
    assert found is not None
    assert found.verdict(high_is_good=True) == "too little history"
    assert effect(Change("x", 0.7, 0.9, 20.0), others[:7]) is None


def worst_of(rng: np.random.Generator, planted: float) -> dict[str, Effect]:
    """Effects on the 8 worst of 60 names in a world of bad months and changing programs, everybody + 0.04."""
    level, jobs = rng.uniform(0.35, 0.95, 60), np.maximum(5, rng.lognormal(3.5, 1, 60)).astype(int)
    months = []
    for _ in range(13):
        level = np.where(rng.random(60) < 0.15, rng.uniform(0.35, 0.95, 60), level)
        months.append(level * np.where(rng.random(60) < 0.15, 0.4, 1) + rng.normal(0, 0.45 / np.sqrt(jobs)))
    picked = np.argsort(months[-2])[:8]
    months[-1] += 0.04
    months[-1][picked] += planted
    scored = [{f"u{k}": Scored(float(month[k]), int(jobs[k])) for k in range(60)} for month in months]
    return placebo_effects(scored, [f"u{k}" for k in picked.tolist()], [()] * 13)


def test_the_worst_improve_by_chance_and_that_is_no_effect() -> None:
    rng = np.random.default_rng(5)
    found = [each for _ in range(100) for each in worst_of(rng, 0.0).values()]
    assert len(found) > 750
    assert sum(each.low > 0 for each in found) <= 0.03 * len(found)
    assert sum(each.low <= 0 <= each.high for each in found) >= 0.94 * len(found)
    assert np.mean([each.change for each in found]) > 0.1
    planted = [each.low > 0 for _ in range(20) for each in worst_of(rng, 0.6).values()]
    assert np.mean(planted) > 0.5


def test_a_short_history_has_no_placebos() -> None:
    month = {f"u{k}": Scored(0.5 + k / 100, 10) for k in range(30)}
    assert placebo_effects([month] * 3, ["u0"], [()] * 3) == {}
    assert placebo_effects([month] * 14, ["nobody"], [()] * 14) == {}


def test_from_jobs_to_a_verdict(session: Session) -> None:
    rng = np.random.default_rng(3)
    on = date(2018, 8, 15)
    rows = []
    for user in range(30):
        level = 0.5 + user / 100
        for day in range(29):
            gained = 0.3 if user == 5 and day > 14 else 0.0
            used = level + gained + rng.normal(0, 0.02)
            rows.append(
                job(
                    f"{user}-{day}",
                    user=f"u{user:02}",
                    end_time=START + timedelta(days=day, hours=3),
                    wall_s=3600.0,
                    cpu_s=3600.0 * 8 * used,
                )
            )
    put(session.store, "load", *rows)
    session.scores.compute()
    desk = session.provisioning
    with raised(NoResultError):
        desk.effects()
    desk.contact("user", "u05", on=on, by="ann", text="threads", acknowledged=on)
    desk.contact("user", "u12", on=on, by="ann")
    desk.contact("user", "nobody", on=on, by="ann")
    told = {row["user"]: row for row in desk.effects(days=14).rows.to_pylist()}
    assert {name: row["verdict"] for name, row in told.items()} == {
        "u05": "improved",
        "u12": "no change seen",
        "nobody": "too few jobs",
    }
    assert told["u05"]["effect_low"] < 0.3 < told["u05"]["effect_high"]
    assert told["u05"]["n_matched"] == 28  # neither of those contacted
    assert desk.effects("score_cpu").rows.to_pylist()[0]["verdict"] == "too few jobs"


def test_contacts_are_measures_of_an_index(session: Session) -> None:
    from esjobs.core.window import Window
    from esjobs.provisioning.measures import measured
    from esjobs.scores.rank import rank

    august = Window.parse("2018-08")
    assert measured(session.store, rank, "contacts_acknowledged", august).value is None
    desk = session.provisioning
    desk.contact("user", "a", on=date(2018, 8, 2), by="ann")
    desk.contact("project", "b", on=date(2018, 8, 2), by="ann", acknowledged=date(2018, 8, 3))
    desk.contact("project", "b", on=date(2018, 9, 2), by="ann")
    assert measured(session.store, rank, "contacts_acknowledged", august).value == 0.5
    assert "effect" in measured(session.store, rank, "contacts_improved", august).reason
    desk.contact("user", "a", on=date(2018, 8, 2), by="ann", acknowledged=date(2018, 8, 3))
    assert measured(session.store, rank, "contacts_acknowledged", august).value == 1.0
    assert session.tables.contacts().rows.num_rows == 3


def test_wrong_contacts_are_refused(session: Session) -> None:
    desk = session.provisioning
    on = date(2018, 8, 2)
    with raised(UsageError):
        desk.contact("site", "a", on=on, by="ann")
    with raised(UsageError):
        desk.contact("user", " ", on=on, by="ann")
    with raised(UsageError):
        desk.contact("user", "a", on=on, by="ann", acknowledged=date(2018, 8, 1))
    with raised(UsageError):
        desk.contact("user", "a\ud800", on=on, by="ann")
    with raised(UsageError):
        desk.effects(days=0)
