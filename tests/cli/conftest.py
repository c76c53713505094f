"""A store that several tests of the command line look at."""

from pathlib import Path

import pytest

from tests.cli.running import job_file, run


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    store = folder / "jobs.duckdb"
    assert run("ingest", "jobs", str(job_file(folder / "jobs.csv")), store=store).exit_code == 0
    assert run("run", store=store).exit_code == 0
    return store
