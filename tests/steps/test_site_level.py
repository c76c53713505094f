"""The level of sites: their jobs are those of all their queues together."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from esjobs.api.session import Session
from esjobs.core.words import LEVELS
from tests.conftest import memory_session
from tests.steps.grids import grid_jobs, load, site_names

FARMS = [f"FARM{number:02}" for number in range(14)]
QUEUES = [f"{farm}_{kind}" for farm in FARMS for kind in ("MCORE", "HIMEM")]
NUMBERS = ["k", "k_err", "k_raw", "n_units", "n_jobs", "n_tasks"]


def grid(names: list[str], seed: int = 3) -> pd.DataFrame:
    """Jobs of queues of which each two share a speed; the second queue of FARM00 declares twice as much."""
    rng = np.random.default_rng(seed)
    speed = np.repeat(np.linspace(9.0, 20.0, len(names) // 2), 2)
    declared = speed * np.exp(rng.normal(0, 0.03, len(speed)))
    declared[1] = 2.0 * declared[0]
    return grid_jobs(rng, speed, declared, names=names, tasks=6, interaction=0.02)


@pytest.fixture(scope="module")
def farms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with memory_session() as session:
        load(session, grid(QUEUES), tmp_path_factory.mktemp("farms"))
        session.run()
        session.flags.update()
        yield session


def shown(session: Session, what: str, level: str) -> pd.DataFrame:
    frame = session.tables.read(what, level=level, type="all", method="gamma").to_pandas()
    return frame.set_index("name").sort_index()


def test_a_site_is_fitted_as_one_queue_with_all_its_jobs(farms: Session, tmp_path: Path) -> None:
    """A second implementation: the same jobs under the names of their sites."""
    jobs = grid(QUEUES)
    jobs["queue"] = jobs["queue"].str.partition("_")[0]
    with memory_session() as session:
        load(session, jobs, tmp_path)
        session.run()
        expected = shown(session, "factors", "queue")
    found = shown(farms, "factors", "site")
    assert list(found.index) == FARMS
    np.testing.assert_allclose(found["k"], expected["k"], rtol=5e-3)
    assert list(found["n_jobs"]) == list(expected["n_jobs"]) == [300] * 14
    assert set(found["site"]) == set(FARMS)
    assert found["site_guessed"].all()


def test_a_site_of_one_queue_has_the_numbers_of_its_queue(tmp_path: Path) -> None:
    with memory_session() as session:
        load(session, grid(site_names(24)), tmp_path)
        session.run()
        for what in ("factors", "flags", "residuals"):
            queues, sites = (
                session.tables.read(what, level=level)
                .to_pandas()
                .drop(columns=["level", "rank"], errors="ignore")
                for level in ("queue", "site")
            )
            dropped = ["origin", "mix_k", "mix_k_err", "mix_share", "sentence", "finding"]
            # what a queue may inherit from its site is the site's own, and only queues declare
            dropped += ["advice", *(str(name) for name in queues if str(name).startswith("propos"))]
            queues, sites = (each.drop(columns=dropped, errors="ignore") for each in (queues, sites))
            key = [name for name in ("name", "processing_type", "method", "task_id") if name in queues]
            queues, sites = (each.sort_values(key, ignore_index=True) for each in (queues, sites))
            pd.testing.assert_frame_equal(queues, sites)


def test_every_table_of_names_has_the_level(farms: Session) -> None:
    for what in ("factors", "fits", "lines", "flags", "fit_summaries", "stability_checks", "residuals"):
        assert set(farms.tables.read(what).to_pandas()["level"]) >= {"queue", "site"}, what
    assert set(farms.tables.components().to_pandas()["level"]) == set(LEVELS[:2])
    summary = farms.tables.fit_summaries(level="site", type="all", method="gamma").to_pandas().iloc[0]
    assert summary["n_names"] == len(FARMS)
    assert "sites" in summary["sentence"]


def test_a_site_declares_the_mean_of_its_queues(farms: Session) -> None:
    queues, sites = shown(farms, "flags", "queue"), shown(farms, "flags", "site")
    seconds = farms.tables.buckets().to_pandas().groupby("queue")["core_s"].sum()
    for farm in FARMS:
        mine = queues[queues["site"] == farm]
        weights = seconds[mine.index]
        assert sites.loc[farm, "corepower"] == pytest.approx(
            float((mine["corepower"] * weights).sum() / weights.sum()), rel=1e-12
        )
    assert set(sites["origin"]) == {"mean"}
    assert "its queues declare" in str(sites.loc["FARM00", "sentence"])
    listed = farms.tables.read("corepower", level="site").to_pandas().set_index("name")
    assert set(listed["source"]) == {"queues"}
    assert list(listed["corepower"].sort_index()) == list(sites["corepower"])


def test_the_tests_of_sites_leave_those_of_queues_as_they_are(farms: Session) -> None:
    """Their p-values are of the same jobs once more: with them the q-values of queues would be others."""
    flags = farms.tables.flags(method="gamma").to_pandas()
    tested = flags[flags["q_value"].notna()]
    assert set(tested["level"]) == {"queue", "site"}
    # ranks of queues come first, whatever sites deviate
    assert flags[flags["level"] == "queue"]["rank"].max() < flags[flags["level"] == "site"]["rank"].min()


def test_flags_of_sites_are_kept_and_listed_only_when_asked_for(farms: Session) -> None:
    states = farms.tables.flag_states().to_pandas()
    assert {"FARM00"} == set(states[states["level"] == "site"]["name"]) & {"FARM00"}
    for level in (None, "site"):
        for state in ("open", "new"):
            names = set(farms.flags.open(state, level=level).to_pandas()["name"])
            assert names <= set(FARMS if level else QUEUES)


def test_an_acknowledgement_of_a_name_that_a_site_has_too_is_of_the_queue(tmp_path: Path) -> None:
    with memory_session() as session:
        for number, month in enumerate(("2018-08", "2018-07")):
            jobs = grid(site_names(24))
            jobs["job_id"] += month
            jobs["end_time"] -= pd.Timedelta(days=31 * number)
            load(session, jobs, tmp_path, month)
        session.run("2018-07-01/2018-08-01")
        session.run("2018-08-01/2018-09-01")
        session.flags.update(date(2018, 8, 31))
        states = session.tables.flag_states(type="all").to_pandas()
        assert set(states["level"]) == {"queue", "site"}
        name = states[states["state"] == "open"]["name"].iloc[0]
        session.flags.acknowledge(name, until=date(2018, 12, 1), by="ann")
        states = session.tables.flag_states(type="all", name=name).to_pandas().set_index("level")
        assert dict(states["state"]) == {"queue": "acknowledged", "site": "open"}
        assert set(session.flags.events(name).to_pandas()["level"]) == {"queue"}
        assert set(session.flags.events(name, level="site").to_pandas()["level"]) == {"site"}
