"""A job that was hardly watched has no score of issues: no sample is no sign of no issue."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import esjobs
from tests.issues.made_jobs import START, N, put_records, put_series, record, series


@pytest.mark.parametrize(("every", "score"), [(1, 0.0), (12, None), (240, None)])
def test_a_thin_series_is_no_ground_for_a_score(tmp_path: Path, every: int, score: float | None) -> None:
    rates = np.full(N, np.nan)
    rates[::every] = 0.0
    with esjobs.open("duckdb::memory:") as session:
        put_records(session, tmp_path, [record("thin")])
        put_series(session, {"thin": [series("read_b_s", "node", "n1", rates)]})
        session.issues.detect()
        session.scores.compute()
        (row,) = session.tables.scores().rows.to_pylist()
    assert row["end_time"] == START + timedelta(hours=4)
    assert row["score_io"] == score
    assert row["score_io_reason"] == (None if score == 0 else "no monitoring data of input and output")
