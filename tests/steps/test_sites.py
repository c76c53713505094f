"""sites behind queues: in runs, results and exports, by the one mapping."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from esjobs.api.session import Session
from esjobs.core.errors import UsageError
from tests.conftest import memory_session
from tests.messages import raised
from tests.steps.grids import grid_jobs, load

QUEUES = [f"FARM{number // 2:02}_{('MCORE', 'HIMEM')[number % 2]}" for number in range(24)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Twelve sites of two queues; an import gives the first queue of FARM00 to FARM01."""
    folder = tmp_path_factory.mktemp("sites")
    declared = np.linspace(9.0, 20.0, 24)
    with memory_session() as session:
        jobs = grid_jobs(np.random.default_rng(1), declared, declared, names=QUEUES, tasks=3)
        load(session, jobs, folder)
        table = folder / "sites.csv"
        table.write_text("queue,corepower,benchmark,site\nFARM00_MCORE,,HS06,FARM01\n")
        session.declared.import_values(table)
        values = folder / "values.csv"
        values.write_text("queue,corepower,benchmark,valid_from\nFARM00_MCORE,9,HS06,2018-01-01\n")
        session.declared.import_values(values)
        session.run()
        yield session


def sites_of(frame: pd.DataFrame) -> dict[str, str]:
    rows = frame[frame["level"] == "queue"]
    return dict(zip(rows["name"], rows["site"], strict=True))


def test_one_mapping_in_every_table(ran: Session) -> None:
    """The later import of a value alone names no site, and takes none away."""
    expected = {queue: queue.partition("_")[0] for queue in QUEUES} | {"FARM00_MCORE": "FARM01"}
    assert sites_of(ran.tables.factors().to_pandas()) == sites_of(ran.tables.flags().to_pandas()) == expected
    queried = ran.query(["queue", "site"]).to_pandas()
    assert dict(zip(queried["queue"], queried["site"], strict=True)) == expected
    factors = ran.tables.factors(level="queue", type="all", method="gamma").to_pandas().set_index("name")
    assert not factors.loc["FARM00_MCORE", "site_guessed"]
    assert factors["site_guessed"].sum() == 23


@pytest.mark.parametrize("what", ["factors", "flags", "corepower"])
def test_results_are_shown_by_site(ran: Session, what: str) -> None:
    shown = ran.tables.read(what, site="FARM01", level="queue").to_pandas()
    assert set(shown["name"]) >= {"FARM01_MCORE", "FARM01_HIMEM"}
    assert set(shown["site"]) == {"FARM01"}
    with raised(UsageError):
        ran.tables.read(what, site="FARM1").to_pandas()


def test_tables_without_sites_say_so(ran: Session) -> None:
    with raised(UsageError):
        ran.tables.lines(site="FARM01").to_pandas()


def test_a_run_is_restricted_by_site(ran: Session) -> None:
    run = ran.run(where=["site=FARM01", "site=FARM02"])[-1].run
    names = set(ran.tables.factors(run=run, level="queue").to_pandas()["name"])
    assert names == {"FARM00_MCORE", "FARM01_MCORE", "FARM01_HIMEM", "FARM02_MCORE", "FARM02_HIMEM"}
    by_queue = ran.run(where=[f"queue={name}" for name in names])[-1].run
    columns = ["name", "k", "k_err", "n_jobs"]
    left, right = (
        ran.tables.factors(run=item, level="queue").to_pandas()[columns] for item in (run, by_queue)
    )
    pd.testing.assert_frame_equal(left, right)
    assert ran.run(where=[f"queue={name}" for name in names])[-1].run == by_queue
    with raised(UsageError):
        ran.run(where="user=me")


def test_jobs_are_exported_by_site(ran: Session, tmp_path: Path) -> None:
    assert set(ran.jobs(where="site=FARM01").to_pandas()["queue"]) == {
        "FARM00_MCORE",
        "FARM01_MCORE",
        "FARM01_HIMEM",
    }
    assert ran.export.jobs(tmp_path / "jobs.csv", where="site=FARM00") == 75
