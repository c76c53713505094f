"""What a person sees in a notebook: completion, representations, the headline, windows of any form."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import EsjobsError, WindowError
from esjobs.core.frames import frame_of
from esjobs.core.window import Window
from esjobs.records.demo import Grid
from tests.messages import raised

JULY = Window.parse("2025-07-01/2025-08-01")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A small grid, run once."""
    grid = Grid.of_size(20_000, seed=1)
    opened = esjobs.open("duckdb::memory:")
    opened.store.put_jobs((batch for day in grid.days(20_000) for batch in grid.jobs(day)), "made up")
    opened.run()
    return opened


def test_completion_shows_what_users_need() -> None:
    shown = dir(esjobs)
    assert shown == sorted(esjobs.__all__)
    assert {"open", "Session", "Window", "Settings", "EsjobsError", "NoJobsError"} <= set(shown)
    for name in shown:
        assert getattr(esjobs, name) is not None
    errors = {kind.__name__ for kind in _below(EsjobsError)} | {"EsjobsError"}
    assert errors - {name for name in errors if name.startswith("_")} >= set(esjobs.__all__) - {
        *("open", "Session", "Window", "Settings", "__version__")
    }
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        esjobs.opne  # noqa: B018


def _below(kind: type[Exception]) -> set[type[Exception]]:
    return {kind for sub in kind.__subclasses__() for kind in (sub, *_below(sub))}


def test_pandas_is_imported_by_frames_only() -> None:
    code = "import sys, esjobs; esjobs.Session; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_who_aggregates_does_not_wait_for_the_fits(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,queue,end_time\n1,A,2018-08-10T12:00:00Z\n")
    code = f"""
import sys, esjobs
with esjobs.open("duckdb::memory:") as session:
    session.ingest("jobs", {str(jobs)!r})
    session.speed.aggregate()
print([name for name in ("scipy", "numba", "fitters") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr


def test_arrow_answers_are_what_frames_are_made_of(session: Session) -> None:
    asked = {"by": "queue", "metrics": ["jobs", "efficiency"], "clean": True}
    for frame, table in (
        (session.tables.flags(method="gamma").to_pandas(), session.tables.flags(method="gamma").rows),
        (session.flags.verdicts().to_pandas(), session.flags.verdicts().rows),
        (session.query(**asked).to_pandas(), session.query(**asked).rows),  # type: ignore[arg-type]
        (
            session.jobs(where={"queue": "ALDER-HEP"}).to_pandas(),
            session.jobs(where="queue=ALDER-HEP").batches().read_all(),
        ),
    ):
        assert len(frame) > 0
        pd.testing.assert_frame_equal(frame, frame_of(table))


def test_a_session_says_what_it_holds(session: Session, tmp_path: Path) -> None:
    text = repr(session)
    assert text.startswith("<esjobs.Session duckdb::memory:, 20,")
    assert " jobs [2025-06-01/2025-07-01], latest run " in text
    assert "<th>latest run</th>" in session._repr_html_()
    late = esjobs.open(f"duckdb:{tmp_path / 'none.duckdb'}", late=True)
    assert repr(late).endswith("not opened yet>")
    assert not (tmp_path / "none.duckdb").exists()
    late.close()
    assert repr(late).endswith("closed>")
    empty = esjobs.open("duckdb::memory:")
    assert repr(empty) == "<esjobs.Session duckdb::memory:, 0 jobs, no run yet>"
    empty.close()
    assert repr(empty) == "<esjobs.Session duckdb::memory:, closed>"


def test_a_report_is_its_account(session: Session) -> None:
    report = session.speed.aggregate()
    assert repr(report).startswith("<aggregate: 20,")
    page = report._repr_html_()
    assert "<table>" in page
    assert "not finished" in page


def test_verdicts_are_the_headline(session: Session) -> None:
    verdicts = session.flags.verdicts().to_pandas()
    flags = session.tables.flags(level="queue", type="all", method="gamma").to_pandas()
    assert sorted(verdicts["name"]) == sorted(flags["name"])
    confirmed = verdicts["confirmed"].fillna(False).tolist()
    assert confirmed == sorted(confirmed, reverse=True)
    assert set(session.flags.verdicts(level="cpu_model").to_pandas()["level"]) == {"cpu_model"}
    assert set(session.flags.verdicts(method="paper").to_pandas()["method"]) == {"paper"}


@pytest.mark.parametrize(
    "window",
    [
        "2025-07-01/2025-08-01",
        ("2025-07-01", "2025-08-01"),
        [pd.Timestamp("2025-07-01"), pd.Timestamp("2025-08-01")],
        (pd.Timestamp("2025-07-01T02:00", tz="Europe/Zurich"), pd.Timestamp("2025-08-01").date()),
        pd.Period("2025-07"),
        pd.Period("2025-07", freq="M"),
    ],
    ids=repr,
)
def test_windows_of_any_form(window: object) -> None:
    assert Window.of(window) == JULY


@pytest.mark.parametrize("window", [7, ("2025-07-01",), (1, 2), {}, pd.NaT], ids=repr)
def test_what_is_no_window_is_refused(window: object) -> None:
    with pytest.raises(WindowError):
        Window.of(window)


@pytest.mark.parametrize(
    "where",
    [
        ["core_class=multi", "processing_type=evgen", "processing_type=simul"],
        {"core_class": "multi", "processing_type": ["evgen", "simul"]},
        [("core_class", "multi"), ("processing_type", ("evgen", "simul"))],
    ],
    ids=["texts", "mapping", "pairs"],
)
def test_conditions_of_any_form(session: Session, where: object) -> None:
    rows = session.query("processing_type", where=where).to_pandas()  # type: ignore[arg-type]
    assert sorted(rows["processing_type"]) == ["evgen", "simul"]
    everything = session.query("processing_type").to_pandas()
    assert rows["jobs"].sum() < everything["jobs"].sum()


def test_none_means_missing(session: Session) -> None:
    assert session.query("task_id", where={"task_id": None}).to_pandas()["jobs"].sum() > 0


def test_an_empty_choice_is_not_everything(session: Session) -> None:
    """A list that a notebook has computed, and that came out empty, must not answer another question."""
    with raised(esjobs.UsageError):
        session.query("site", where={"site": []}).to_pandas()
    with raised(esjobs.UsageError):
        session.tables.flags(name=[]).to_pandas()


def test_none_is_a_filter_left_out(session: Session) -> None:
    assert len(session.tables.flags(name=None, level=None).to_pandas()) == len(session.tables.flags())
