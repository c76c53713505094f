"""A store in memory with jobs that were judged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import esjobs
from esjobs import Settings
from tests.issues.made_jobs import START, busy, cores, made_series, put_records, put_series, record, series

CLUSTER = """
[[cluster]]
name = "emmy"
[[cluster.subcluster]]
name = "a"
cores = 4
smt = false
memory_b = 32e9
peak_mem_bw_b_s = 1e11
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[esjobs.Session]:
    described = tmp_path / "clusters.toml"
    described.write_text(CLUSTER)
    settings = Settings(clusters={"files": [described]})
    with esjobs.open("duckdb::memory:", settings=settings) as opened:
        yield opened


@pytest.fixture
def detected(session: esjobs.Session, tmp_path: Path) -> esjobs.Session:
    given = made_series()
    records = [record(job_id) for job_id in given]
    records += [
        record("short", wall_s=60, cpu_s=200.0, user="bob"),
        record("lazy", cpu_s=14400.0 * 4 * 0.3, user="bob"),
        record("serial", cpu_s=14400.0, user="bob"),
        record("nothing known", wall_s=None, start=START, nodes=None, cores=None, state=None, user="eve"),
        record("near", max_rss_b=99e9, requested_memory_b=100e9),
    ]
    put_records(session, tmp_path, records)
    put_series(session, given)
    session.issues.detect()
    return session


HOSTILE = '<script>alert("1")</script>\x1b[31m'
"""A name as somebody may give a job, a user or a node."""


@pytest.fixture
def hostile(session: esjobs.Session, tmp_path: Path) -> esjobs.Session:
    """A job whose names are traps, with issues that quote them."""
    put_records(session, tmp_path, [record(HOSTILE, user=HOSTILE, project="<img src=x onerror=1>")])
    odd = cores([busy(), busy(0)], node="<b>n1</b>")
    put_series(session, {HOSTILE: [*odd, series("x_<i>", "job", "", busy())]})
    session.issues.detect()
    return session
