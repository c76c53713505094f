"""Mixed tasks: the real one, power and false alarms on toys, splitting by kind, bad input."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fitters import (
    Buckets,
    InputError,
    Mixtures,
    estimate_fixed_cost,
    find_mixtures,
    fit_speed_factors,
    fixed_cost_residuals,
)
from tests.fitters.job_toys import SHAPES, MixedJobs, make_mixed
from tests.fitters.panda_jobs import read_jobs, sum_jobs

Floats = NDArray[np.float64]
MIXED = "13743294 single"


@pytest.fixture(scope="module")
def jobs(panda_files: list[Path]) -> pd.DataFrame:
    """All four tasks; the kind is what the records do not say: less than a quarter of a second per event."""
    table = pd.concat([read_jobs(path) for path in panda_files], ignore_index=True)
    quick = (table["task"] == MIXED) & (table["cpu_s"] / table["events"] < 0.25)
    return table.assign(kind=np.where(quick, "merge", "simul"))


def decisions(found: Mixtures) -> dict[str, str]:
    """Of whole tasks."""
    table = found.tasks
    whole = [place for place, name in enumerate(table.name) if name not in table.name[:place].tolist()]
    return {str(table.name[place]): str(table.decision[place]) for place in whole}


EXPECTED = {
    "13332803 multi": "keep",
    "13332803 single": "keep",
    "13743294 multi": "keep",
    MIXED: "excluded",
    "14773217 multi": "keep",
    "15350577 single": "keep",
}


@pytest.mark.parametrize("corrected", [True, False])
def test_the_real_mixed_task_is_found_among_jobs(jobs: pd.DataFrame, corrected: bool) -> None:
    """Even with the start-up time left in, which makes the scatter of one good task twice as wide."""
    residual = np.log(jobs["cpu_s"].to_numpy() / jobs["events"].to_numpy())
    if corrected:
        costs = estimate_fixed_cost(**sum_jobs(jobs))
        residual = fixed_cost_residuals(costs, jobs["task"], jobs["events"], jobs["cpu_s"])
    found = find_mixtures(jobs["task"], jobs["unit"], residual)
    assert decisions(found) == EXPECTED
    row = found.tasks.row(MIXED)
    assert row["ratio"] == pytest.approx(9.6, abs=0.2)
    assert row["significance"] > 15
    assert row["sigma"] == pytest.approx(1.66, abs=0.05)
    assert row["reason"].startswith("mixed task: two modes")
    assert found.n_jobs_aside == row["n_jobs"] == 989
    assert set(found.decision[(jobs["task"] == MIXED).to_numpy()]) == {"excluded"}


def test_the_real_mixed_task_is_split_where_its_kinds_are_named(jobs: pd.DataFrame) -> None:
    """INFN-ROMA1 has 5 merge-like jobs: far too fast in one task, on the slow side among merge jobs."""
    residual = np.log(jobs["cpu_s"] / jobs["events"])
    found = find_mixtures(jobs["task"], jobs["unit"], residual, kind=jobs["kind"])
    assert decisions(found) == EXPECTED | {MIXED: "split"}
    parts = found.tasks.decision[found.tasks.name == MIXED]
    assert parts.tolist() == ["split", "keep", "keep"]
    assert found.n_jobs_aside == 0

    def factors(task: Any) -> pd.Series:
        sums = sum_jobs(jobs.assign(task=task))
        buckets = Buckets.from_columns(sums["task"], sums["unit"], cpu_s=sums["cpu_s"], events=sums["events"])
        units = fit_speed_factors(buckets, "gamma").units
        return pd.Series(units.k, units.name)

    mixed = factors(jobs["task"])
    assert mixed["INFN-ROMA1"] / mixed["RAL-LCG2_UCORE"] > 2.5
    split = np.where(found.decision == "split", jobs["task"] + "|" + jobs["kind"], jobs["task"])
    once_split = factors(split)
    assert 0.4 < once_split["INFN-ROMA1"] / once_split["RAL-LCG2_UCORE"] < 1.0


# toys


def rate(toys: MixedJobs) -> float:
    """Share of tasks that are not kept, with the start-up time estimated as it would be."""
    costs = estimate_fixed_cost(**toys.sums())
    residual = fixed_cost_residuals(costs, toys.task, toys.events, toys.cpu_s)
    found = decisions(find_mixtures(toys.task, toys.unit, residual))
    return float(np.mean([decision != "keep" for decision in found.values()]))


@pytest.mark.parametrize("shape", SHAPES)
def test_false_alarms_are_rare(shape: str) -> None:
    """Of tasks of one kind, whatever the shape of their scatter: here none of 300."""
    toys = make_mixed(np.random.default_rng(3), 300, 8, 300, 0.0, 1.0, shape=shape, sigma=0.25)
    assert rate(toys) == 0


@pytest.mark.parametrize(
    ("share", "ratio", "least"), [(0.2, 3.0, 0.95), (0.5, 3.0, 0.95), (0.2, 6.0, 1.0), (0.07, 6.0, 0.8)]
)
def test_power(share: float, ratio: float, least: float) -> None:
    toys = make_mixed(np.random.default_rng(5), 40, 10, 600, share, ratio, sigma=0.2)
    assert rate(toys) >= least


def test_kinds_that_separate_are_split_and_kinds_that_do_not_are_excluded() -> None:
    toys = make_mixed(np.random.default_rng(7), 1, 6, 800, 0.3, 6.0)
    residual = np.log(toys.cpu_s / (toys.events + 20))
    named = np.where(toys.kind == 1, "merge", "simul").astype(object)
    clean = find_mixtures(toys.task, toys.unit, residual, kind=named)
    assert clean.tasks.decision.tolist() == ["split", "keep", "keep"]
    assert clean.tasks.kind.tolist() == [None, "merge", "simul"]
    assert set(clean.decision) == {"split"}
    useless = find_mixtures(toys.task, toys.unit, residual, kind=np.arange(800) % 2)
    assert useless.tasks.decision.tolist() == ["excluded"]
    assert useless.n_jobs_aside == 800
    # one kind is known, the rest is still mixed: only the rest is lost
    partly = named.copy()
    partly[(toys.unit < 3) | (toys.kind == 0)] = None
    found = find_mixtures(toys.task, toys.unit, residual, kind=partly)
    assert found.tasks.decision.tolist() == ["split", "keep", "excluded"]
    assert found.n_jobs_aside == np.sum(partly == None)  # noqa: E711 - elementwise


def test_units_of_another_speed_are_no_mixture() -> None:
    """A unit that ran only the second kind looks like a fast one."""
    rng = np.random.default_rng(9)
    unit = np.repeat(["A", "B", "C"], 200)
    residual = rng.normal(0, 0.2, 600) + np.repeat([0.0, 0.5, 2.0], 200)
    assert find_mixtures(["t"] * 600, unit, residual).tasks.decision.tolist() == ["keep"]


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False), st.floats(-20, 20))
def test_order_names_and_scale_do_not_matter(random: Any, shift: float) -> None:
    toys = make_mixed(np.random.default_rng(13), 3, 5, 120, 0.3, 5.0)
    residual = np.log(toys.cpu_s / (toys.events + 20)) + shift * (toys.unit + 1)
    order = list(range(360))
    random.shuffle(order)
    before = find_mixtures(toys.task, toys.unit, residual - shift * (toys.unit + 1)).tasks
    after = find_mixtures(toys.task[order], -toys.unit[order], residual[order]).tasks
    assert after.decision.tolist() == before.decision.tolist()
    np.testing.assert_allclose(after.sigma, before.sigma, rtol=1e-6)
    np.testing.assert_allclose(after.significance, before.significance, rtol=0.05)


# bad input


def test_bad_rows_are_counted_and_have_no_decision() -> None:
    residual = [0.0, float("nan"), float("inf"), 0.0, 0.0, 1e300]
    task, unit = ["t", "t", "t", None, "t", "t"], ["A", "A", "A", "A", None, "A"]
    found = find_mixtures(task, unit, residual)
    assert found.decision.tolist() == ["keep", "", "", "", "", ""]
    assert dict(found.dropped) == {
        "task missing": 1,
        "unit missing": 1,
        "ln_residual not finite": 3,
    }
    assert found.n_rows == 6
    assert found.tasks.reason.tolist() == ["too few jobs to decide"]


def test_nothing_left_is_an_empty_table() -> None:
    found = find_mixtures(["t"], ["A"], [float("nan")])
    assert len(found.tasks) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: find_mixtures([], [], []),
        lambda: find_mixtures(["t"], ["A", "B"], [0.0]),
        lambda: find_mixtures(["t"], ["A"], ["none"]),
        lambda: find_mixtures(["t"], ["A"], [0.0], kind=["a", "b"]),
    ],
)
def test_columns_that_cannot_be_read_are_refused(call: Any) -> None:
    with pytest.raises(InputError):
        call()
