"""A job that was hardly watched has no score of issues: no sample is no sign of no issue."""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import esjobs
from esjobs.issues.detectors.measured import REASONS, Reason
from esjobs.schema.issues import NOTHING_FOUND
from tests.issues.made_jobs import START, N, put_records, put_series, record, series


@pytest.mark.parametrize(("every", "score"), [(1, 0.0), (12, None), (240, None)])
def test_a_thin_series_is_no_ground_for_a_score(tmp_path: Path, every: int, score: float | None) -> None:
    rates = np.full(N, np.nan)
    rates[::every] = 0.0
    with esjobs.open("duckdb::memory:") as session:
        put_records(session, tmp_path, [record("thin")])
        put_series(session, {"thin": [series("metadata_ops_s", "node", "n1", rates)]})
        session.issues.detect()
        session.scores.compute()
        (row,) = session.tables.scores().rows.to_pylist()
    assert row["end_time"] == START + timedelta(hours=4)
    assert row["score_io"] == score
    assert row["score_io_reason"] == (
        None if score == 0 else "no detector of input and output could judge it"
    )


def test_reasons_of_jobs_that_were_observed_are_those_of_the_detectors() -> None:
    assert (REASONS[Reason.FLAT], REASONS[Reason.NEVER_BUSY]) == NOTHING_FOUND


def test_series_in_which_no_detector_finds_anything_make_no_score(tmp_path: Path) -> None:
    with esjobs.open("duckdb::memory:") as session:
        put_records(session, tmp_path, [record("one")])
        put_series(session, {"one": [series("net_b_s", "node", "n1", np.full(N, 1e6))]})
        session.issues.detect()
        session.scores.compute()
        (row,) = session.tables.scores().rows.to_pylist()
    assert (row["score_mpi"], row["score_io"], row["issues_variant"]) == (None, None, None)
    assert row["score_mpi_reason"] == "communication was not measured (TALP)"


def test_activity_of_gpus_makes_their_scores(tmp_path: Path) -> None:
    active, memory = np.full(N, 0.25), np.full(N, 0.5)
    thin = np.full(N, np.nan)
    thin[0] = 0.25
    with esjobs.open("duckdb::memory:") as session:
        put_records(session, tmp_path, [record(name, gpus=1) for name in ("full", "thin")])
        put_series(
            session,
            {
                "full": [
                    series("gpu_sm_active", "accelerator", "n1/0", active),
                    series("gpu_mem_active", "accelerator", "n1/0", memory),
                ],
                "thin": [series("gpu_sm_active", "accelerator", "n1/0", thin)],
            },
        )
        session.issues.detect()
        session.scores.compute()
        rows = {row["job_id"]: row for row in session.tables.scores().rows.to_pylist()}
    assert [rows["full"][name] for name in ("score_gpu", "score_gpumem", "gpu_variant")] == [
        75,
        50,
        "activity",
    ]
    assert [rows["thin"][name] for name in ("score_gpu", "gpu_variant")] == [None, None]
    assert rows["thin"]["score_gpu_reason"] == "no counters and no activity of GPUs"
