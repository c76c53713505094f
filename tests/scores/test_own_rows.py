"""Ordinary jobs of large days share rows; sums, means and rankings stay those over jobs."""

import math
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.arrow import table_schema
from esjobs.publish.publication import rows_table
from esjobs.render.job_pages import job_pages
from esjobs.schema.issues import FOOTPRINTS
from esjobs.schema.scores import SCORES
from esjobs.scores.own_rows import USUAL_REASONS, own_and_shared
from esjobs.scores.settings import EfficiencySettings
from tests.conftest import memory_session
from tests.contract.jobs import Row
from tests.scores.made_jobs import made_jobs, put_all

MOST = 40
NAMES = ("user", "project", "queue", "application", "processing_type", "cpu_model")
HOURS = ("node_h", "core_h", "gpu_h", "idle_core_h", "wall_s", "requested_wall_s", "used_memory_b")


def made(number: int = 2000) -> list[Row]:
    """Jobs of three days, a tenth of them with counters."""
    chance = random.Random(5)
    jobs = made_jobs(number)
    for row in jobs:
        if chance.random() < 0.9:
            row["counters"] = None
        if chance.random() < 0.1:
            row["wall_s"] = None
    return jobs


def scored(session: Session) -> list[Row]:
    put_all(session.store, made())
    session.scores.compute()
    rows: list[Row] = session.tables.scores().rows.to_pylist()
    return rows


def of_few_rows() -> Session:
    """A session in which days are large soon."""
    return memory_session(Settings(scores=EfficiencySettings(own_rows=MOST)))


def added(rows: list[Row], name: str) -> float:
    """The sum over those that have the number; NaN without one."""
    found = [row[name] for row in rows if row[name] is not None]
    return math.fsum(found) if found else math.nan


def test_scored_jobs_and_the_most_idle_have_rows_and_all_are_counted() -> None:
    with of_few_rows() as few, memory_session() as all_of_them:
        rows, jobs = scored(few), scored(all_of_them)
    assert len(jobs) == 2000
    assert all(row["n_jobs"] == 1 for row in jobs)
    own = [row for row in rows if row["job_id"] is not None]
    shared = [row for row in rows if row["job_id"] is None]
    assert sum(row["n_jobs"] for row in rows) == 2000
    assert all(row["n_scores"] == 0 and row["score_sum"] is None for row in shared)
    wanted = set()
    for day in {row["day"] for row in jobs}:
        of_day = [row for row in jobs if row["day"] == day]
        wanted |= {row["job_id"] for row in of_day if row["n_scores"]}
        without = [row for row in of_day if not row["n_scores"]]
        without.sort(key=lambda row: -math.inf if row["idle_core_h"] is None else row["idle_core_h"])
        wanted |= {row["job_id"] for row in without[-MOST:]}
    assert {row["job_id"] for row in own} == wanted
    by_id = {row["job_id"]: row for row in jobs}
    for row in own:
        assert {**told(row), "fingerprint": ""} == {**by_id[row["job_id"]], "fingerprint": ""}


def told(row: Row) -> Row:
    """A row with the reasons that large days leave out."""
    missing = {**row, "time_used": row["time_used_frac"]}
    usual = {f"{name}_reason": why for name, why in USUAL_REASONS.items() if missing[name] is None}
    return {**row, **{name: row[name] or why for name, why in usual.items()}}


def test_sums_by_every_name_are_those_over_jobs() -> None:
    with of_few_rows() as few, memory_session() as all_of_them:
        rows, jobs = scored(few), scored(all_of_them)
    for by in (*NAMES, "state", "cpu_efficiency_reason", "cpu_efficiency_from", "cores", "day"):
        for name in {row[by] for row in jobs}:
            mine, wanted = ([row for row in each if row[by] == name] for each in (rows, jobs))
            assert sum(row["n_jobs"] for row in mine) == len(wanted)
            for hours in HOURS:
                assert added(mine, hours) == pytest.approx(added(wanted, hours), rel=1e-12, nan_ok=True), (
                    by,
                    name,
                    hours,
                )
            # a ratio of sums is over the jobs that have both
            both = ("used_memory_b", "requested_memory_b")
            mine, wanted = (
                [row for row in each if None not in map(row.get, both)] for each in (mine, wanted)
            )
            for column in both:
                assert added(mine, column) == pytest.approx(added(wanted, column), rel=1e-12, nan_ok=True)


