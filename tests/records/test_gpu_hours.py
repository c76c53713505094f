"""GPU hours and measured energy by group, against plain arithmetic; names of jobs are hidden in exports."""

from datetime import UTC, datetime

import pandas as pd
import pytest

from esjobs.api.session import Session

END = datetime(2025, 6, 1, 12, tzinfo=UTC)
JOBS = pd.DataFrame(
    {
        "job_id": ["1", "2", "3", "4"],
        "queue": ["gpu", "gpu", "cpu", "gpu"],
        "end_time": END,
        "wall_s": [3600.0, 7200.0, 3600.0, None],
        "gpus": [4, 1, None, 2],
        "energy_j": [7.2e6, None, 3.6e6, 1.8e6],
        "events": [100, 100, 100, None],
        "user": ["ann", "ann", "bob", "bob"],
        "job_name": ["ann-secret", "relax", None, "train"],
    }
)


@pytest.fixture
def filled(session: Session) -> Session:
    session.ingest("jobs", JOBS)
    return session


def test_hours_and_energy(filled: Session) -> None:
    rows = filled.query(by=["queue"], metrics=["gpu_h", "energy_kwh", "j_per_event"]).rows.to_pylist()
    found = {row["queue"]: (row["gpu_h"], row["energy_kwh"], row["j_per_event"]) for row in rows}
    assert found == {
        "gpu": (pytest.approx(4 + 2), pytest.approx(2.5), pytest.approx(7.2e4)),
        # unknown is no number of hours
        "cpu": (None, pytest.approx(1.0), pytest.approx(3.6e4)),
    }


def test_jobs_of_a_name(filled: Session) -> None:
    rows = filled.query(by=["user", "job_name"], metrics=["jobs"]).rows.to_pylist()
    assert {(row["user"], row["job_name"]): row["jobs"] for row in rows} == {
        ("ann", "ann-secret"): 1,
        ("ann", "relax"): 1,
        ("bob", None): 1,
        ("bob", "train"): 1,
    }
