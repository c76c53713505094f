"""Scores and rankings are the same on every engine, and rankings what plain Python makes of the rows."""

import math
from typing import Any

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.rates import FEW_JOBS
from esjobs.core.window import Window
from esjobs.scores.settings import EfficiencySettings
from esjobs.store.base import JobStore
from tests.conftest import memory_session
from tests.contract.jobs import START, Row, job
from tests.messages import raised
from tests.scores.made_jobs import detected, made_jobs, put_all

BY = ("user", "project", "queue", "application", "processing_type", "cpu_model")
SCORES = ("score_cpu", "score_mem", "score_io", "cpu_efficiency", "sum")
COLUMNS = ["name", "score", "coverage", "node_h", "n_jobs", "spread"]


def made(session: Session) -> list[Row]:
    """Scores of the made-up jobs, which a store keeps."""
    put_all(session.store, made_jobs(300))
    issues = [
        {"job_id": str(number), "area": "io", "severity": "major", "share_frac": number / 300}
        for number in range(0, 300, 3)
    ]
    detected(session.store, 0, issues, read_b_s=1.0)
    session.scores.compute()
    rows: list[Row] = session.tables.scores().rows.to_pylist()
    return rows


def ranked(rows: list[Row], by: str, score: str, weight: str) -> list[dict[str, Any]]:
    """The ranking by the definition: weighted mean and deviation over the jobs that have the score."""
    column = "score_sum" if score == "sum" else score
    listed = []
    for name in {row[by] for row in rows}:
        mine = [row for row in rows if row[by] == name]
        known = [row for row in mine if row[column] is not None and row[weight] is not None]
        total = math.fsum(row[weight] for row in known)
        everything = math.fsum(row[weight] or 0.0 for row in mine)
        mean = math.fsum(row[column] * row[weight] for row in known) / total if total else None
        squares = math.fsum(row[weight] * (row[column] - mean) ** 2 for row in known) if known else 0.0
        listed.append(
            {
                "name": name,
                "score": mean,
                "coverage": total / everything if everything else None,
                "node_h": math.fsum(row["node_h"] or 0.0 for row in mine),
                "n_jobs": len(mine),
                "spread": math.sqrt(squares / total) if total else None,
            }
        )
    best = -1 if score == "cpu_efficiency" else 1
    # names without a score come last
    return sorted(listed, key=lambda row: (row["score"] is None, -best * (row["score"] or 0.0)))


def in_order(rows: list[dict[str, Any]], *, best_is_high: bool, by: str) -> bool:
    """True if rows lie by the better end of the interval, or by the score; names of few jobs after others."""
    end = "score_high" if best_is_high else "score_low"
    sign = 1 if best_is_high else -1
    assert by != "job" or not any(row.get(end) for row in rows)
    keys = [
        (row["n_scored"] < FEW_JOBS, sign * (row["score"] if row.get(end) is None else row[end]))
        for row in rows
        if row["score"] is not None
    ]
    unscored = [row["score"] is None for row in rows]
    return unscored == sorted(unscored) and keys == sorted(keys)


def test_rankings_are_what_the_definition_says(store: JobStore) -> None:
    session = Session(store, Settings())
    rows = made(session)
    with memory_session() as embedded:
        expected = {row["job_id"]: row for row in made(embedded)}
    for row in rows:
        for name, value in expected[row["job_id"]].items():
            same = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            assert name == "fingerprint" or row[name] == same, name
    for by in BY:
        for score in SCORES:
            for weight in ("node_h", "core_h"):
                answer = session.scores.rank(by, score, top=None, weight=weight).rows
                assert answer.column_names[: len(COLUMNS)] == COLUMNS
                told = answer.select(COLUMNS).to_pylist()
                wanted = ranked(rows, by, score, weight)
                assert in_order(answer.to_pylist(), best_is_high=score == "cpu_efficiency", by=by)
                of_name = {row["name"]: row for row in told}
                assert len(of_name) == len(told) == len(wanted)
                for other in wanted:
                    row = of_name[other["name"]]
                    for name, value in other.items():
                        same = pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value
                        assert row[name] == same, (by, score, weight, name)


