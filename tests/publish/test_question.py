"""Questions: their ids last, what is stored gives them back, and any kind may ask and publish."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

import esjobs.schema.catalogue
from esjobs.api.session import Session
from esjobs.core.columns import PROVENANCE, RUN, SCOPE
from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.report import RunReport
from esjobs.core.rules import CleaningRules
from esjobs.core.tables import Table, column, columns
from esjobs.core.window import Window
from esjobs.publish.finding import find_run, read_results
from esjobs.publish.publication import Outcome, read_table, rows_table
from esjobs.publish.publisher import Publisher
from esjobs.publish.question import Question
from esjobs.publish.stored import StoredRun, stored_runs
from esjobs.render.report import rows_of
from esjobs.schema.kinds import Kind
from esjobs.schema.runs import ACCOUNT, LATEST_RUNS, RUNS
from esjobs.schema.speed import SPEED
from esjobs.speed.question import SpeedQuestion
from esjobs.speed.settings import FitSettings
from esjobs.store.base import JobStore
from esjobs.store.duck.store import DuckStore
from tests.conftest import NOW
from tests.messages import raised

AUGUST = Window.parse("2018-08-01/2018-09-01")
VERSIONS = {"method_version": "2", "resolver": "1-43015080"}


def speed(
    window: Window,
    rules: CleaningRules,
    fit: FitSettings,
    tasks: Sequence[str] = (),
    where: Sequence[str] = (),
) -> SpeedQuestion:
    """A question to the methods of today."""
    return SpeedQuestion.ask(SPEED, window, SimpleNamespace(rules=rules, fit=fit), tasks, where)


RULES = {
    "finished_states": ["finished"],
    "min_events": 1,
    "min_cores": 1,
    "min_wall_s": 60.0,
    "max_wall_s": 2592000.0,
    "min_efficiency": 0.0,
    "max_efficiency": 2.0,
    "excluded_types": ["merge", "pmerge", "panda*", "ganga*", "hammercloud*", "gangarobot*"],
}
FIT = {
    "methods": ["gamma", "paper"],
    "min_bucket_jobs": 20,
    "min_name_jobs": 50,
    "deviation_limit": 0.2,
}
"""Settings as a run of some time ago has them; today's may have other names."""


def test_ids_of_runs_that_people_have_in_their_stores_last() -> None:
    usual = SpeedQuestion(SPEED, AUGUST, {"rules": RULES, "fit": FIT}, (), (), VERSIONS)
    assert usual.run == "d5f697dbac34"
    settings = {"rules": {**RULES, "min_wall_s": 30.0}, "fit": {**FIT, "methods": ["paper"]}}
    other = replace(usual, settings=settings, tasks=("task1", "task0"), where=("site=X", "cpu_model=Y"))
    assert other.run == "e83b4d0a3d12"


def test_every_part_of_a_question_moves_its_id() -> None:
    usual = speed(AUGUST, CleaningRules(), FitSettings())
    others = [
        speed(Window.parse("2018-08-01/2018-08-31"), CleaningRules(), FitSettings()),
        speed(AUGUST, CleaningRules(min_cores=2), FitSettings()),
        speed(AUGUST, CleaningRules(), FitSettings(min_name_jobs=51)),
        speed(AUGUST, CleaningRules(), FitSettings(), ["1"]),
        speed(AUGUST, CleaningRules(), FitSettings(), (), ["site=1"]),
        *(replace(usual, versions={**usual.versions, name: "0"}) for name in usual.versions),
        replace(usual, kind=replace(SPEED, named=True)),
    ]
    assert len({usual.run, *(each.run for each in others)}) == 1 + len(others)


def test_a_stored_run_keeps_its_question_and_the_versions_of_then(session: Session) -> None:
    rules = CleaningRules(finished_states=("finished", "done"))
    asked = replace(
        speed(AUGUST, rules, FitSettings(), ("1",), ("site=X",)), versions={"method_version": "0"}
    )
    Publisher(session.store, lambda: NOW).publish(asked, [Outcome(RunReport("fit", asked.run, 1, 1, 0.0))])
    (stored,) = stored_runs(session.store, SPEED)
    again = SpeedQuestion.of_run(stored)
    assert (again, again.run, again.describe()) == (asked, stored.run, stored.settings)
    assert (again.rules, again.fit) == (rules, FitSettings())
    assert stored.headline == "gamma"


