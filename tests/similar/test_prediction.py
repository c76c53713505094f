"""Scores predicted from planted families: recovered where there is a family, none where there is not."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.cli.main import main
from esjobs.core.errors import NoResultError, SettingsError, UsageError
from esjobs.entry import load
from esjobs.issues.one_job import job_stories
from esjobs.similar.knowledge import knowledge_base
from esjobs.similar.program_similarity import NO_PROGRAMS
from esjobs.similar.settings import SimilarSettings
from tests.conftest import memory_session
from tests.issues.made_jobs import START, put_series, series
from tests.messages import compare_text, raised
from tests.similar.made_families import (
    END,
    NOISE,
    MadeJob,
    behaviour,
    jobs_of,
    put_families,
    put_scores,
    row_of,
)

FAMILIES = 5
MEASURED = [job for family in range(FAMILIES) for job in jobs_of(family, 20)]
TARGETS = [job for family in range(FAMILIES) for job in jobs_of(family, 3, measured=False, seed=1)]
NOVEL = jobs_of(9, 2, measured=False)
JOBS = [*MEASURED, *TARGETS, *NOVEL]
WINDOW = f"{START:%Y-%m-%d}/2026-03-02"


@pytest.fixture(scope="module")
def families() -> Iterator[Session]:
    with memory_session() as session:
        put_families(session, JOBS)
        yield session


def with_settings(session: Session, **given: object) -> Session:
    """The same store asked with other settings."""
    return Session(session.store, Settings(similar=SimilarSettings(**given)))  # type: ignore[arg-type]


def truth(jobs: list[MadeJob]) -> dict[tuple[str, str], float]:
    return {(job.job_id, name): getattr(job, name) for job in jobs for name in ("score_cpu", "score_mem")}


def test_planted_scores_are_recovered_and_what_is_novel_gets_none(families: Session) -> None:
    before = families.tables.scores().rows
    report = families.similar.predict(WINDOW)
    rows = families.tables.predicted_scores().rows.to_pylist()
    expected = truth(TARGETS)
    assert {(row["job_id"], row["score_name"]) for row in rows} == set(expected)
    inside = 0
    for row in rows:
        error = abs(row["value"] - expected[row["job_id"], row["score_name"]])
        assert error < 5 * NOISE
        inside += error <= row["error_95"]
        # 100 residuals say where 95 % are, not where 68 % are
        assert row["error_68"] is None
        assert 0 < row["error_95"] < 10 * NOISE
        assert row["n_neighbours"] >= 15
        assert (row["search_step"], row["approach"], row["variant"]) == ("B", "dynamic", "skx")
        assert row["static"] is row["distance_limit_a"] is None
        assert row["nearest"] <= row["distance_limit_b"]
        assert row["metrics"] == "cpu_load,read_b_s"
    assert inside >= 0.8 * len(rows)
    assert report.rows_in == 2 * (len(TARGETS) + len(NOVEL)) == report.rows_out + report.n_dropped
    assert report.dropped == {"no similar job within the limit": 2 * len(NOVEL)}
    # what was measured is as it was, and again gives the same
    assert families.tables.scores().rows.equals(before)
    families.similar.predict(WINDOW)
    assert families.tables.predicted_scores().rows.to_pylist() == rows


def test_a_metric_that_predicts_nothing_is_dropped() -> None:
    rng = np.random.default_rng(2)
    listed = {job.job_id: behaviour(job) for job in MEASURED}
    for mine in listed.values():
        # a level of the job's own
        mine.append(series("clock_hz", "node", "n1", np.full(len(mine[0].values), 1e9 * rng.uniform(1, 4))))
    with memory_session() as session:
        put_series(session, listed, end=END)
        put_scores(session, [row_of(job) for job in MEASURED])
        weights = dict(knowledge_base(session.store, SimilarSettings()).weighed)
    assert weights.pop("clock_hz") == 0
    assert min(weights.values()) > 1


def test_rankings_have_predictions_only_when_asked_and_say_their_share(families: Session) -> None:
    families.similar.predict(WINDOW)
    plain = families.scores.rank("application", "score_cpu", top=None)
    assert "predicted_share" not in plain.rows.column_names
    assert {row["n_scored"] for row in plain.rows.to_pylist()} == {20, 0}
    asked = families.scores.rank("application", "score_cpu", top=None, predicted=True)
    by_name = {row["name"]: row for row in asked.rows.to_pylist()}
    assert by_name["app1"]["n_scored"] == 23
    assert by_name["app1"]["predicted_share"] == pytest.approx(3 / 23)
    assert by_name["app1"]["coverage"] == pytest.approx(1.0)
    assert by_name["app9"]["predicted_share"] is None
    measured = [job.score_cpu for job in MEASURED if job.family == 1]
    guessed = [
        row["value"]
        for row in families.tables.predicted_scores().rows.to_pylist()
        if row["application"] == "app1" and row["score_name"] == "score_cpu"
    ]
    assert by_name["app1"]["score"] == pytest.approx(sum(measured + guessed) / 23)
    assert any("13 % of the node-hours with score_cpu are predicted" in note for note in asked.notes)
    jobs = families.scores.rank("job", "score_cpu", top=None, predicted=True).rows.to_pylist()
    assert len(jobs) == len(MEASURED) + len(TARGETS)
    assert {row["name"] for row in jobs if row["predicted_share"]} == {job.job_id for job in TARGETS}
    assert [row["score"] for row in jobs] == sorted((row["score"] for row in jobs), reverse=True)
    with raised(UsageError):
        families.scores.rank("user", "score_io", predicted=True)


def test_the_page_of_a_job_says_that_a_score_is_predicted(families: Session, tmp_path: Path) -> None:
    families.similar.predict(WINDOW)
    page = families.job(TARGETS[0].job_id).save(tmp_path / "job.html").read_text()
    assert "score_cpu, predicted" in page
    assert "not measured" in page
    assert "predicted" not in families.job(MEASURED[0].job_id).html
    asked = [("c", TARGETS[0].job_id), ("c", MEASURED[0].job_id)]
    stories = list(job_stories(families.store, asked))
    assert [len(story.predicted) for story in stories] == [2, 0]
    assert [story.predicted for story in stories] == [families.job(job_id).predicted for _, job_id in asked]


def test_scores_made_again_leave_older_predictions_out() -> None:
    """A job that is measured meanwhile is not counted twice."""
    with memory_session() as session:
        put_families(session, JOBS)
        session.similar.predict(WINDOW)
        put_scores(session, [row_of(job, "later") for job in JOBS])
        asked = session.scores.rank("application", "score_cpu", top=None, predicted=True)
        assert {row["predicted_share"] for row in asked.rows.to_pylist()} == {0.0, None}
        assert any("older than the scores" in note for note in asked.notes)
        assert not session.job(TARGETS[0].job_id).predicted
        put_scores(session, [row_of(job, "later") for job in MEASURED])
        session.similar.predict(WINDOW)
        assert session.tables.predicted_scores().rows.num_rows == 0


def test_what_cannot_be_predicted_is_counted() -> None:
    with memory_session() as session:
        put_families(session, MEASURED)
        odd = jobs_of(0, 4, measured=False, seed=3)
        put_scores(session, [row_of(job) for job in (*MEASURED, *odd)])
        put_series(
            session,
            {
                odd[0].job_id: behaviour(odd[0], n=40),
                odd[1].job_id: behaviour(odd[1])[:1],
                odd[2].job_id: [
                    series(each.metric, "node", "n1", each.values[:200]) for each in behaviour(odd[2])
                ],
            },
            load="odd",
        )
        report = session.similar.predict(WINDOW)
        assert report.dropped == {
            "with series of less than 30 min": 2,
            "without all of the metrics": 2,
            "no measured job of similar duration and number of nodes": 2,
            "without time series in any of the metrics": 2,
        }
        assert (report.rows_in, report.rows_out) == (8, 0)


def test_evaluation_has_all_ways_and_finds_the_planted_noise(families: Session) -> None:
    rows = families.similar.evaluate().to_pandas().to_dict("records")
    assert len(rows) == 2 * 2 * 9
    for row in rows:
        # those of the half of the runs that had no part in the limits
        assert row["n_jobs"] == len(MEASURED) / 2
        if row["approach"] != "dynamic":
            assert row["reason"] == NO_PROGRAMS
            continue
        assert row["predicted_frac"] > 0.95
        # of Gaussian noise around a mean of many the mean absolute error is 0.8 standard deviations
        assert 0.6 * NOISE < row["mae"] < 1.1 * NOISE
        assert row["mse"] < 2 * NOISE**2
        assert row["over_10_frac"] == 0.0
        assert 0.55 < row["cover_68"] < 0.8
        assert 0.88 < row["cover_95"] <= 1.0


def test_jobs_of_one_user_do_not_vouch_for_each_other() -> None:
    """A family that one user runs on one day is one run: nothing else is like it."""
    scores = {6: (100.0, 0.0), 7: (0.0, 100.0)}
    alone = [
        replace(job, score_cpu=scores[family][0], score_mem=scores[family][1])
        for family in scores
        for job in jobs_of(family, 10, users=1)
    ]
    with memory_session() as session:
        put_families(session, [*MEASURED, *alone])
        base = knowledge_base(session.store, SimilarSettings())
        asked = [key[1] for key, limiting in zip(base.keys, base.limiting, strict=True) if not limiting]
        others = len(set(asked) - {job.job_id for job in alone})
        assert 0 < others < len(asked)
        rows = session.similar.evaluate().to_pandas().to_dict("records")
        for row in rows:
            if row["approach"] == "dynamic":
                assert row["predicted_frac"] == pytest.approx(others / len(asked))


def test_settings_overrule_the_knowledge_base(families: Session) -> None:
    none = with_settings(families, distance_limit_b=0.0).similar.predict(WINDOW)
    assert none.rows_out == 0
    every = with_settings(families, distance_limit_b=1000.0, aggregation="mean").similar.predict(WINDOW)
    assert every.rows_out == every.rows_in
    rows = families.tables.predicted_scores().rows.to_pylist()
    assert {(row["distance_limit_b"], row["aggregation"], row["n_neighbours"]) for row in rows} == {
        (1000.0, "mean", 100)
    }
    one = with_settings(families, metrics=("cpu_load",)).similar.predict(WINDOW)
    assert one.rows_out > 0
    families.similar.predict(WINDOW)


def test_what_cannot_be_done_is_said(families: Session, tmp_path: Path) -> None:
    with raised(NoResultError):
        with_settings(families, approach="combined-1").similar.predict(WINDOW)
    with raised(UsageError):
        with_settings(families, metrics=("speed",)).similar.predict(WINDOW)
    with memory_session() as session:
        put_families(session, NOVEL)
        with raised(NoResultError):
            session.similar.predict(WINDOW)
        put_families(session, [*MEASURED[:3], *NOVEL])
        with raised(NoResultError):
            session.similar.predict(WINDOW)
    wrong = tmp_path / "esjobs.toml"
    wrong.write_text("[similar]\naggregation = 'best'\n")
    with raised(SettingsError):
        load(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "distance_limit_b = 0.5\ndistance_limit_a = 0.1",
        'metrics = ["cpu_load", "read_b_s", "cpu_load"]',
        "distance_limit_b = nan",
        "static = 1.1",
        "distance_limit_a = -0.1",
        "distance_limit_b = true",
        "most_jobs = 0",
    ],
)
def test_limits_that_make_no_sense_are_refused(text: str, tmp_path: Path) -> None:
    wrong = tmp_path / "esjobs.toml"
    wrong.write_text(f"[similar]\n{text}\n")
    with raised(SettingsError):
        load(wrong)


def test_limits_of_which_one_alone_is_set_are_taken(tmp_path: Path) -> None:
    given = tmp_path / "esjobs.toml"
    given.write_text("[similar]\ndistance_limit_b = 0.5\n")
    assert load(given).section(SimilarSettings).distance_limit_b == 0.5
    given.write_text("[similar]\ndistance_limit_b = 0.1\ndistance_limit_a = 0.1\n")
    assert load(given).section(SimilarSettings).distance_limit_a == 0.1


def test_the_commands(tmp_path: Path) -> None:
    store = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    with esjobs.open(store) as opened:
        put_families(opened, JOBS)
    for arguments in (["similar", "predict", "--window", WINDOW], ["similar", "evaluate", "--most", "50"]):
        ran = CliRunner().invoke(main, ["--store", store, *arguments])
        assert ran.exit_code == 0, ran.output
    ranked = CliRunner().invoke(
        main, ["--store", store, "rank", "--by", "user", "--score", "score_cpu", "--predicted"]
    )
    compare_text(ranked.stderr)
    shown = CliRunner().invoke(main, ["--store", store, "show", "predicted_scores", "--format", "csv"])
    assert len(shown.stdout.splitlines()) == 1 + 2 * len(TARGETS)
    nearest = CliRunner().invoke(main, ["--store", store, "similar", "--top", "1", TARGETS[0].job_id])
    assert nearest.exit_code == 0, nearest.output