def test_rankings_are_those_over_jobs() -> None:
    with of_few_rows() as few, memory_session() as all_of_them:
        scored(few), scored(all_of_them)
        for by in NAMES:
            for score in ("sum", "score_cpu", "cpu_efficiency"):
                for weight in ("node_h", "core_h"):
                    mine, wanted = (
                        session.scores.rank(by, score, top=None, weight=weight)
                        for session in (few, all_of_them)
                    )
                    for row, other in zip(mine.rows.to_pylist(), wanted.rows.to_pylist(), strict=True):
                        for name, value in other.items():
                            number = isinstance(value, float)
                            same = pytest.approx(value, rel=1e-9, abs=1e-9) if number else value
                            assert row[name] == same, (by, score, weight, name)
                    assert mine.notes == wanted.notes
        best = few.scores.rank("user", "cpu_efficiency", top=1)
        assert (len(best), best.notes) == (1, few.scores.rank("user", "cpu_efficiency", top=None).notes)
        assert any("groups differ" in note or "interval" in note for note in best.notes)
        (_, *counts), (_, *others) = (
            list(each.scores.compute().counts.items()) for each in (few, all_of_them)
        )
        assert counts[1:] == others[1:]


def test_jobs_one_by_one_are_those_with_rows() -> None:
    with of_few_rows() as few, memory_session() as all_of_them:
        rows, jobs = scored(few), scored(all_of_them)
        listed = few.scores.rank("job", "cpu_efficiency", top=None)
        assert {row["name"] for row in listed.rows.to_pylist()} == {
            row["job_id"] for row in rows if row["job_id"] and row["cpu_efficiency"] is not None
        }
        (note,) = (each for each in listed.notes if "own_rows" in each)
        assert f"{sum(row['n_jobs'] for row in rows if row['job_id'] is None):,}" in note
        assert not any("own_rows" in each for each in all_of_them.scores.rank("job").notes)
        assert None not in {job for _, job in job_pages(few.store, 100).files}
        ordinary = next(row for row in jobs if row["job_id"] not in {each["job_id"] for each in rows})
        made_now = few.job(ordinary["job_id"]).content.scores
        assert made_now is not None
        assert {**made_now, "fingerprint": ""} == {**ordinary, "fingerprint": ""}


def test_jobs_with_series_have_rows() -> None:
    """Their scores may be predicted, and pages compare them."""
    with of_few_rows() as few:
        rows = scored(few)
        present = {row["job_id"] for row in rows}
        watched = [
            row
            for row in few.jobs(columns=["source", "job_id", "end_time"], top=5000)
            if row["job_id"] not in present
        ]
        watched = sorted(watched, key=lambda row: row["job_id"])[:30]
        for day in {row["end_time"].date() for row in watched}:
            of_day = [
                {**row, "day": day, "metric": "power_w", "scope": "node", "mean": 1.0}
                for row in watched
                if row["end_time"].date() == day
            ]
            few.store.publish(
                [few.store.replace(FOOTPRINTS, str(day), rows_table(FOOTPRINTS, of_day).to_batches())]
            )
        few.scores.compute()
        again = {row["job_id"] for row in few.tables.scores().rows.to_pylist()}
        assert again - present == {row["job_id"] for row in watched}
        assert present <= again


def no_series() -> pa.Array:
    return pa.array([], pa.string())


def numbers() -> Any:
    return st.one_of(st.none(), st.floats(0.001, 1e6))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "user": st.sampled_from(["ann", "bob", None]),
                "cores": st.sampled_from([1, 8, None]),
                "wall_s": numbers(),
                "core_h": numbers(),
                "idle_core_h": numbers(),
                "cpu_efficiency": st.one_of(st.none(), st.floats(0, 1)),
                "score_sum": st.sampled_from([None, None, 12.0]),
            }
        ),
        max_size=60,
    ),
    size=st.integers(1, 20),
    most=st.integers(1, 10),
)
def test_batches_do_not_matter(rows: list[Row], size: int, most: int) -> None:
    for number, row in enumerate(rows):
        row |= {"source": "made", "job_id": f"{number:03}", "n_jobs": 1}
    table = pa.Table.from_pylist(rows, table_schema(SCORES))
    found, again = (
        pa.Table.from_batches(
            own_and_shared(table.to_batches(each), most, no_series), table.schema
        ).to_pylist()
        for each in (size, 1000)
    )
    own, same = ({row["job_id"]: row for row in each if row["job_id"]} for each in (found, again))
    assert own == same
    assert all(own[row["job_id"]]["idle_core_h"] == row["idle_core_h"] for row in rows if row["score_sum"])
    assert sum(row["n_jobs"] for row in found) == len(rows)
    for name in ("wall_s", "core_h", "idle_core_h"):
        assert added(found, name) == pytest.approx(added(rows, name), rel=1e-9, nan_ok=True)
    # the mean times its weight gives back the sum
    weighed = [
        sum(
            row["cpu_efficiency"] * row["wall_s"]
            for row in each
            if None not in (row["cpu_efficiency"], row["wall_s"])
        )
        for each in (found, rows)
    ]
    assert weighed[0] == pytest.approx(weighed[1], rel=1e-9, abs=1e-9)
