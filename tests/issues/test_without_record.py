"""Series whose jobs have no record: a note of the load, until the records are there."""

from pathlib import Path

from tests.conftest import memory_session

SERIES = """source,job_id,metric,unit,scope,instance,time,value
c,1,cpu_load,,node,n1,2026-01-05T10:00:00Z,8
c,1,cpu_load,,node,n1,2026-01-05T10:01:00Z,8
c,2,cpu_load,,node,n1,2026-01-05T10:00:00Z,8
c,2,cpu_load,,node,n1,2026-01-05T10:01:00Z,8
"""
JOBS = """source,job_id,queue,state,end_time,wall_s,cores
c,1,batch,finished,2026-01-05T10:02:00Z,120,8
"""


def test_a_load_of_series_says_which_jobs_have_no_record(tmp_path: Path) -> None:
    series, jobs = tmp_path / "series.csv", tmp_path / "jobs.csv"
    series.write_text(SERIES)
    jobs.write_text(JOBS + JOBS.splitlines()[1].replace("c,1", "c,2") + "\n")
    with memory_session() as session:
        session.ingest("jobs", [jobs.rename(tmp_path / "both.csv")])
        assert not any("no record" in note for note in session.ingest("series", [series]).notes)
    jobs.write_text(JOBS)
    with memory_session() as session:
        session.ingest("jobs", [jobs])
        (note,) = [note for note in session.ingest("series", [series]).notes if "no record" in note]
    assert note.startswith("1 of 2 jobs with series have no record yet")
