"""Windows held against each other, one of which has no jobs; sums over what nothing meets."""

from pathlib import Path

import pytest

from esjobs.core.errors import NoJobsError
from tests.cli.running import job_file
from tests.conftest import memory_session

NOW, BEFORE = ("2018-08-10", "2018-08-15"), ("2018-08-05", "2018-08-10")


@pytest.mark.parametrize("by", [(), ("queue",), ("queue", "processing_type")])
@pytest.mark.parametrize("more", [{}, {"total": True}, {"top": 2}])
def test_a_window_before_without_jobs(tmp_path: Path, by: tuple[str, ...], more: dict[str, int]) -> None:
    if more and not by:
        return
    with memory_session() as session:
        session.ingest("jobs", job_file(tmp_path / "jobs.csv", n_queues=4))
        asked = {"window": NOW, "compare": "previous", **more}
        rows = session.query(by, ["jobs", "efficiency"], **asked).to_pandas()  # type: ignore[arg-type]
        assert rows["jobs_before"].eq(0).all()
        assert (rows["jobs_diff"] == rows["jobs"]).all()
        assert rows["efficiency_before"].isna().all()
        if not more:
            assert rows["jobs"].sum() == 4 * 3 * 60


def test_a_window_without_jobs_against_one_with_some(tmp_path: Path) -> None:
    """An outage is an answer, not an error."""
    with memory_session() as session:
        session.ingest("jobs", job_file(tmp_path / "jobs.csv", n_queues=4))
        rows = session.query(
            "queue", ["jobs"], window=("2018-08-15", "2018-08-20"), compare="previous"
        ).to_pandas()
        assert rows["jobs"].eq(0).all()
        assert rows["jobs_before"].eq(180).all()
        assert len(rows) == 4
        with pytest.raises(NoJobsError):
            session.query("queue", ["jobs"], window=BEFORE, compare="previous").to_pandas()


def test_nothing_lost_is_zero_and_not_unknown(tmp_path: Path) -> None:
    file = job_file(tmp_path / "jobs.csv", n_queues=3)
    rows = file.read_text().splitlines()
    failed = [line.replace("finished", "failed") if "SITE01," in line else line for line in rows]
    unknown = [
        ",".join([*line.split(",")[:7], "", *line.split(",")[8:]]).replace("finished", "failed")
        if "SITE02," in line
        else line
        for line in failed
    ]
    file.write_text("\n".join(unknown) + "\n")
    with memory_session() as session:
        session.ingest("jobs", file)
        lost = session.query("queue", ["lost_core_h", "core_h"]).to_pandas().set_index("queue")
        assert lost.loc["SITE00", "lost_core_h"] == 0
        assert lost.loc["SITE01", "lost_core_h"] == pytest.approx(lost.loc["SITE01", "core_h"])
        assert lost.loc["SITE02"].isna().all()
        best = session.query("queue", ["lost_core_h"], sort="lost_core_h", descending=False).to_pandas()
        assert best["queue"].iloc[0] == "SITE00"


def test_no_limit_is_all_jobs(tmp_path: Path) -> None:
    with memory_session() as session:
        session.ingest("jobs", job_file(tmp_path / "jobs.csv", n_queues=2))
        assert len(session.jobs(columns=["job_id"], top=0).to_pandas()) == 2 * 3 * 60
