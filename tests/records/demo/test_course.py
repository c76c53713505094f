"""The course of the demo's days: the volume that was asked for, weekends, and the planted incident."""

from dataclasses import replace
from datetime import date, timedelta
from functools import cache

import pandas as pd
import pyarrow as pa
import pytest

from esjobs.records.demo import Grid
from esjobs.records.demo.course import Course
from esjobs.records.demo.grid import SLOW_JOBS
from tests.conftest import memory_session

JOBS = 60_000


@cache
def made(seed: int) -> tuple[Grid, Grid, list[date]]:
    """A grid without a course, the same with one, and its days."""
    plain = Grid.of_size(JOBS, seed=seed)
    days = plain.days(JOBS)
    return plain, replace(plain, course=Course(seed, days[0], days[-1], JOBS)), days


@cache
def jobs_of(seed: int) -> pa.Table:
    _, grid, days = made(seed)
    return pa.Table.from_batches(batch for day in days for batch in grid.jobs(day))


@cache
def frame(seed: int) -> pd.DataFrame:
    jobs: pd.DataFrame = jobs_of(seed).to_pandas()
    return jobs


@pytest.mark.parametrize("jobs", [1, 29, 44, 60_001, 299_999, 300_000])
def test_the_days_add_up_to_what_was_asked_for(jobs: int) -> None:
    days = Grid.of_size(jobs).days(jobs)
    course = Course(1, days[0], days[-1], jobs)
    assert sum(map(course.volume, days)) == jobs
    assert course.volume(days[0] - timedelta(days=1)) == 0


def test_weekends_are_quiet_and_weeks_grow() -> None:
    volume = frame(3).groupby(frame(3)["end_time"].dt.date).size()
    weekend = volume[[day.weekday() >= 5 for day in volume.index]].mean()
    working = volume[[day.weekday() < 5 for day in volume.index]].mean()
    assert 0.70 < weekend / working < 0.80
    weeks = [volume[date(2025, 6, monday) : date(2025, 6, monday + 6)].sum() for monday in (2, 9, 16, 23)]
    assert weeks == sorted(weeks)
    assert weeks[-1] > 1.08 * weeks[0]


def test_jobs_are_those_of_the_seed_each_with_a_name_of_its_own() -> None:
    _, grid, days = made(3)
    twin = replace(Grid.of_size(JOBS, seed=3), course=Course(3, days[0], days[-1], JOBS))
    day = days[17]
    assert pa.Table.from_batches(grid.jobs(day)).equals(pa.Table.from_batches(twin.jobs(day)))
    jobs = frame(3)
    assert jobs["job_id"].is_unique
    numbers = jobs["job_id"].astype("int64")
    assert (numbers.diff().dropna() > 0).all()


def test_only_wall_time_waiting_and_failures_follow_the_days() -> None:
    """With as many jobs a day as the plain grid has, everything else is the same; times fit together."""
    plain, _, days = made(3)

    class Even(Course):
        def volume(self, day: date) -> int:
            return plain.jobs_per_day if self.first <= day <= self.last else 0

        @property
        def most(self) -> int:
            return plain.jobs_per_day

    grid = replace(plain, course=Even(3, days[0], days[-1], JOBS))
    incident = grid.truth().incident
    assert incident is not None
    before = pa.Table.from_batches(plain.jobs(incident.first)).to_pandas()
    after = pa.Table.from_batches(grid.jobs(incident.first)).to_pandas()
    same = [
        "job_id", "queue", "task_id", "end_time", "events", "cores", "cpu_raw", "max_rss_b", "read_b",
    ]  # fmt: skip
    assert after[same].equals(before[same])
    finished = after["state"].eq("finished")
    assert after.loc[finished, "cpu_s"].equals(before.loc[finished, "cpu_s"])
    hit = after["queue"].isin([q.name for q in grid.truth().queues if q.site == incident.site])
    assert hit.sum() > 50
    grown = after.loc[hit & finished, "wall_s"].sum() / before.loc[hit & finished, "wall_s"].sum()
    assert grown == pytest.approx(1 / incident.efficiency_factor, rel=0.1)
    assert after.loc[~hit, "queue_s"].equals(before.loc[~hit, "queue_s"])
    assert finished[~hit].equals(before["state"].eq("finished")[~hit])
    ran = (after["end_time"] - after["start_time"]).dt.total_seconds()
    waited = (after["start_time"] - after["submit_time"]).dt.total_seconds()
    assert ran.equals(after["wall_s"])
    assert waited.equals(after["queue_s"])
    assert (after["stagein_s"] + after["exe_s"] + after["stageout_s"]).equals(after["wall_s"])
    odd = before["cpu_s"] > 2 * before["wall_s"] * before["cores"]
    assert odd.any()
    assert after.loc[odd, "wall_s"].equals(before.loc[odd, "wall_s"])


@pytest.mark.parametrize("seed", [1, 3])
def test_the_incident_is_the_largest_loser_of_its_week(seed: int) -> None:
    _, grid, _ = made(seed)
    incident = grid.truth().incident
    assert incident is not None
    with memory_session() as session:
        session.store.put_jobs(jobs_of(seed).to_batches(), "made up")
        lost = session.query(
            "site",
            ["efficiency", "failure_rate", "waiting_median_s"],
            window="2025-W25",
            compare="previous",
        ).to_pandas()
    first = lost.iloc[0]
    assert first["site"] == incident.site
    assert first["efficiency_diff"] < -0.1
    # of a twentieth of the demo's jobs, in a dozen tasks, some of which ran on the three days alone
    assert first["efficiency_z"] < -2.5
    assert first["failure_rate"] > 3 * first["failure_rate_before"]
    assert first["waiting_median_s"] > 1.2 * first["waiting_median_s_before"]


def test_a_slow_task_is_planted_where_it_has_jobs_enough() -> None:
    def planted(jobs: int) -> tuple[Grid, list[date]]:
        plain = Grid.of_size(jobs)
        days = plain.days(jobs)
        return replace(plain, course=Course(1, days[0], days[-1], jobs)), days

    assert planted(30_000)[0].slow_task is None
    grid, _ = planted(300_000)
    slow = grid.slow_task
    assert slow is not None
    first = pa.Table.from_batches(grid.jobs(slow.first)).to_pandas()
    of_task = first[first["task_id"] == slow.task_id]
    assert len(of_task) > 0.7 * SLOW_JOBS
    assert of_task["queue"].nunique() > 3
