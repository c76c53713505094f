"""Lost work against sums by hand and in pandas; shares add up; new errors."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.api.session import Session
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.states import UNFINISHED
from esjobs.records.errors.categories import shipped
from tests.conftest import memory_session

ERRORS = ["pilot:1099", "trans:65", "none:0", "taskbuffer:105", "exit:0:9", "", "trans:unparsed"]
HEADER = "job_id,queue,task_id,node,state,error,end_time,wall_s,cores"
Row = tuple[str, str, str, str, str, str, int | str, int | str]


def load(session: Session, folder: Path, rows: list[Row]) -> None:
    """Load jobs: queue, task, node, state, error, end, wall, cores."""
    file = folder / "jobs.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER.split(","))
        writer.writerows([number, *row] for number, row in enumerate(rows))
    session.ingest("jobs", file)


JOB = st.tuples(
    st.sampled_from(["A", "B", "C"]),
    st.sampled_from(["1", "2", ""]),
    st.sampled_from(["wn1", "wn2", ""]),
    st.sampled_from(["finished", *UNFINISHED]),
    st.sampled_from(ERRORS),
    st.just("2025-06-10"),
    st.sampled_from([0, 60, 7200, ""]),
    st.sampled_from([1, 8]),
)


@settings(max_examples=12, deadline=None)
@given(rows=st.lists(JOB, min_size=1, max_size=40))
def test_shares_add_up_and_sums_are_those_of_pandas(
    rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> None:
    frame = pd.DataFrame(rows, columns=HEADER.split(",")[1:])
    frame["core_h"] = pd.to_numeric(frame["wall_s"]) * frame["cores"] / 3600
    bad = frame[frame["state"] != "finished"]
    retried = bad["error"].map(
        lambda error: getattr(shipped().category(error or None), "name", "") == "retried"
    )
    with memory_session() as session:
        load(session, tmp_path_factory.mktemp("lost"), rows)
        by_error, by_category = (
            session.errors.lost(by).rows.to_pylist() for by in ("error", "error_category")
        )
        cells = (
            session.query("error,site,task_id", ["core_h"], share=True, where=f"state={','.join(UNFINISHED)}")
            if len(bad)
            else None
        )
    total = bad.loc[~retried, "core_h"].sum()
    for found in (by_error, by_category):
        assert sum(row["n_jobs"] for row in found) == len(bad)
        assert sum(row["core_h"] or 0 for row in found) == pytest.approx(bad["core_h"].sum())
        shares = sum(row["share"] or 0 for row in found)
        assert shares == pytest.approx(1.0 if total > 0 else 0.0)
    for row in by_error:
        own = bad[bad["error"] == (row["error"] or "")]
        assert row["n_tasks"] == (own.loc[own["task_id"] != "", "task_id"].nunique() or None)
        assert row["n_sites"] == own["queue"].nunique()
        hours = own["core_h"].sum(min_count=1)
        assert np.float64(row["core_h"]) == pytest.approx(hours, nan_ok=True)
    if cells is not None and bad["core_h"].sum() > 0:
        assert sum(row["core_h_share"] or 0 for row in cells) == pytest.approx(1.0)


def test_failed_and_cancelled_hours_are_told_apart(session: Session, tmp_path: Path) -> None:
    rows: list[Row] = [
        ("A", "1", "", "failed", "pilot:1099", "2025-06-10", 3600, 2),
        ("A", "1", "", "cancelled", "pilot:1099", "2025-06-10", 3600, 1),
        ("B", "2", "", "closed", "taskbuffer:105", "2025-06-10", 3600, 4),
    ]
    load(session, tmp_path, rows)
    first, second = session.errors.lost("error").rows.to_pylist()[::-1]
    assert (first["core_h"], first["lost_core_h"], first["cancelled_core_h"]) == (3.0, 2.0, 1.0)
    assert (first["share"], second["share"], second["error_category"]) == (1.0, None, "retried")
    assert session.errors.lost("error", site="A").rows.column("n_jobs").to_pylist() == [2]
    only = session.errors.lost("error", site=["A", "B"], where="state=failed,finished").rows
    assert only.select(["core_h", "sentence"]).to_pylist() == [{"core_h": 2.0, "sentence": "stage-in failed"}]


def test_new_errors_are_absent_before_and_more_than_one_accident(session: Session, tmp_path: Path) -> None:
    def jobs(error: str, day: str, number: int, task: str = "{}", node: str = "wn") -> list[Row]:
        return [("A", task.format(n), node.format(n), "failed", error, day, 3600, 1) for n in range(number)]

    rows = [
        *jobs("pilot:1", "2025-06-20", 5),
        *jobs("pilot:2", "2025-06-20", 4),
        *jobs("pilot:3", "2025-06-20", 9, task="7", node="wn{}"),
        *jobs("pilot:4", "2025-06-20", 9, task="7"),
        *jobs("pilot:5", "2025-06-20", 9),
        *jobs("pilot:5", "2025-06-01", 1),
        *jobs("pilot:6", "2025-06-20", 9),
        *jobs("pilot:6", "2025-05-01", 1),
    ]
    load(session, tmp_path, rows)
    found = session.errors.lost("error", window="2025-W25", new=True)
    assert sorted(found.rows.column("error").to_pylist()) == ["pilot:1", "pilot:3", "pilot:6"]
    assert sum(row["share"] for row in found) == pytest.approx(23 / 45)
    with pytest.raises(NoJobsError):
        session.errors.lost("error", window="2025-05-01/2025-05-02", new=True)
    with pytest.raises(UsageError):
        session.errors.lost("error", new=True)
    with pytest.raises(UsageError):
        session.errors.lost("queue")


def test_without_failures_the_answer_is_empty_and_without_jobs_an_error(
    session: Session, tmp_path: Path
) -> None:
    load(session, tmp_path, [("A", "1", "", "finished", "", "2025-06-10", 3600, 2)])
    answer = session.errors.lost()
    assert (len(answer), len(answer.notes)) == (0, 1)
    with pytest.raises(NoJobsError):
        session.errors.lost(site="nowhere")


def test_jobs_of_unknown_state_are_counted(session: Session, tmp_path: Path) -> None:
    load(session, tmp_path, [("A", "1", "wn", "failed", "pilot:1", "2025-06-20", 3600, 1)])
    path = tmp_path / "unknown.csv"
    path.write_text("job_id,queue,end_time,wall_s,cores\nx,A,2025-06-20,7200,4\n")
    session.ingest("jobs", path)
    answer = session.errors.lost("error")
    assert (len(answer), answer.rows["n_jobs"].to_pylist()) == (1, [1])
    assert "1 job of unknown state" in answer.notes[-1]
