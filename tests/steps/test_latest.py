"""Which run is shown when none is named: that of the newest window, whatever was made last."""

import itertools
from collections.abc import Iterator
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from esjobs.api.session import Session
from esjobs.core.arguments import Filters
from esjobs.core.errors import NoResultError, UsageError
from esjobs.render.report import report_data
from esjobs.speed.settings import FitSettings
from tests.conftest import NOW, memory_session
from tests.messages import raised
from tests.steps.grids import grid_jobs, load

EARLY, MIDDLE, LATE = "2018-08-10/2018-08-12", "2018-08-12/2018-08-14", "2018-08-14/2018-08-16"


def ticking_session() -> Session:
    """A session whose clock moves on, so that it is known what was made last."""
    session = memory_session()
    seconds = itertools.count()
    return Session(session.store, session.settings, clock=lambda: NOW + timedelta(seconds=next(seconds)))


def six_days() -> pd.DataFrame:
    declared = np.arange(9.0, 21.0)
    return grid_jobs(np.random.default_rng(1), declared, declared, tasks=3, jobs=126, days=6)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with ticking_session() as session:
        load(session, six_days(), tmp_path_factory.mktemp("latest"))
        yield session


@pytest.fixture
def session(filled: Session) -> Iterator[Session]:
    """The jobs, and no runs."""
    yield filled
    while len(set(filled.tables.runs().to_pandas()["run"])) > 1:
        filled.runs.prune(1)
        last = filled.tables.runs().to_pandas()["run"].iloc[0]
        _forget(filled, last)
    for run in set(filled.tables.runs().to_pandas()["run"]):
        _forget(filled, run)


def _forget(session: Session, run: str) -> None:
    from esjobs.publish.finding import retired_results
    from esjobs.publish.latest import publish
    from esjobs.schema.speed import SPEED

    steps = session.tables.runs(run=run).to_pandas()["step"].tolist()
    publish(session.store, SPEED, retired_results(SPEED, run, steps))


def test_the_newest_window_is_shown_not_the_run_made_last(session: Session) -> None:
    late = session.run(LATE)[-1].run
    session.run(EARLY)
    for what in ("factors", "fits", "lines", "flags", "fit_summaries", "components", "tasks", "residuals"):
        assert set(session.tables.read(what).to_pandas()["run"]) == {late}, what
        shown = session.runs.shown(what)
        assert shown is not None
        assert shown.title == f"run {late} [{LATE}]"
    assert set(report_data(session.store).factors["run"].to_pylist()) == {late}  # type: ignore[index]
    assert session.runs.shown("buckets") is None


def test_of_one_window_the_run_made_last_is_shown(session: Session) -> None:
    first = session.run(LATE)[-1].run
    other = Session(
        session.store,
        session.settings.model_copy(
            update={"fit": session.settings.section(FitSettings).model_copy(update={"min_name_jobs": 40})}
        ),
        clock=lambda: NOW + timedelta(days=1),
    )
    second = other.run(LATE)[-1].run
    assert first != second
    assert set(session.tables.flags().to_pandas()["run"]) == {second}
    later = Session(session.store, session.settings, clock=lambda: NOW + timedelta(days=2))
    later.run(LATE)
    assert set(session.tables.flags().to_pandas()["run"]) == {first}


def test_a_restricted_run_is_shown_when_named_or_alone(session: Session) -> None:
    alone = session.run(LATE, where="queue=SITE01", tasks=["task0", "task1"])[-1].run
    assert set(session.tables.factors().to_pandas()["run"]) == {alone}
    shown = session.runs.shown("factors")
    assert shown is not None
    assert shown.title == (
        f"run {alone} [{LATE}], restricted to task0, restricted to task1, restricted to queue=SITE01"
    )
    early = session.run(EARLY)[-1].run
    session.run(LATE, where="queue=SITE01")
    assert set(session.tables.factors().to_pandas()["run"]) == {early}
    assert set(session.tables.factors(run=alone).to_pandas()["run"]) == {alone}
    assert set(session.tables.factors(window=LATE).to_pandas()["run"]) != {early}


