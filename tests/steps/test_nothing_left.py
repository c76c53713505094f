"""Windows of which cleaning leaves nothing: what is said, and that no run is left behind."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from esjobs.api.session import Session
from esjobs.core.errors import EsjobsError, NoResultError
from esjobs.speed import chain
from tests.messages import raised
from tests.steps.grids import grid_jobs, load

WINDOW = "2018-08-10/2018-08-12"


def without_events() -> pd.DataFrame:
    """250 jobs: 3 failed, 247 without events; a failed one counts under the first rule only."""
    jobs = grid_jobs(np.random.default_rng(1), np.arange(9.0, 19.0), tasks=1)
    jobs["events"] = 0
    jobs.loc[:2, "state"] = "failed"
    return jobs


def test_all_dropped_is_said_with_the_reasons_in_order(session: Session, tmp_path: Path) -> None:
    load(session, without_events(), tmp_path)
    steps: list[Callable[[], object]] = [session.run, lambda: session.speed.fit(WINDOW)]
    for step in steps:
        with raised(NoResultError) as caught:
            step()
        assert "esjobs aggregate" not in str(caught.value)
    with raised(NoResultError):
        session.run(tasks="task0")


def test_a_restriction_of_which_all_is_dropped_says_so(session: Session, tmp_path: Path) -> None:
    good = grid_jobs(np.random.default_rng(2), np.arange(9.0, 19.0), prefix="good", tasks=2)
    load(session, pd.concat([without_events(), good]), tmp_path)
    with raised(NoResultError):
        session.run(tasks="task0")
    with raised(NoResultError):
        session.run(tasks="task0", where="queue=SITE04")
    with raised(NoResultError):
        session.run(tasks="task7")


def test_a_fit_before_any_buckets_names_the_step_that_makes_them(session: Session, tmp_path: Path) -> None:
    load(session, without_events(), tmp_path)
    with raised(NoResultError):
        session.speed.fit()


def test_a_run_that_fails_leaves_no_run(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = grid_jobs(np.random.default_rng(2), np.arange(9.0, 19.0), tasks=2, days=4)
    load(session, good, tmp_path)
    made = session.run(WINDOW)[-1].run
    flags = session.tables.flags().to_pandas()

    def failing(*_: object, **__: object) -> None:
        raise EsjobsError("no minimum")

    late = "2018-08-12/2018-08-14"
    for step in ("fit", "correlate", "flag"):
        with monkeypatch.context() as broken:
            broken.setattr(chain, step, failing)
            with raised(EsjobsError):
                session.run(late)
        assert set(session.tables.runs().to_pandas()["run"]) == {made}
        pd.testing.assert_frame_equal(session.tables.flags().to_pandas(), flags)
    assert (
        len(session.tables.day_books(window=late).to_pandas()) == 2
    )  # the buckets are right, whatever became of the fit
    reports = session.run(late)
    assert [report.step for report in reports] == ["aggregate", "fit", "correlate", "flag"]
    assert sorted(session.tables.runs(window=late).to_pandas()["step"]) == [
        "aggregate",
        "correlate",
        "fit",
        "flag",
    ]


def test_nothing_is_listed_when_all_is_dropped_and_aggregate_alone_is(
    session: Session, tmp_path: Path
) -> None:
    load(session, without_events(), tmp_path)
    with pytest.raises(NoResultError):
        session.run()
    assert session.tables.runs().to_pandas().empty
    assert session.tables.day_books().to_pandas()["n_jobs"].sum() == 250
    session.speed.aggregate()
    assert session.tables.runs().to_pandas()["step"].tolist() == ["aggregate"]
