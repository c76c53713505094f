"""A verdict survives what can be wrong, or says what it does not survive."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.core.arrow import table_schema
from esjobs.core.window import Window
from esjobs.core.words import VERDICTS, Verdict
from esjobs.publish.finding import made_last, read_results
from esjobs.publish.publication import rows_table
from esjobs.schema.speed import SPEED, STABILITY_CHECKS
from esjobs.speed.judging.stability import changes_of, unstable_names
from esjobs.speed.judging.verdicts import survives
from tests.conftest import memory_session
from tests.speed.test_verdicts import GOOD
from tests.steps.grids import Floats, grid_jobs, load

FIT = {"level": "queue", "processing_type": "all", "method": "gamma"}


def variants(*rows: dict[str, object]) -> pa.Table:
    return rows_table(STABILITY_CHECKS, [{**FIT, "name": "Q", **row} for row in rows])


def under(verdict: Verdict, *rows: dict[str, object]) -> str | None:
    changes = changes_of(variants(*rows))[tuple(FIT.values())]  # type: ignore[index]
    return unstable_names([(GOOD, verdict)], changes, 0.2).get("Q")


def test_the_first_change_that_a_verdict_does_not_survive_is_named() -> None:
    """k is 1.5 at a deviation of +50 %: half the limit is left at k = 1.1."""
    kept = {"change": "objective", "k_low": 1.12, "low_change": "objective paper", "k_high": 1.12}
    lost = {"change": "task left out", "k_low": 1.4, "k_high": 1.6, "disconnecting_task": "without task 7"}
    moved = {"change": "single type", "k_low": 1.05, "low_change": "evgen only", "k_high": 9.0}
    assert under("deviates", kept) is None
    assert under("deviates", lost, moved, kept) == "evgen only: +5.0 %"
    assert under("deviates", kept, lost) == "without task 7: no factor"
    assert under("undecided", lost, moved) is None
    assert changes_of(pa.Table.from_batches([], schema=table_schema(STABILITY_CHECKS))) == {}


@given(st.sampled_from(VERDICTS), st.floats(0.21, 3), st.floats(-0.9, 3))
def test_of_a_deviation_sign_and_half_the_limit_survive(
    verdict: Verdict, deviation: float, moved: float
) -> None:
    assert survives("deviates", deviation, moved, 0.2) == (moved > 0.1)
    assert survives("deviates", -deviation, -moved, 0.2) == (moved > 0.1)
    assert survives("ok", 0.05, moved, 0.2) == (abs(moved) < 0.2)
    if verdict not in ("deviates", "ok"):
        assert survives(verdict, deviation, moved, 0.2)


@pytest.fixture
def flags(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """SITE01 is off in every task, SITE02 for most tasks, all of one type: 1.7x in evgen, honest in simul."""
    rng, declared = np.random.default_rng(11), np.full(14, 10.5) + np.linspace(0, 3, 14)
    slow = declared.copy()
    slow[1] /= 2.0

    def jobs(speed: Floats, kind: str, tasks: int) -> pd.DataFrame:
        scatter = {"interaction": 0.2, "tasks": tasks}
        return grid_jobs(rng, speed, declared, processing_type=kind, prefix=kind, **scatter)  # type: ignore[arg-type]

    other = slow.copy()
    other[2] *= 1.7
    with memory_session() as session:
        load(session, jobs(slow, "simul", 8), tmp_path_factory.mktemp("simul"))
        load(session, jobs(other, "evgen", 16), tmp_path_factory.mktemp("evgen"), "evgen")
        session.run()
        return session.tables.flags(level="queue", type="all").to_pandas()


def test_a_site_that_is_off_in_one_type_only_is_not_confirmed(flags: pd.DataFrame) -> None:
    headline = flags[flags["method"] == "gamma"].set_index("name")
    said = headline[["verdict", "stable", "confirmed"]].to_dict("index")
    assert list(said["SITE01"].values()) == ["deviates", True, True]
    assert list(said["SITE02"].values()) == ["deviates", False, False]
    under = str(headline.loc["SITE02", "unstable_under"])
    assert under.startswith("simul only: ")
    assert f"the verdict changes in a stability check ({under})" in str(headline.loc["SITE02", "sentence"])


def test_only_the_headline_is_tested_for_stability(flags: pd.DataFrame) -> None:
    other = flags[flags["method"] == "paper"]
    assert other["stable"].isna().all()
    assert not other["confirmed"].any()
    assert other["proposed_corepower"].isna().all()


def test_a_type_whose_buckets_were_all_rejected_is_not_out_of_sight(tmp_path: Path) -> None:
    """SITE02 is 1.6 times as fast in evgen: its buckets of simul are strays there, and still contradict."""
    rng, declared = np.random.default_rng(3), np.full(14, 10.5) + np.linspace(0, 3, 14)
    other = declared.copy()
    other[2] *= 1.6
    with memory_session() as session:
        for speed, kind, tasks in ((declared, "simul", 4), (other, "evgen", 8)):
            jobs = grid_jobs(
                rng, speed, declared, processing_type=kind, prefix=kind, interaction=0.04, tasks=tasks
            )
            load(session, jobs, tmp_path, kind)
        session.run()
        run = made_last(session.store, SPEED, "fit", Window.parse("2018-08-10/2018-08-12"))
        rows = read_results(session.store, STABILITY_CHECKS, run).to_pylist()
    (found,) = [
        row
        for row in rows
        if (row["level"], row["processing_type"], row["name"], row["change"])
        == ("queue", "all", "SITE02", "single type")
    ]
    assert (found["low_change"], found["high_change"], found["n_variants"]) == ("simul only", "evgen only", 2)
    assert found["k_high"] / found["k_low"] == pytest.approx(1.6, rel=0.1)