def test_steps_alone_take_the_factors_fitted_last(session: Session) -> None:
    """Whoever fits a restriction and goes on by steps means that fit."""
    session.run(LATE)
    restricted = session.speed.fit(LATE, tasks="task0").run
    assert session.speed.correlate(LATE).run == session.speed.flag(LATE).run == restricted


def test_only_a_complete_run_is_the_latest(session: Session) -> None:
    early = session.run(EARLY)[-1].run
    session.speed.aggregate(LATE)
    fitted = session.speed.fit(LATE)
    late = fitted.run
    (note,) = (note for note in fitted.notes if "latest" in note)
    assert f"run {early}" in note
    assert f"esjobs show factors --run {late}" in note
    for _ in ("fit", "correlate"):
        for what in ("factors", "flags"):
            assert set(session.tables.read(what).to_pandas()["run"]) == {early}
        assert set(report_data(session.store).factors["run"].to_pylist()) == {early}  # type: ignore[index]
        with raised(NoResultError):
            report_data(session.store, late)
        session.speed.correlate(LATE)
    session.speed.flag(LATE)
    assert set(session.tables.factors().to_pandas()["run"]) == {late}


def test_a_step_alone_takes_the_latest_away_from_nobody(session: Session) -> None:
    """Of any window: whoever reads the latest sees one complete run, as before the step."""
    runs = {EARLY: session.run(EARLY)[-1].run, LATE: session.run(LATE)[-1].run}
    for window in (LATE, EARLY):
        for step in (session.speed.fit, session.speed.correlate, session.speed.flag):
            report = step(window)
            (shown,) = [
                row for row in session.tables.latest_runs().to_pandas().to_dict("records") if row["shown"]
            ]
            assert shown["run"] == runs[LATE]
            for what in ("factors", "stability_checks", "lines", "flags", "fit_summaries"):
                assert set(session.tables.read(what).to_pandas()["run"]) == {runs[LATE]}, (step, window, what)
                assert set(session.tables.read(what, run=runs[window]).to_pandas()["run"]) == {runs[window]}
            assert not any("remains the latest run" in note for note in report.notes)


def test_in_a_store_of_one_run_a_step_alone_leaves_it_the_latest(session: Session) -> None:
    only = session.run(LATE)[-1].run
    for step, made in ((session.speed.fit, "lines and verdicts"), (session.speed.correlate, "verdicts")):
        report = step(LATE)
        assert f"this run already had {made}; they were computed again and published with it" in report.notes
        assert set(session.tables.latest_runs().to_pandas()["run"]) == {only}
        assert set(session.tables.flags().to_pandas()["run"]) == {only}


def test_a_fit_that_has_lines_only_gets_them_again_and_no_verdicts(session: Session) -> None:
    session.speed.aggregate(LATE)
    session.speed.fit(LATE)
    session.speed.correlate(LATE)
    report = session.speed.fit(LATE)
    assert "this run already had lines; they were computed again and published with it" in report.notes
    assert len(session.tables.lines().to_pandas())
    with raised(NoResultError):
        session.tables.flags().to_pandas()


def test_what_lacks_of_a_run_is_told_by_the_command_that_makes_it(session: Session) -> None:
    with raised(NoResultError):
        session.tables.flags().to_pandas()
    session.speed.aggregate(LATE)
    first = session.speed.fit(LATE).run
    for what in ("lines", "flags"):
        for chosen in (Filters(), Filters(run=first), Filters(window=LATE)):
            with raised(NoResultError):
                session.tables.read(what, **chosen).to_pandas()
    with raised(NoResultError):
        report_data(session.store)
    with raised(NoResultError):
        session.speed.flag(EARLY)
    session.speed.fit(LATE, tasks="task0")
    # flag alone would go on with the fit made last, which is another run
    with raised(NoResultError):
        session.tables.flags(run=first).to_pandas()
    with raised(NoResultError):
        session.tables.flags(run="nonesuch").to_pandas()


def test_factors_without_any_complete_run_are_shown(session: Session) -> None:
    session.speed.aggregate(LATE)
    fitted = session.speed.fit(LATE)
    assert not any("latest" in note for note in fitted.notes)
    assert set(session.tables.factors().to_pandas()["run"]) == {fitted.run}
    with raised(NoResultError):
        session.tables.flags().to_pandas()


