"""Cleaning and buckets against a second implementation in plain pandas, on jobs of all kinds."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.report import RunReport
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.core.words import LEVELS
from esjobs.publish.publication import read_table
from esjobs.records.names.sites import Sites
from esjobs.records.tasks.sums import read_sums, with_sites
from esjobs.schema.jobs import BUCKETS, DAYS
from esjobs.speed.fit_input import FitInputs
from tests.conftest import memory_session
from tests.properties.jobs_of_all_kinds import FIRST, JOBS, N_DAYS, frame_of_jobs, put

WINDOW = f"2018-08-10/2018-08-{10 + N_DAYS}"
KEYS = ["day", "task_id", "core_class", "queue", "cpu_model", "processing_type"]
SUMS = [name for name in BUCKETS.column_names if name not in KEYS]
EXCLUDED = ("merge", "pmerge", "panda*", "ganga*", "hammercloud*", "gangarobot*")

_GOOD: dict[str, Any] = {
    "task_id": "1",
    "queue": "CERN",
    "cpu_raw": "Intel Xeon E5-2650v2",
    "processing_type": "simul",
    "user": None,
    "state": None,
    "end_time": FIRST,
    "cores": 1,
    "events": 3,
    "cpu_s": 100.0,
    "wall_s": 120.0,
    "hs06_s": 1.0,
}


@pytest.fixture(scope="module")
def emptied() -> Iterator[Session]:
    """One session for all examples: opening a store costs more than an example does."""
    with memory_session() as session:
        yield session


@contextmanager
def aggregated(session: Session, jobs: Sequence[dict[str, Any]]) -> Iterator[RunReport]:
    """The session with exactly these jobs, aggregated; empty again afterwards."""
    assert session.store.span().jobs == 0
    put(session, jobs)
    try:
        yield session.speed.aggregate(WINDOW, rebuild=True)
    finally:
        session.store.undo_load("load")


def outcome(job: Any) -> str:
    """The first rule that a job fails, written down from the published list."""
    if job.state is not None and job.state != "finished":
        return "not finished"
    if not job.events >= 1:
        return "no events"
    if not job.cores >= 1:
        return "no cores"
    if not 60 < job.wall_s < 30 * 86_400:
        return "wall time out of range"
    if not 0 < job.cpu_s / (job.wall_s * job.cores) < 2:
        return "efficiency out of range"
    kind = job.processing_type
    if kind is not None and any(fnmatch.fnmatch(kind.lower(), pattern) for pattern in EXCLUDED):
        return "excluded processing type"
    if job.task_id is None:
        return "no task"
    return "binned"


def expected_buckets(frame: pd.DataFrame) -> pd.DataFrame:
    """Sums over the kept jobs of each key."""
    kept = frame[frame["outcome"] == "binned"]
    cpe = kept["cpu_s"] / kept["events"]
    terms = kept[KEYS].assign(
        n_jobs=1,
        events=kept["events"],
        events_sq=kept["events"] ** 2,
        cpu_s=kept["cpu_s"],
        cpu_s_sq=kept["cpu_s"] ** 2,
        events_cpu_s=kept["events"] * kept["cpu_s"],
        wall_s=kept["wall_s"],
        core_s=kept["wall_s"] * kept["cores"],
        cpe_sum=cpe,
        cpe_sq=cpe**2,
    )
    return terms.groupby(KEYS, dropna=False, as_index=False).sum()


def by_key(rows: Sequence[Mapping[Any, Any]]) -> dict[tuple[Any, ...], Mapping[Any, Any]]:
    """Rows by their bucket; a key that occurs twice would be a bucket that was not merged."""
    found = {tuple(None if row[key] != row[key] else row[key] for key in KEYS): row for row in rows}
    assert len(found) == len(rows)
    return found


@settings(max_examples=25, deadline=None)
@given(st.lists(JOBS, min_size=1, max_size=60))
@example([_GOOD, {**_GOOD, "cpu_raw": "Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz", "cpu_s": 120.0}])
@example([_GOOD, {**_GOOD, "cpu_raw": "ARM"}, {**_GOOD, "cpu_raw": None}, {**_GOOD, "cpu_raw": "s+UNKNOWN"}])
def test_buckets_and_books_are_those_of_a_second_implementation(
    emptied: Session, jobs: list[dict[str, Any]]
) -> None:
    frame = frame_of_jobs(jobs)
    frame["outcome"] = [outcome(job) for job in frame.itertuples()]
    with aggregated(emptied, jobs) as report:
        found = by_key(read_table(emptied.store, BUCKETS).to_pylist())
        days = read_table(emptied.store, DAYS).to_pylist()
    expected = by_key(expected_buckets(frame).to_dict("records"))
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        assert found[key]["n_jobs"] == row["n_jobs"]
        np.testing.assert_allclose([found[key][name] for name in SUMS], [row[name] for name in SUMS], 1e-12)
    booked = {(row["day"], row["outcome"]): row["n_jobs"] for row in days if row["kind"] != "note"}
    assert booked == {key: int(count) for key, count in frame.groupby(["day", "outcome"]).size().items()}
    unknown = frame[(frame["outcome"] == "binned") & frame["state"].isna()].groupby("day").size()
    assert {row["day"]: row["n_jobs"] for row in days if row["kind"] == "note"} == unknown.to_dict()
    assert report.rows_in == len(jobs) == report.rows_out + report.n_dropped
    order = [rule.reason for rule in CleaningRules().drops()]
    assert list(report.dropped) == [reason for reason in order if reason in set(frame["outcome"])]


@settings(max_examples=10, deadline=None)
@given(st.lists(JOBS, min_size=2, max_size=30))
def test_merging_days_is_exact(emptied: Session, jobs: list[dict[str, Any]]) -> None:
    """What a fit sees of several days is what it sees when the same jobs end on one day."""
    together = [{**job, "end_time": FIRST + timedelta(hours=12)} for job in jobs]
    columns = []
    for version in (jobs, together):
        with aggregated(emptied, version):
            inputs = FitInputs(with_sites(read_sums(emptied.store, Window.parse(WINDOW)), Sites()), 1)
        columns.append({level: _sorted(inputs.of(level, "all")) for level in LEVELS})
    for level in LEVELS:
        apart, at_once = (version[level] for version in columns)
        assert apart.index.equals(at_once.index)
        np.testing.assert_array_equal(apart["n_jobs"], at_once["n_jobs"])
        for name in ("events", "cpu_s", "core_s"):
            np.testing.assert_allclose(apart[name], at_once[name], 1e-12)
        # The scatter is a difference of large sums: exact to the rounding of the sums, not of itself.
        np.testing.assert_allclose(apart["rel_var_raw"], at_once["rel_var_raw"], 1e-6, 1e-11)


def _sorted(data: Any) -> pd.DataFrame:
    names = ("n_jobs", "events", "cpu_s", "core_s", "rel_var_raw")
    frame = pd.DataFrame({name: getattr(data, name) for name in names})
    frame["task"], frame["name"] = data.task.each(), data.name.each()
    return frame.set_index(["task", "name"]).sort_index()


def test_thresholds_are_settings() -> None:
    """Another limit is another rule: the same jobs fall under it, and the day is made again."""
    jobs = [
        {**_GOOD, "wall_s": 100.0, "cpu_s": 90.0},
        {**_GOOD, "wall_s": 1000.0},
        {**_GOOD, "state": "failed"},
    ]
    with memory_session(
        Settings(rules=CleaningRules(min_wall_s=500.0, finished_states=("failed",)))
    ) as session:
        put(session, jobs)
        assert session.speed.aggregate(WINDOW).dropped == {"wall time out of range": 2}
