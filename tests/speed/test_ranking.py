"""Grades and ranks of a run: true order of planted speeds, names with few jobs, runs judged again."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.core.window import Window
from esjobs.records.demo.grid import LAST_DAY, Grid
from esjobs.records.names.cpu_models import resolve_names
from tests.conftest import memory_session

GRID = Grid(seed=3, jobs_per_day=1_500, n_queues=30, n_models=12)
WINDOW = Window.of_days(LAST_DAY - timedelta(days=9), LAST_DAY)
RANKED = ("grade", "rank_low", "rank_high", "k_likely", "k_likely_low", "k_likely_high")


@pytest.fixture(scope="module")
def ran() -> Session:
    session = memory_session()
    for number in range(10):
        session.store.put_jobs(GRID.jobs(WINDOW.first_day + timedelta(days=number)), f"day {number}")
    session.run(WINDOW)
    return session


def rows(session: Session, table: str, level: str, method: str = "gamma") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = session.tables.read(
        table, level=level, type="all", method=method
    ).rows.to_pylist()
    return found


@pytest.mark.parametrize("level", ["queue", "cpu_model"])
def test_pairs_of_different_grades_are_in_their_true_order(ran: Session, level: str) -> None:
    truth = GRID.truth()
    speed = {each.name: each.speed for each in truth.queues}
    models = resolve_names([cpu.name for cpu in truth.cpu_models])
    speed |= {str(name): cpu.speed for name, cpu in zip(models, truth.cpu_models, strict=True)}
    named = [row for row in rows(ran, "factors", level) if row["grade"] and row["name"] in speed]
    assert len({row["grade"] for row in named}) > 3
    assert {row["grade"] for row in named} <= set("ABCDEF")
    pairs = [(a, b) for a in named for b in named if a["grade"] < b["grade"]]
    wrong = np.mean([speed[a["name"]] < speed[b["name"]] for a, b in pairs])
    assert wrong <= 0.05
    assert len(pairs) > 0.6 * len(named) * (len(named) - 1) / 2


def test_a_rank_lies_in_its_interval_and_a_likely_factor_near_its_factor(ran: Session) -> None:
    ranked = [row for row in rows(ran, "factors", "queue") if row["rank_low"] is not None]
    order = sorted(ranked, key=lambda row: -row["k_likely"])
    held = [row["rank_low"] <= rank <= row["rank_high"] for rank, row in enumerate(order, 1)]
    assert np.mean(held) > 0.9
    for row in ranked:
        assert row["k_likely_low"] < row["k_likely"] < row["k_likely_high"]
        assert abs(np.log(row["k_likely"] / row["k"])) < 2 * row["k_err"] / row["k"]


def test_names_with_few_jobs_have_a_likely_factor_in_place_of_nothing(ran: Session) -> None:
    few = [row for row in rows(ran, "flags", "queue") if row["verdict"] == "too few" and row["k"]]
    assert few
    for row in few:
        assert row["n_jobs"] < 50
        assert row["k_likely_low"] < row["k_likely"] < row["k_likely_high"]
        assert "its speed factor is likely" in row["sentence"]


def test_other_methods_and_names_that_cannot_be_compared_are_not_ranked(ran: Session) -> None:
    paper = rows(ran, "factors", "queue", "paper")
    apart = [row for row in rows(ran, "factors", "queue") if row["component"] or row["k"] is None]
    assert paper
    assert apart
    assert all(row[name] is None for row in (*paper, *apart) for name in RANKED)


def test_flags_have_the_ranks_of_factors_also_when_judged_again(ran: Session) -> None:
    factors = {row["name"]: [row[name] for name in RANKED] for row in rows(ran, "factors", "queue")}
    before = rows(ran, "flags", "queue")
    assert all([row[name] for name in RANKED] == factors[row["name"]] for row in before)
    ran.speed.flag(WINDOW)
    assert rows(ran, "flags", "queue") == before
