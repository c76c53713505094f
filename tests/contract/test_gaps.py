"""Periods and bins without jobs, the largest groups, and names as people write them."""

from collections.abc import Iterator

import pytest

from esjobs.api.session import Session
from esjobs.core.errors import UsageError
from tests.conftest import memory_session
from tests.contract.jobs import batch, hours, job
from tests.messages import raised

DAY = 24


@pytest.fixture
def session() -> Iterator[Session]:
    """Jobs on 2018-08-01 (one), 03 (two) and 20 (three); hours 0, 5 and 7."""
    rows = [job(1, end_time=hours(0), queue_s=60.0)]
    rows += [job(n, end_time=hours(2 * DAY + 5), queue_s=3600.0 * n) for n in (2, 3)]
    rows += [job(n, end_time=hours(19 * DAY + 7), queue_s=3600.0 * 8) for n in (4, 5, 6)]
    with memory_session() as opened:
        opened.store.put_jobs([batch(rows)], "a")
        yield opened


def test_days_without_jobs_are_rows_of_none(session: Session) -> None:
    answer = session.query("day", ["jobs", "core_h", "efficiency", "waiting_median_s"]).to_pandas()
    assert answer["jobs"].tolist() == [1, 0, 2, *[0] * 16, 3]
    empty = answer[answer["jobs"] == 0]
    assert empty["core_h"].eq(0).all()
    assert empty[["efficiency", "waiting_median_s"]].isna().all(axis=None)
    # what pandas makes of the same jobs
    times = session.jobs(columns=["end_time", "job_id"]).to_pandas().set_index("end_time")["job_id"]
    assert answer["jobs"].tolist() == times.resample("D").count().tolist()


def test_weeks_months_hours_and_bins_have_no_gaps(session: Session) -> None:
    weeks = session.query("week", "jobs").to_pandas()
    assert weeks.to_numpy().tolist() == [["2018-W31", 3], ["2018-W32", 0], ["2018-W33", 0], ["2018-W34", 3]]
    hour = session.query("hour", "jobs").to_pandas().set_index("hour")["jobs"]
    assert hour.index.tolist() == list(range(24))
    assert hour[hour > 0].to_dict() == {0: 1, 5: 2, 7: 3}
    bins = session.query(metrics="jobs", bins="queue_s=0,1h,4h,6h,1d").to_pandas()
    assert bins["jobs"].tolist() == [1, 2, 0, 3]


def test_what_has_no_row_is_said(session: Session) -> None:
    (note,) = session.query("week", "jobs", window="2018").details.notes
    assert note == "49 weeks of 2018-01-01/2019-01-01 have no jobs and no rows"
    (note,) = session.query("site,week", "jobs").details.notes
    assert note == "2 weeks between the first job and the last have no jobs and no rows"
    assert session.query("week", "jobs").details.notes == ()


def test_countries_that_no_table_names_are_said(session: Session) -> None:
    answer = session.query("country", "jobs").details
    assert answer.table.column("country").to_pylist() == [None]
    assert any("corepower import" in note for note in answer.notes)


def test_a_number_of_bins_gives_round_ones(session: Session) -> None:
    bins = session.query(metrics="jobs", bins="queue_s=10").to_pandas()
    # of 60 s to 8 h ten at most are an hour wide; the largest value is in the last
    assert bins["jobs"].tolist() == [1, 0, 1, 1, 0, 0, 0, 3]
    assert bins["queue_s"].tolist()[:2] == ["0 to 3600", "3600 to 7200"]
    assert bins["queue_s"].tolist()[-1] == ">= 25200"


def test_the_top_are_the_largest_unless_an_order_is_asked_for(session: Session) -> None:
    assert session.query("hour", "jobs", top=2).to_pandas()["jobs"].tolist() == [3, 2, 1]
    assert session.query("day", "jobs", top=1, descending=False).to_pandas()["jobs"].tolist() == [1, 5]
    assert session.query("day", "jobs", top=1, sort="day").to_pandas()["jobs"].tolist() == [1, 5]


def test_the_top_are_the_largest_by_a_sum_that_is_asked_for(session: Session) -> None:
    more = [job(n, queue="small", end_time=hours(1), cores=1, wall_s=60.0) for n in range(10, 20)]
    large = [job(20, queue="large", end_time=hours(1), cores=8, wall_s=86_400.0 * 20)]
    session.store.put_jobs([batch([*more, *large])], "b")
    assert session.query("queue", "core_h", top=1).to_pandas()["queue"].iloc[0] == "large"
    assert session.query("queue", "efficiency", top=1).to_pandas()["queue"].iloc[0] == "small"


def test_several_names_may_stand_in_one_text(session: Session) -> None:
    once = session.query("queue, week", "jobs,core_h").to_pandas()
    assert once.equals(session.query(["queue", "week"], ["jobs", "core_h"]).to_pandas())


@pytest.mark.parametrize(
    "bins", ["queue_s=2GB,4GB", "queue_s=1h", "events=1h,2h", "queue_s=a,b", "queue_s=,"]
)
def test_edges_in_units_of_others_are_refused(session: Session, bins: str) -> None:
    with raised(UsageError):
        session.query(metrics="jobs", bins=bins).to_pandas()