def test_a_window_without_end_is_not_the_latest_for_ever(session: Session) -> None:
    """It counts with the last day that it has data of; of equals the one made last is shown."""
    endless = session.run("2018-08-10/9999-01-01")[-1].run
    assert set(session.tables.flags().to_pandas()["run"]) == {endless}
    late = session.run(LATE)[-1].run
    assert set(session.tables.flags().to_pandas()["run"]) == {late}
    session.run(EARLY)
    assert set(session.tables.flags().to_pandas()["run"]) == {late}


def test_rows_say_how_long_their_window_is_and_what_it_was_restricted_to(session: Session) -> None:
    session.run(LATE)
    session.run(EARLY, where="queue=SITE01", tasks=["task1", "task0"])
    scopes = {LATE: "all", EARLY: "queue=SITE01, task_id=task0, task_id=task1"}
    for what in ("factors", "fits", "lines", "flags", "fit_summaries", "components", "tasks", "residuals"):
        for window, scope in scopes.items():
            rows = session.tables.read(what, window=window).to_pandas()
            assert set(zip(rows["window_days"], rows["scope"], strict=True)) == {(2, scope)}, what
    entries = session.tables.runs().to_pandas()
    assert set(zip(entries["window_days"], entries["scope"], strict=True)) == {
        (2, scope) for scope in scopes.values()
    }
    latest = session.tables.latest_runs().to_pandas()
    assert set(zip(latest["scope"], latest["shown"], strict=True)) == {
        (scopes[LATE], True),
        (scopes[EARLY], False),
    }


def test_the_report_names_run_window_and_restriction(session: Session) -> None:
    run = session.run(LATE, tasks="task0")[-1].run
    page = session.report().html
    head = page[: page.index("<section")]
    for words in (run, "2018-08-14", "2018-08-16", "Restricted to", "task0"):
        assert words in head
    session.run(LATE)
    page = session.report().html
    assert "Restricted to" not in page[: page.index("<section")]


def test_the_latest_is_compared_with_the_window_before_it(session: Session) -> None:
    for window in (LATE, EARLY, "2018-08-11/2018-08-14", MIDDLE):
        session.run(window)
    session.run(LATE, tasks="task0")
    first, second = session.speed.compare().details
    assert (str(first.window), str(second.window)) == (MIDDLE, LATE)
    changes = session.speed.compare().to_pandas()
    assert set(changes["run_a"]) == {first.run}
    assert set(changes["run_b"]) == {second.run}
    pd.testing.assert_frame_equal(changes, session.speed.compare(first.run, second.run).to_pandas())
    early = session.runs.shown("fits", window=EARLY)
    assert early is not None
    assert set(session.speed.compare(early.run).to_pandas()["run_a"]) == {early.run}
    assert set(session.speed.compare(early.run).to_pandas()["run_b"]) == {second.run}
    with raised(UsageError):
        session.speed.compare(second.run).to_pandas()


def test_without_a_window_as_long_there_is_nothing_to_compare_with(session: Session) -> None:
    session.run("2018-08-10/2018-08-13")
    session.run(LATE)
    with raised(NoResultError):
        session.speed.compare().to_pandas()


def test_pruning_keeps_the_latest(session: Session) -> None:
    late = session.run(LATE)[-1].run
    session.run(EARLY)
    restricted = session.run(LATE, tasks="task0")[-1].run
    session.runs.prune(2)
    assert set(session.tables.runs().to_pandas()["run"]) == {late, restricted}
    session.runs.prune(1)
    assert set(session.tables.runs().to_pandas()["run"]) == {late}


def test_a_chart_holds_flags_and_line_of_one_run(session: Session) -> None:
    """Lines of a newer window that nobody has judged yet are not drawn under the flags of an older one."""
    session.run(EARLY)
    drawn = str(session.speed.line().plot().to_dict())
    session.speed.fit(LATE)
    session.speed.correlate(LATE)
    assert str(session.speed.line().plot().to_dict()) == drawn