def test_rows_that_ordinary_jobs_share_change_no_ranking(store: JobStore) -> None:
    few = Settings(scores=EfficiencySettings(own_rows=5))
    session = Session(store, few)
    jobs = [
        {**row, "counters": row["counters"] if number % 5 else None}
        for number, row in enumerate(made_jobs(300))
    ]
    put_all(store, jobs)
    session.scores.compute()
    shared = [row for row in session.tables.scores().rows.to_pylist() if row["job_id"] is None]
    assert sum(row["n_jobs"] for row in shared) > 60
    with memory_session() as embedded:
        put_all(embedded.store, jobs)
        embedded.scores.compute()
        for by in ("user", "queue"):
            mine, wanted = (each.scores.rank(by, top=None).rows.to_pylist() for each in (session, embedded))
            for row, other in zip(mine, wanted, strict=True):
                assert {name: row[name] for name in ("name", "n_jobs", "n_scored", "differs")} == {
                    name: other[name] for name in ("name", "n_jobs", "n_scored", "differs")
                }
                assert row["score"] == pytest.approx(other["score"], rel=1e-9)
                assert row["spread"] == pytest.approx(other["spread"], rel=1e-6)
        assert not {row["name"] for row in session.scores.rank("job", top=None).rows.to_pylist()} & {None}


def test_a_window_a_variant_and_a_number_of_names_choose(store: JobStore) -> None:
    session = Session(store, Settings())
    rows = made(session)
    noon = Window.of("2018-08-01T12:00:00/2018-08-02T12:00:00")
    inside = [row for row in rows if noon.start <= row["end_time"] < noon.end]
    (first, *_) = ranked(inside, "project", "score_mem", "node_h")
    assert session.scores.rank("project", "score_mem", window=noon, top=1).to_pandas().to_dict("records")[0][
        "score"
    ] == pytest.approx(first["score"])
    of_hsw = [{**row, "score_cpu": row["score_cpu"] if row["variant"] == "hsw" else None} for row in rows]
    (first, *_) = ranked(of_hsw, "user", "score_cpu", "node_h")
    answer = session.scores.rank("user", "score_cpu", variant="hsw")
    by_name = {row["name"]: row["score"] for row in answer}
    assert by_name[first["name"]] == pytest.approx(first["score"])
    assert not any("definitions" in note for note in answer.notes)
    jobs = session.scores.rank("job", "sum", window=noon, top=5).rows
    worst = sorted((row["score_sum"] for row in inside if row["score_sum"] is not None), reverse=True)
    assert jobs.column("score").to_pylist() == pytest.approx(worst[:5])


def mixed(session: Session, *how: str, **more: str) -> list[str]:
    """Notes on a ranking of users, but those on who differs and on who has no interval."""
    notes = session.scores.rank("user", *how, **more).notes  # type: ignore[arg-type]
    return [note for note in notes if "differs" not in note and "interval" not in note]


def test_a_ranking_says_what_it_mixes(store: JobStore) -> None:
    session = Session(store, Settings())
    made(session)
    notes = mixed(session, "score_cpu")
    assert notes[0].startswith("score_cpu missing: ")
    assert notes[1].startswith("mixed definitions of score_cpu ")
    assert "hsw" in notes[1]
    assert "zen4" in notes[1]
    assert any("assume a node size" in note for note in notes)
    assert "different numbers of scores per job" in " ".join(mixed(session, "sum"))
    (note,) = mixed(session, "cpu_efficiency", weight="core_h")
    assert note == (
        "cpu_efficiency missing: CPU time above wall time x cores 100 % of the unscored core-hours"
    )


def test_names_of_equal_jobs_have_no_spread(store: JobStore) -> None:
    session = Session(store, Settings())
    same = [job(number, user="ann", wall_s=1234.5, cores=3, cpu_s=1000.1) for number in range(50)]
    put_all(store, [*same, job("other", user="bob", cpu_s=None, end_time=START)])
    session.scores.compute()
    rows = {row["name"]: row for row in session.scores.rank("user").rows.to_pylist()}
    assert rows["ann"]["spread"] == 0.0
    assert rows["ann"]["coverage"] == 1.0
    assert (rows["bob"]["score"], rows["bob"]["coverage"], rows["bob"]["n_scored"]) == (None, 0.0, 0)


def test_what_cannot_be_ranked_is_refused(store: JobStore) -> None:
    session = Session(store, Settings())
    with raised(NoResultError):
        session.scores.rank("user").to_pandas()
    for by, score, more in (
        ("state", "score_cpu", {}),
        ("user", "speed", {}),
        ("user", "score_cpu", {"weight": "jobs"}),
        ("user", "cpu_efficiency", {"variant": "hsw"}),
    ):
        with pytest.raises(UsageError):
            session.scores.rank(by, score, **more).to_pandas()  # type: ignore[arg-type]
