"""Stores that several tests of the command line look at, or begin with a copy of."""

import shutil
from pathlib import Path

import pytest

from tests.cli.running import job_file, run
from tests.conftest import built_once


def _fill(folder: Path) -> None:
    store = folder / "loaded.duckdb"
    assert run("ingest", "jobs", str(job_file(folder / "jobs.csv")), store=store).exit_code == 0
    shutil.copy(store, folder / "jobs.duckdb")
    assert run("run", store=folder / "jobs.duckdb").exit_code == 0


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``jobs.csv``, their store ``loaded.duckdb``, and ``jobs.duckdb`` with a run."""
    return built_once(tmp_path_factory, "cli", _fill)


@pytest.fixture(scope="module")
def filled(stores: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with jobs and a run."""
    return Path(shutil.copy(stores / "jobs.duckdb", tmp_path_factory.mktemp("cli")))


@pytest.fixture
def loaded(stores: Path, tmp_path: Path) -> Path:
    """A store with jobs."""
    return Path(shutil.copy(stores / "loaded.duckdb", tmp_path / "jobs.duckdb"))
