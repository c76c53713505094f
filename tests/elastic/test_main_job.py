"""The four PanDA tasks through a cluster: the same buckets, factors and verdicts as embedded."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.settings import ClusterSettings
from tests.servers.server import Server

FILL = {"processing_type": "simul", "end_time": "2018-08-15T12:00:00Z"}
WINDOW = "2018-08-01/2018-09-01"


def after_the_job(session: Session, files: list[Path]) -> Session:
    session.ingest("panda", files, fill=FILL)
    session.run(WINDOW)
    return session


@pytest.fixture(scope="module")
def embedded(panda_files: list[Path]) -> Iterator[Session]:
    with esjobs.open("duckdb::memory:") as session:
        yield after_the_job(session, panda_files)


def rows(session: Session, what: str, *key: str) -> pd.DataFrame:
    frame = session.tables.read(what).to_pandas()
    return frame.set_index(list(key)).sort_index()


def test_the_main_job_gives_the_same_numbers(
    embedded: Session, server: Server, index_prefix: str, panda_files: list[Path]
) -> None:
    settings = Settings(store=server.url, cluster=ClusterSettings(prefix=index_prefix.rstrip("-")))
    with esjobs.open(settings=settings) as session:
        after_the_job(session, panda_files)
        parts = ("day", "task_id", "core_class", "queue", "processing_type")
        ours, theirs = rows(session, "buckets", *parts), rows(embedded, "buckets", *parts)
        assert (ours["n_jobs"] == theirs["n_jobs"]).all()
        for name in theirs.select_dtypes("number").columns:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-12, err_msg=name)
        key = ("level", "name", "processing_type", "method")
        ours, theirs = rows(session, "factors", *key), rows(embedded, "factors", *key)
        for name in ("k", "k_err", "k_raw"):
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, err_msg=name)
        flags = [rows(each, "flags", *key) for each in (session, embedded)]
        for name in ("verdict", "origin", "stable", "significant", "sentence"):
            pd.testing.assert_series_equal(flags[0][name], flags[1][name])
        found = (
            session.query(by=["queue"], metrics=["jobs", "efficiency"])
            .to_pandas()
            .set_index("queue")
            .sort_index()
        )
        expected = (
            embedded.query(by=["queue"], metrics=["jobs", "efficiency"])
            .to_pandas()
            .set_index("queue")
            .sort_index()
        )
        pd.testing.assert_frame_equal(found, expected, rtol=1e-12)
        assert session.run(WINDOW)[-1].run == embedded.run(WINDOW)[-1].run
        assert len(session.tables.factors().to_pandas()) == len(embedded.tables.factors().to_pandas())
