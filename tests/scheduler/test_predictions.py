"""Nights that predict the scores which jobs lack, where that is asked for."""

from pathlib import Path
from typing import Any

import pytest

from esjobs import Settings
from esjobs import open as open_session
from esjobs.api.session import Session
from esjobs.records.demo import Grid
from tests.scheduler.stage import Hands
from tests.similar.made_families import END, jobs_of, put_families, put_scores, row_of

DAY = END.date()
MEASURED = [job for family in range(4) for job in jobs_of(family, 12)]
TARGETS = [job for family in range(4) for job in jobs_of(family, 2, measured=False, seed=1)]


def night(session: Session, hands: Hands) -> dict[str, Any]:
    """The night of the day, and the account of its scores."""
    hands.morning_after(DAY)
    done = session.nights.rerun(DAY)
    assert done["state"] == "done", done
    step: dict[str, Any]
    (step,) = (row for row in session.tables.night_steps().rows.to_pylist() if row["step"] == "score")
    return step


def opened(folder: Path, hands: Hands, **similar: object) -> Session:
    """An installation without fits, whose scores are made by somebody else."""
    settings = {
        "store": f"duckdb:{folder / 'jobs.duckdb'}",
        "fit": {"nightly": False},
        "nights": {"windows": (2,), "headline": 2, "late_days": 1},
        "scores": {"nightly": False},
        "similar": similar,
    }
    return open_session(settings=Settings.model_validate(settings), clock=hands.clock)


@pytest.mark.parametrize("nightly", [True, False])
def test_a_night_predicts_when_it_is_asked_to(tmp_path: Path, nightly: bool) -> None:
    hands = Hands()
    with opened(tmp_path, hands, nightly=nightly) as session:
        session.store.put_jobs(Grid(jobs_per_day=400, n_queues=20).jobs(DAY), "day")
        put_families(session, [*MEASURED, *TARGETS])
        step = night(session, hands)
        assert step["state"] == "done"
        rows = session.tables.predicted_scores().rows.to_pylist() if nightly else []
        assert {row["job_id"] for row in rows} == ({job.job_id for job in TARGETS} if nightly else set())
        assert ("16 of 16 missing scores predicted" in str(step)) is nightly


def test_a_night_without_a_knowledge_base_is_done_and_says_so(tmp_path: Path) -> None:
    hands = Hands()
    with opened(tmp_path, hands, nightly=True) as session:
        session.store.put_jobs(Grid(jobs_per_day=400, n_queues=20).jobs(DAY), "day")
        assert "no score predicted: no scored job" in str(night(session, hands))
        put_scores(session, [row_of(job) for job in TARGETS])
        assert "no score predicted: " in str(night(session, hands))
