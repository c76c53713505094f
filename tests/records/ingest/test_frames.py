"""Tables in memory come in as files do: same books, same rejects, same load."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import esjobs
from esjobs.core.errors import InputError, NoJobsError, NoResultError
from tests.cli.running import run

FRAME = pd.DataFrame(
    {
        "job_id": ["1", "2", None],
        "queue": pd.Categorical(["a", "b", "b"]),
        "end_time": pd.to_datetime(["2025-01-01", "2025-01-02", "2025-01-02"]),
        "cores": [8, None, 1],
        "counters": [{"cycles": 1.0}, None, {"cycles": 2.0}],
    }
)


def test_a_frame_is_a_load_like_that_of_a_file() -> None:
    with esjobs.open("duckdb::memory:") as s:
        first = s.ingest("jobs", FRAME, fill={"processing_type": "simul"})
        assert first.counts == {"stored": 2, "updated": 0}
        assert first.dropped == {"missing job_id": 1}
        assert s.ingest("jobs", FRAME, fill={"processing_type": "simul"}).run == first.run
        rejected = s.tables.rejects().to_pandas()
        assert rejected[["file", "line", "field"]].to_numpy().tolist() == [["frame", 3, "job_id"]]
        jobs = s.jobs(sort="job_id").to_pandas()
        assert jobs["queue"].tolist() == ["a", "b"]
        assert jobs["processing_type"].tolist() == ["simul", "simul"]
        assert jobs["counters"].tolist() == [{"cycles": 1.0}, None]


def test_what_a_session_gives_it_takes() -> None:
    with esjobs.open("duckdb::memory:") as one, esjobs.open("duckdb::memory:") as two:
        one.ingest("jobs", FRAME)
        assert two.ingest("jobs", one.jobs().batches().read_all()).rows_out == 2
        assert two.ingest("jobs", one.jobs().to_pandas()).counts == {
            "stored": 0,
            "updated": 2,
            "unchanged": 2,
        }
        pd.testing.assert_frame_equal(
            two.jobs(sort="job_id").to_pandas(), one.jobs(sort="job_id").to_pandas()
        )


def test_an_index_with_a_name_is_a_column() -> None:
    with esjobs.open("duckdb::memory:") as s:
        assert s.ingest("jobs", FRAME.dropna(subset="job_id").set_index("job_id")).rows_out == 2


@pytest.mark.parametrize(
    "bad",
    [
        pd.DataFrame({"job_id": [1, "a", b"x"]}),
        pd.DataFrame([[1, 2]], columns=["job_id", "job_id"]),
        pd.DataFrame(),
        pa.table({"job_id": [1]}),
    ],
)
def test_a_table_that_is_none_of_jobs_is_refused(bad: Any) -> None:
    with esjobs.open("duckdb::memory:") as s, pytest.raises(InputError):
        s.ingest("jobs", bad)


def test_reading_makes_no_store(tmp_path: Path) -> None:
    s = esjobs.open(f"duckdb:{tmp_path}/no/x.duckdb")
    with pytest.raises(NoJobsError):
        s.query("queue").to_pandas()
    with pytest.raises(NoResultError):
        s.tables.flags().to_pandas()
    assert s.jobs().to_pandas().empty
    assert "0 jobs" in repr(s)
    assert not list(tmp_path.iterdir())
    # another one makes it meanwhile
    with esjobs.open(f"duckdb:{tmp_path}/no/x.duckdb") as other:
        other.ingest("jobs", FRAME)
    assert len(s.jobs().to_pandas()) == 2
    s.close()


def test_a_load_of_nothing_but_refused_rows_is_an_error(tmp_path: Path) -> None:
    file, store = tmp_path / "a.csv", tmp_path / "x.duckdb"
    file.write_text("job_id,queue,end_time\n1,,2025-01-02\n")
    refused = run("ingest", "jobs", str(file), store=store)
    assert refused.exit_code == 1
    assert "--set queue=VALUE" in refused.output
    assert run("show", "rejects", "--format", "csv", store=store).stdout.count("missing queue") == 1
    assert run("ingest", "jobs", str(file), "--allow-rejects", store=store).exit_code == 0
    assert run("ingest", "jobs", str(file), "--set", "queue=CERN", store=store).exit_code == 0
    # a copy of before is no error
    file.write_text("job_id,queue,end_time\n1,CERN,2025-01-01\n")
    superseded = run("ingest", "jobs", str(file), store=store)
    assert (superseded.exit_code, "superseded" in superseded.output) == (0, True)