RANKS = Table(
    "ranks",
    "a table replaced per run",
    "run",
    (RUN, column("level", "keyword", ""), column("score", "number", ""), *PROVENANCE, *SCOPE),
    made_by="rank",
    order=columns("level -score"),
)
SCORES = Table(
    "scores",
    "a table replaced per day",
    "day",
    (column("day", "day", ""), column("score", "number", "")),
    made_by="score",
)


def _levels(settings: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    return {"level": settings["ranking"]["levels"]}


RANKING = Kind("ranking", (RANKS,), ("ranking",), {"ranker": "1"}, _levels)


@pytest.fixture
def store() -> Iterator[JobStore]:
    opened = DuckStore(tables=(*ACCOUNT, LATEST_RUNS, RANKS, SCORES, *SPEED.tables))
    yield opened
    opened.close()


def test_a_capability_of_another_kind_publishes_per_run_and_per_day_at_once(store: JobStore) -> None:
    settings = SimpleNamespace(ranking=FitSettings(), rules=CleaningRules())
    asked = replace(
        Question.ask(RANKING, AUGUST, settings), settings={"ranking": {"levels": ["user", "site"]}}
    )
    assert asked.describe()["kind"] == "ranking"
    rows = [
        {"level": level, "score": score}
        for level, score in (("cpu", 1.0), ("site", 1.0), ("site", 2.0), ("user", None), ("user", 0.5))
    ]
    days = rows_table(SCORES, [{"day": date(2018, 8, 3), "score": 0.25}])
    scored = Outcome(
        RunReport("score", asked.run, 1, 1, 0.0),
        written=[store.replace(SCORES, "2018-08-03", days.to_batches())],
    )
    ranked = Outcome(RunReport("rank", asked.run, 1, 5, 0.0), {RANKS: rows_table(RANKS, rows)})
    assert read_table(store, SCORES).num_rows == 0
    reports = Publisher(store, lambda: NOW).publish(asked, [scored, ranked])
    assert [report.step for report in reports] == ["score", "rank"]
    assert read_table(store, SCORES).num_rows == 1
    assert {row["step"] for row in read_table(store, RUNS).to_pylist()} == {"score", "rank"}

    found = find_run(store, RANKING, ("rank",))
    shown = read_results(store, RANKS, found).to_pylist()
    order = [("user", 0.5), ("user", None), ("site", 2.0), ("site", 1.0), ("cpu", 1.0)]
    assert [(row["level"], row["score"]) for row in shown] == order
    origins = {(row["run"], row["window_start"], row["window_days"], row["scope"]) for row in shown}
    assert origins == {(asked.run, AUGUST.start, 31, "all")}
    with raised(NoResultError):
        find_run(store, RANKING, ("rank",), "2198")
    with raised(NoResultError):
        find_run(store, replace(RANKING, name="another"), ("rank",))
    assert stored_runs(store, SPEED) == []
    assert stored_runs(store, replace(RANKING, name="another")) == []


def test_rows_of_a_day_are_not_written_as_those_of_a_run(store: JobStore) -> None:
    asked = Question.ask(replace(RANKING, sections=()), AUGUST, None)
    rows = rows_table(SCORES, [{"day": date(2018, 8, 3), "score": 0.25}])
    outcome = Outcome(RunReport("score", asked.run, 1, 1, 0.0), {SCORES: rows})
    with raised(UsageError):
        Publisher(store, lambda: NOW).publish(asked, [outcome])
    assert read_table(store, RUNS).num_rows == 0


def test_a_report_has_the_rows_of_other_kinds_beside_its_run(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the same window, else the latest; none where nobody made any."""
    monkeypatch.setattr(esjobs.schema.catalogue, "KINDS", (SPEED, RANKING))
    speed = StoredRun(SPEED, "abc", AUGUST, {"tasks": [], "where": []}, {"fit": NOW}, AUGUST.end)
    assert rows_of(store, RANKS, speed).num_rows == 0
    july = Window.parse("2018-07-01/2018-08-01")
    for window, score in ((AUGUST, 1.0), (july, 2.0)):
        asked = replace(
            Question.ask(RANKING, window, SimpleNamespace(ranking=FitSettings())),
            settings={"ranking": {"levels": ["user"]}},
        )
        rows = rows_table(RANKS, [{"level": "user", "score": score}])
        Publisher(store, lambda: NOW).publish(
            asked, [Outcome(RunReport("rank", asked.run, 1, 1, 0.0), {RANKS: rows})]
        )
    for window, score in ((AUGUST, 1.0), (july, 2.0), (Window.parse("2018-06-01/2018-07-01"), 1.0)):
        found = rows_of(store, RANKS, replace(speed, window=window))
        assert found.column("score").to_pylist() == [score], window
