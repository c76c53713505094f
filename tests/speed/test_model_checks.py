"""What a run says where its model does not hold, and that it says nothing where it does."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.grids import Grid
from benchmarks.honesty import run_grid
from esjobs.core.window import Window
from esjobs.publish.publication import rows_table
from esjobs.records.names.sites import Sites
from esjobs.records.tasks.sums import Adder, WindowSums, with_sites
from esjobs.schema.jobs import BUCKETS
from esjobs.speed.model_checks import mean_power
from esjobs.speed.periods import cells_of

SMALL = Grid(sites=24, tasks=40, sites_per_task=12, types=1)
TESTS = ("p_time", "p_factor", "p_power")


def headline(found: dict[str, Any], table: str) -> pd.DataFrame:
    rows: pd.DataFrame = found[table]
    return rows[(rows.level == "queue") & (rows.processing_type == "all")]


def test_a_plain_grid_has_its_tests_and_no_doubt() -> None:
    _, found = run_grid(SMALL, 61_000, {})
    fit = headline(found, "fits").iloc[0]
    assert all(fit[name] > 0.001 for name in TESTS)
    assert found["fits"].model_doubt.isna().all()
    assert found["factors"].k_err_shift.isna().all()
    assert headline(found, "flags").proposed_corepower.notna().any()
    assert "does not hold" not in headline(found, "fit_summaries").sentence.iloc[0]


@pytest.mark.parametrize(
    ("changes", "test", "word"),
    [
        ({"days": 28, "task_drift": 0.6}, "p_time", "change with time"),
        ({"load": 0.4}, "p_factor", "some tasks are faster on some queues"),
        ({"wide_vectors": 0.4, "models": 4}, "p_factor", "some tasks are faster on some queues"),
        ({"power": 1.3, "lengths": 3.0}, "p_power", "to the power 1.2"),
        ({"power": 0.7, "lengths": 11.0}, "p_power", "to the power 0.6"),
    ],
)
def test_what_breaks_the_model_is_said_widens_errors_and_stops_proposals(
    changes: dict[str, Any], test: str, word: str
) -> None:
    truth, found = run_grid(SMALL.but(**changes), 61_001, {})
    fit = headline(found, "fits").iloc[0]
    assert fit[test] < 0.001
    assert word in fit.model_doubt
    factors = headline(found, "factors").set_index("name").reindex(truth.name).dropna(subset="k")
    assert (factors.k_err_shift > 0).any()
    assert (factors.k_err_int >= factors.k_err_shift * 0.999).all()
    total = np.hypot(factors.k_err_stat.to_numpy(float), factors.k_err_int.to_numpy(float))
    np.testing.assert_allclose(factors.k_err.to_numpy(float), total, rtol=1e-9)
    move = np.log(factors.k.to_numpy(float) / pd.Series(truth.k, truth.name)[factors.index].to_numpy())
    pulls = (move - np.median(move)) / (factors.k_err / factors.k).to_numpy(float)
    assert np.mean(np.abs(pulls) < 1.96) >= 0.9
    flags = headline(found, "flags").set_index("name").reindex(truth.name)
    assert flags.proposed_corepower.isna().all()
    assert not flags.confirmed[truth.wrong == 1].fillna(False).any()
    assert f"nothing is proposed: {fit.model_doubt}." in headline(found, "fit_summaries").sentence.iloc[0]


def test_a_deviation_is_seen_in_each_half_of_the_time() -> None:
    _, found = run_grid(SMALL.but(days=28, misdeclared=0.3), 61_002, {})
    flags = headline(found, "flags")
    checks = flags[flags.verdict == "deviates"].checks
    assert len(checks)
    assert checks.str.contains(r"each half of the time: .\d+ %").all()


DAYS = [date(2026, 3, 2) + timedelta(days=number) for number in range(28)]


def summed() -> WindowSums:
    """Buckets of two queues of a site and one of another; only the last runs in the last week."""
    adder = Adder(Window.parse("2026-03-02/2026-03-30"))
    for number, day in enumerate(DAYS):
        queues = ("A_MCORE", "A_SCORE", "B") if number < 21 else ("B",)
        rows = [
            {
                "day": day,
                "task_id": "t",
                "core_class": "single",
                "queue": queue,
                "processing_type": "simul",
                "n_jobs": 1,
                "events": 10.0 + number,
                "cpu_s": 100.0,
            }
            for queue in queues
        ]
        adder.add(rows_table(BUCKETS, rows).to_batches())
    return with_sites(adder.sums(), Sites())


def test_weeks_of_a_window_add_up_to_its_rows_of_queues_and_sites() -> None:
    sums = summed()
    for level, n_cells in (("queue", 10), ("site", 7)):
        rows = sums.levels[level]
        cells = cells_of(sums.periods[level], rows)
        assert cells is not None
        assert len(cells.row) == n_cells
        for column, values in (("n_jobs", cells.n_jobs), ("events", cells.events), ("cpu_s", cells.cpu_s)):
            np.testing.assert_allclose(np.bincount(cells.row, values), rows.sums[column])
        assert cells.period.max() == 3
    assert not len(sums.levels["cpu_model"])


def test_cells_of_some_rows_are_counted_anew() -> None:
    sums = summed()
    cells = cells_of(sums.periods["queue"], sums.levels["queue"])
    assert cells is not None
    names = sums.levels["queue"].name
    chosen = cells.of_rows(names.names[names.codes] == "B")
    assert chosen.row.tolist() == [0, 0, 0, 0]
    assert chosen.events.sum() == sum(10.0 + number for number in range(28))


def test_a_day_has_no_weeks() -> None:
    assert not Adder(Window.parse("2026-03-02/2026-03-03")).sums().periods


@pytest.mark.parametrize(("scatter", "power"), [(0.3, 0.5), (1.0, 0.8), (1.5, 0.5), (1.5, 1.15)])
def test_the_mean_of_a_power_of_events_is_right_and_positive(scatter: float, power: float) -> None:
    """To second order alone it is negative where lengths scatter by a factor of four."""
    events = np.exp(np.random.default_rng(1).normal(5.0, scatter, 400_000))
    spread = np.array([events.var() / events.mean() ** 2])
    expected = np.mean(events**power)
    assert mean_power(np.array([events.mean()]), spread, power)[0] == pytest.approx(expected, rel=0.01)
    if power == 0.5 and scatter > 1:
        assert 1 + 0.5 * power * (power - 1) * spread[0] < 0
