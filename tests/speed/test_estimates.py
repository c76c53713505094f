"""What a queue would declare: one value with one interval, as wide as it says and the same everywhere."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from esjobs.records.declared.origin import Declared
from esjobs.records.tasks.sums import Adder
from esjobs.speed.factors import solve
from esjobs.speed.fit_input import FitInputs
from esjobs.speed.judging.flag import judge
from esjobs.speed.judging.verdicts import Estimate
from esjobs.speed.line import compare_with_declared
from esjobs.speed.settings import FitSettings
from tests.conftest import memory_session
from tests.steps.grids import grid_jobs, load, site_names
from tests.steps.test_toys import Toy, toy

N_TOYS = 100
SETTINGS = FitSettings()
SCATTER = 0.05
"""Of declarations about what the queues deliver, in ln."""


def estimates(made: Toy, rng: np.random.Generator) -> Iterator[tuple[Estimate, float]]:
    """The estimate of every queue of a toy, and what it would declare if it knew."""
    adder = Adder()
    adder.add(made.buckets.to_batches())
    inputs = FitInputs(adder.sums(), SETTINGS.min_bucket_jobs)
    factors = solve(inputs.of("queue", "all"), "gamma", SETTINGS.min_bucket_jobs).factors
    truth = dict(zip(site_names(len(made.speed)), 11.0 * made.speed, strict=True))
    declared = {
        name: Declared(name, value * np.exp(rng.normal(0, SCATTER)), "HS06", "own", name, site_guessed=True)
        for name, value in truth.items()
    }
    compared = compare_with_declared(factors, declared, 0.2)
    for item in judge(factors, compared, declared, SETTINGS):
        assert item.evidence.estimate is not None
        yield item.evidence.estimate, truth[item.evidence.name]


@pytest.mark.parametrize(("interaction", "tasks"), [(0.06, 20), (0.15, 14)])
def test_intervals_hold_the_true_value_as_often_as_they_say(interaction: float, tasks: int) -> None:
    """68, 90 and 95 % of 2000 intervals; those of one toy share its line, which widens the limits."""
    rng = np.random.default_rng(90)
    found = [
        pair
        for _ in range(N_TOYS)
        for pair in estimates(toy(rng, 18, tasks, interaction=interaction, per_task=9), rng)
    ]
    pull = np.array([np.log(each.corepower / truth) / (each.error / each.corepower) for each, truth in found])
    for level in (0.68, 0.90, 0.95):
        inside = np.abs(pull) < stats.norm.ppf(0.5 + level / 2)
        assert inside.mean() == pytest.approx(level, abs=0.035), level
    assert np.mean([each.low < truth < each.high for each, truth in found]) == pytest.approx(0.90, abs=0.025)


def wrong_alike(rng: np.random.Generator, share: float, factor: float, names: list[str]) -> pd.DataFrame:
    """Jobs of queues of which so many declare too much by the same factor, or one where the share is 0."""
    speed = 11.0 * np.exp(rng.normal(0, 0.2, len(names)))
    declared = speed * np.exp(rng.normal(0, SCATTER, len(names)))
    declared[: max(1, round(share * len(names)))] *= factor
    return grid_jobs(rng, speed, declared, names=names, tasks=8, interaction=0.08)


@pytest.mark.parametrize("share", [0.0, 0.20, 0.48])
def test_nobody_is_accused_where_declarations_fall_into_two_groups(share: float, tmp_path: Path) -> None:
    """Of 40 queues one overstates, or 8, or 19: then no line can tell who is wrong, and this is said."""
    names = site_names(40)
    with memory_session() as session:
        load(session, wrong_alike(np.random.default_rng(6), share, 1.6, names), tmp_path)
        session.run()
        flags = session.tables.flags(level="queue", type="all", method="gamma").to_pandas().set_index("name")
        said = session.tables.fit_summaries(level="queue", type="all", method="gamma").to_pandas().iloc[0]
        line = session.tables.lines(level="queue", type="all", method="gamma").to_pandas().iloc[0]
    count = max(1, round(share * 40))
    if share < 0.4:
        confirmed = flags.index[flags["confirmed"]]
        assert set(confirmed) <= set(names[:count])
        assert len(confirmed) >= 0.9 * count
        assert (flags.loc[confirmed, "p_off"] > 0.95).all()
        assert (flags["p_off"].drop(names[:count]) < 0.05).all()
        assert pd.isna(line["groups_ratio"])
        return
    assert not flags["confirmed"].any()
    assert flags["proposed_corepower"].isna().all()
    assert max(line["groups_ratio"], 1 / line["groups_ratio"]) == pytest.approx(1.6, rel=0.1)
    assert said["sentence"].startswith("Declarations fall into two groups: ")
    assert f"{count} sites" in said["sentence"] or f"{count} others" in said["sentence"]
    assert "Either they are right" in said["sentence"]
    assert said["n_confirmed"] == 0
    for candidate in flags.loc[flags["verdict"] == "deviates", "sentence"]:
        assert "two groups disagree, and either may declare wrong" in candidate


def test_everyone_with_evidence_has_an_estimate_the_same_in_table_and_sentence(tmp_path: Path) -> None:
    """Also queues that declare nothing, a default, or what they deliver; not one of few jobs."""
    rng, names = np.random.default_rng(7), site_names(16)
    speed = 11.0 * np.exp(rng.normal(0, 0.2, 16))
    declared = speed * np.exp(rng.normal(0, SCATTER, 16))
    declared[0], declared[1] = 10.0, speed[1] * 2
    jobs = grid_jobs(rng, speed, declared, names=names, tasks=8, interaction=0.05)
    jobs.loc[jobs["queue"] == "SITE02", "hs06_s"] = np.nan
    few = (jobs["queue"] == "SITE03") & (jobs["task_id"] != "task1")
    with memory_session() as session:
        load(session, jobs[~few], tmp_path)
        session.run()
        flags = (
            session.tables.flags(level="queue", type="all", method="gamma")
            .to_pandas()
            .set_index("name")
            .sort_index()
        )
    assert flags["verdict"].loc["SITE00":"SITE03"].tolist() == [
        *("undeclared", "deviates", "undeclared", "too few")
    ]
    assert flags["origin"].loc["SITE00":"SITE02"].tolist() == ["default", "own", "none"]
    known = flags.drop(index="SITE03")
    assert flags["estimate"].isna().tolist() == [name == "SITE03" for name in names]
    truth = pd.Series(speed, names)[known.index]
    assert (np.abs(np.log(known["estimate"] / truth)) < 0.15).all()
    assert ((known["estimate_low"] < known["estimate"]) & (known["estimate"] < known["estimate_high"])).all()
    assert set(known["estimate_level"]) == {0.90}
    for row in known.to_dict("records"):
        assert f"as fast as {row['estimate']:.1f} HS06 per core" in row["sentence"]
        assert f": {row['estimate_low']:.1f} to {row['estimate_high']:.1f})" in row["sentence"]
    only = known[known["proposed_corepower"].notna()]
    assert only.index.tolist() == ["SITE01"]
    np.testing.assert_array_equal(only["proposed_corepower"], only["estimate"])
    assert known["deviation"].notna().sum() == 13
    declared_ones = known[known["deviation"].notna()]
    np.testing.assert_allclose(
        declared_ones["estimate"], declared_ones["corepower"] * (1 + declared_ones["deviation"])
    )
