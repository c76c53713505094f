"""Programs tell apart what time series cannot: the combined approaches, on planted programs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import NoResultError
from esjobs.similar.knowledge import knowledge_base
from esjobs.similar.program_similarity import program_similarity
from esjobs.similar.settings import SimilarSettings
from tests.conftest import memory_session
from tests.contract.jobs import job, put
from tests.issues.made_jobs import START, put_series
from tests.messages import raised
from tests.similar.made_families import END, NOISE, MadeJob, behaviour, put_scores, row_of
from tests.similar.programs import elf

WINDOW = f"{START:%Y-%m-%d}/2026-03-02"
SCORES = {"slow": 70.0, "quick": 20.0, "other": 45.0}
"""Programs by the score_cpu of their jobs. The first two behave alike in every metric that was collected."""
BEHAVIOUR = {"slow": 0, "quick": 0, "other": 3}
COMMON = ["_start", "main", "printf", "__libc_start_main"]


def planted() -> dict[str, list[MadeJob]]:
    """Twenty measured jobs and three others of each program, and two of a program that nobody measured."""
    rng = np.random.default_rng(7)
    made: dict[str, list[MadeJob]] = {}
    for number, program in enumerate((*SCORES, "unseen")):
        counts = ((20, True), (3, False)) if program in SCORES else ((2, False),)
        made[program] = [
            MadeJob(
                f"{number}{'m' if measured else 't'}a{place}",
                BEHAVIOUR.get(program, 0),
                f"user{number}-{place % 4}",
                SCORES.get(program, 0.0) + NOISE * float(rng.normal()),
                30.0 + NOISE * float(rng.normal()),
                measured,
            )
            for count, measured in counts
            for place in range(count)
        ]
    return made


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("programs")
    made = planted()
    with memory_session() as opened:
        series, rows, records = {}, [], []
        for program, jobs in made.items():
            names = [*COMMON, *(f"{program}_{part}" for part in "abcdefgh")]
            (folder / program).write_bytes(elf([name.encode() for name in names]))
            for each in jobs:
                series[each.job_id] = behaviour(each)
                rows.append({**row_of(each), "application": program})
                named = {"application": program, "executable": str(folder / program)}
                facts = {"source": "c", "end_time": END, "user": each.user, "task_id": None, **named}
                records.append(job(each.job_id, **facts))
        put_series(opened, series, end=END)
        put_scores(opened, rows)
        put(opened.store, "load", *records)
        with raised(NoResultError):
            with_approach(opened, "combined-1").similar.predict(WINDOW)
        opened.similar.scan(folder)
        yield opened


def with_approach(session: Session, approach: str) -> Session:
    return Session(session.store, Settings(similar=SimilarSettings(approach=approach)))  # type: ignore[arg-type]


def predicted_cpu(session: Session) -> list[dict[str, Any]]:
    rows = session.tables.predicted_scores().rows.to_pylist()
    return [row for row in rows if row["score_name"] == "score_cpu"]


def truth() -> dict[str, float]:
    return {each.job_id: each.score_cpu for jobs in planted().values() for each in jobs}


def test_similarities_are_those_of_the_programs(session: Session) -> None:
    base = knowledge_base(session.store, SimilarSettings())
    found = program_similarity(session.store, base.keys, {("c", "3ta0")})
    programs = np.array([row["application"] for row in base.facts])
    for place in (0, 25, 59):
        near = found.of(place)
        assert (near[programs == programs[place]] == 1).all()
        assert (near[programs != programs[place]] < 0.5).all()
    assert (found.to(("c", "3ta0")) < 0.5).all()
    assert np.isnan(found.to(("c", "0ta0"))).all()  # nobody looked it up


@pytest.mark.parametrize("approach", ["combined-1", "combined-2"])
def test_jobs_that_behave_alike_are_told_apart_by_their_programs(session: Session, approach: str) -> None:
    asked = with_approach(session, approach)
    report = asked.similar.predict(WINDOW)
    rows = predicted_cpu(asked)
    by_job = {row["job_id"]: row for row in rows}
    expected = truth()
    mine = [each.job_id for program in SCORES for each in planted()[program] if not each.measured]
    for name in mine:
        row = by_job[name]
        assert abs(row["value"] - expected[name]) < 5 * NOISE
        assert (row["approach"], row["search_step"]) == (approach, "A")
        assert row["static"] >= 0.5
        assert row["distance_limit_b"] is None  # no distance alone is small enough
        assert row["error_95"] is None  # 71 jobs leave too few residuals
    assert report.rows_in == report.rows_out + report.n_dropped
    if approach == "combined-2":
        assert set(by_job) == set(mine)
        assert report.dropped == {"no job of a similar program": 2 * 2}


def test_without_programs_they_cannot_be(session: Session) -> None:
    """Those that behave most alike lie 50 apart: none is near enough, not even one that is equal."""
    asked = with_approach(session, "dynamic")
    report = asked.similar.predict(WINDOW)
    assert any("the most similar jobs differ in score_cpu" in note for note in report.notes)
    rows = predicted_cpu(asked)
    assert rows == []
    assert asked.tables.predicted_scores().rows.num_rows > 0  # their score_mem is one and the same


def test_every_combination_is_evaluated(session: Session) -> None:
    rows = session.similar.evaluate().rows.to_pylist()
    assert len(rows) == 2 * 2 * 9
    told = {
        (row["left_out"], row["approach"], row["aggregation"]): row
        for row in rows
        if row["score_name"] == "score_cpu"
    }
    for what in ("run", "user"):
        for how in ("softmax", "median", "mean"):
            assert told[what, "dynamic", how]["predicted_frac"] == 0
            assert told[what, "dynamic", how]["distance_limit_b"] is None
            for approach in ("combined-1", "combined-2"):
                row = told[what, approach, how]
                assert row["reason"] is None
                assert row["predicted_frac"] == 1
                assert row["mae"] < 3 * NOISE
                assert row["over_10_frac"] == 0
                assert row["cover_95"] > 0.85


def test_a_damaged_or_stripped_program_is_not_known(session: Session, tmp_path: Path) -> None:
    with memory_session() as other:
        made = [replace(each, user=f"u{each.job_id}") for each in planted()["slow"]]
        put_series(other, {each.job_id: behaviour(each) for each in made}, end=END)
        put_scores(other, [row_of(each) for each in made])
        (tmp_path / "slow").write_bytes(elf([]))
        (tmp_path / "junk").write_bytes(b"\x7fELF")
        facts = {"source": "c", "end_time": END, "task_id": None, "executable": str(tmp_path / "slow")}
        put(other.store, "load", *(job(each.job_id, **facts) for each in made))
        other.similar.scan(tmp_path)
        rows = other.similar.evaluate().rows.to_pylist()
    combined = {row["reason"] for row in rows if row["approach"] != "dynamic"}
    assert any("symbols scan" in reason for reason in combined if reason)
