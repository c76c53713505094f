"""The Python interface: typed frames, windows in every form, filters, one-line errors, silence."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import EsjobsError, NoJobsError, NoResultError, StoreError, UsageError
from esjobs.core.window import Window
from esjobs.schema import catalogue as capabilities
from esjobs.schema.catalogue import TABLES
from esjobs.speed.settings import FitSettings
from tests.conftest import NOW, memory_session
from tests.messages import raised
from tests.steps.grids import grid_jobs, load, site_names, write_jobs

DECLARED = np.arange(9.0, 21.0)
MODELS = ("Intel Xeon E5-2650 v2 @ 2.60GHz", "AMD EPYC 7302 16-Core Processor", None)
WINDOW = "2018-08-10/2018-08-12"


def jobs() -> pd.DataFrame:
    """Twelve sites; the last one is 1.6 times as slow as it declares. One site declares nothing."""
    honest = np.where(np.arange(12) == 11, 1.6, 1.0)
    made = grid_jobs(np.random.default_rng(1), DECLARED / honest, DECLARED, tasks=4, models=MODELS)
    made.loc[made["queue"] == "SITE03", "hs06_s"] = np.nan
    return made


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with memory_session() as session:
        load(session, jobs(), tmp_path_factory.mktemp("session"))
        session.run()
        yield session


_DTYPES = {
    "integer": pd.Int64Dtype(),
    "keyword": pd.StringDtype(),
    "text": pd.StringDtype(),
    "boolean": pd.BooleanDtype(),
    "number": np.dtype("float64"),
    "map": np.dtype("object"),
    "bytes": np.dtype("object"),
    "list": np.dtype("object"),
}


@pytest.fixture(scope="module")
def empty() -> Iterator[Session]:
    with memory_session() as session:
        yield session


@pytest.mark.parametrize("name", [table.name for table in TABLES])
def test_columns_are_typed_whatever_they_hold(ran: Session, empty: Session, name: str) -> None:
    for session in (ran, empty):
        try:
            frame = session.tables.read(name).to_pandas()
        except NoResultError:
            continue
        table = capabilities.table(name)
        extra = ("origin",) if name == "corepower" else ()
        assert tuple(frame.columns) == (*table.column_names, *extra)
        for column in table.columns:
            found = frame[column.name].dtype
            if column.type == "time":
                assert str(found) == "datetime64[us, UTC]", column.name
            elif column.type == "day":
                assert np.dtype("datetime64[ms]") == found, column.name
            else:
                assert found == _DTYPES[column.type], column.name


def test_jobs_come_back_as_they_went_in(ran: Session) -> None:
    given = jobs().set_index("job_id").sort_index()
    found = ran.jobs().to_pandas().set_index("job_id").sort_index()
    for name in ("cpu_s", "wall_s", "events", "hs06_s"):
        np.testing.assert_array_equal(found[name].astype(float), given[name].astype(float))
    assert found["cores"].dtype == pd.Int64Dtype()
    assert found["cpu_raw"].isna().sum() == given["cpu_raw"].isna().sum() > 0
    assert str(found["end_time"].dtype) == "datetime64[us, UTC]"
    assert (found["end_time"] == given["end_time"]).all()


@pytest.mark.parametrize(
    "window",
    [
        WINDOW,
        ("2018-08-10", "2018-08-12"),
        (date(2018, 8, 10), date(2018, 8, 12)),
        (datetime(2018, 8, 10), datetime(2018, 8, 12, tzinfo=UTC)),  # noqa: DTZ001  naive means UTC
        (pd.Timestamp("2018-08-10"), pd.Timestamp("2018-08-12T02:00+02:00")),
        Window.parse("2018-08-10T02:00:00+02:00/2018-08-12"),
        None,
    ],
    ids=lambda window: type(window).__name__,
)
def test_a_window_has_many_forms_and_one_meaning(ran: Session, window: Any) -> None:
    reports = ran.run(window)
    assert {report.window for report in reports} == {WINDOW}
    assert len(set(ran.tables.runs().to_pandas()["run"])) == 1


@pytest.mark.parametrize(
    "window", ["2018-08-32", "a/b", "2018-08-12/2018-08-10", "2018-08-10/2018-08-10", ""]
)
def test_a_window_that_is_none_is_refused(ran: Session, window: str) -> None:
    for call in (ran.run, ran.speed.aggregate, lambda text: ran.query("queue", window=text).to_pandas()):
        with pytest.raises(UsageError):
            call(window)


def test_odd_times_are_for_queries_only(ran: Session) -> None:
    odd = "2018-08-10T12:00:00/2018-08-11T12:00:00"
    assert (
        ran.query("day", window=odd).to_pandas()["jobs"].tolist()
        == ran.query("day").to_pandas()["jobs"].tolist()[:1]
    )
    steps: list[Callable[[str], object]] = [
        ran.speed.aggregate,
        ran.speed.fit,
        ran.speed.correlate,
        ran.speed.flag,
        ran.run,
    ]
    for step in steps:
        with raised(UsageError):
            step(odd)
    with raised(NoJobsError):
        ran.run("2020-01-01/2020-01-02")


def test_filters_choose_rows(ran: Session) -> None:
    everything = ran.tables.flags().to_pandas()
    assert set(everything["level"]) == {"queue", "site", "cpu_model"}
    chosen = ran.tables.flags(
        level="queue", type="all", method="gamma", name=["SITE11", "SITE03"]
    ).to_pandas()
    assert chosen["name"].tolist() == ["SITE11", "SITE03"]  # confirmed first
    assert chosen["verdict"].tolist() == ["deviates", "undeclared"]
    # two levels, two methods, type simul and all together
    assert len(ran.tables.flags(name="SITE11").to_pandas()) == 8
    with raised(UsageError):  # a name is no pattern
        ran.tables.flags(name="SITE%").to_pandas()
    assert (
        ran.tables.flags(name="SITE11", window=WINDOW)
        .to_pandas()
        .equals(ran.tables.flags(name="SITE11").to_pandas())
    )
    with pytest.raises(NoResultError):
        ran.tables.flags(window="2018-08-10/2018-08-11").to_pandas()
    run = ran.tables.runs().to_pandas()["run"].iloc[0]
    assert ran.tables.flags(run=run[:6]).to_pandas().equals(everything)
    assert (
        len(ran.tables.runs(run=run[:6]).to_pandas()) == 4 == len(ran.tables.runs(window=WINDOW).to_pandas())
    )
    assert ran.tables.runs(window="2018-08-10/2018-08-11").to_pandas().empty
    assert set(ran.tables.buckets(window="2018-08-10/2018-08-11").to_pandas()["day"].dt.day) == {10}


@pytest.mark.parametrize(
    ("what", "filters"),
    [
        ("buckets", {"run": "abc"}),
        ("loads", {"run": "abc"}),
        ("loads", {"window": WINDOW}),
        ("lines", {"name": "SITE11"}),
        ("loads", {"level": "queue"}),
        ("nonsense", {}),
    ],
)
def test_a_filter_that_means_nothing_is_refused(ran: Session, what: str, filters: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ran.tables.read(what, **filters).to_pandas()


@pytest.mark.parametrize("wrong", ["nmae", "types", "Window"])
def test_a_misspelt_keyword_is_refused_as_python_does(ran: Session, wrong: str) -> None:
    asks: list[Any] = [ran.tables.flags, ran.tables.factors, partial(ran.tables.read, "runs")]
    for ask in asks:
        with raised(TypeError) as refused:
            ask(**{wrong: "SITE01"})
        assert isinstance(refused.value, EsjobsError)


@pytest.mark.parametrize(
    "filters",
    [
        {"name": "SITE1"},
        {"name": ["SITE01", "nobody"]},
        {"type": "reco"},
        {"method": "gama"},
        {"level": "sites"},
    ],
)
def test_a_value_that_no_row_has_is_refused(ran: Session, filters: dict[str, Any]) -> None:
    with raised(UsageError):
        ran.tables.flags(**filters).to_pandas()


def test_a_name_that_differs_by_case_only_is_found_where_one_is_meant(tmp_path: Path) -> None:
    made = jobs()
    made.loc[made["queue"] == "SITE01", "queue"] = "site02"
    with memory_session() as session:
        load(session, made, tmp_path)
        session.run()
        assert set(session.tables.factors(name="site05").to_pandas()["name"]) == {"SITE05"}
        assert set(session.tables.factors(name="site02").to_pandas()["name"]) == {"site02"}
        with raised(UsageError):
            session.tables.factors(name="Site02").to_pandas()


def test_headline_first_then_by_name(ran: Session) -> None:
    factors = ran.tables.factors(level="queue", type="all").to_pandas()
    assert factors["method"].drop_duplicates().tolist() == ["gamma", "paper"]
    assert factors["name"].tolist() == site_names(12) * 2
    assert ran.tables.flags().to_pandas()["level"].iloc[0] == "queue"


def test_the_line_chart_holds_every_name(ran: Session) -> None:
    flags = ran.tables.flags(level="queue", type="all", method="gamma").to_pandas()
    chart = ran.speed.line().plot()
    assert isinstance(chart, alt.TopLevelMixin)
    drawn = str(chart.to_dict())
    drawable = flags[flags["corepower"].notna() & flags["k"].notna()]["name"]
    assert len(drawable) == 11
    for name in drawable:
        assert f"'{name}'" in drawn
    models = ran.speed.line(level="cpu_model", method="gamma").plot()
    assert isinstance(models, alt.TopLevelMixin)


def test_a_report_is_written_whole_or_not_at_all(ran: Session, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    ran.report(out)
    page = out.read_text("utf-8")
    assert page.rstrip().endswith("</html>")
    with pytest.raises(NoResultError):
        ran.report(out, run="ffff")
    assert out.read_text("utf-8") == page
    with raised(EsjobsError):
        ran.report(tmp_path / "nowhere" / "report.html")
    (tmp_path / "folder").mkdir()
    with raised(EsjobsError):
        ran.report(tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "report.html"]


def test_a_report_of_the_other_method_shows_its_results_and_says_whose_they_are(tmp_path: Path) -> None:
    stray = jobs()
    stray.loc[(stray["queue"] == "SITE11") & (stray["task_id"] == stray["task_id"].iloc[0]), "cpu_s"] /= 3
    with memory_session() as session:
        load(session, stray, tmp_path)
        session.run()
        said = {
            method: session.tables.flags(level="queue", type="all", name="SITE11", method=method)
            .to_pandas()["finding"]
            .iloc[0]
            for method in ("gamma", "paper")
        }
        usual, other = (unescape(session.report(method=method).html) for method in (None, "Paper"))
        assert session.report(method="gamma").html == session.report().html
    assert said["gamma"] in usual
    assert said["paper"] not in usual
    assert said["paper"] in other
    assert said["gamma"] not in other
    assert "paper (the published" in other
    assert "Headline of the run" in other
    assert "Headline of the run" not in usual


def test_a_report_of_a_method_that_the_run_does_not_have_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    with memory_session(Settings(fit=FitSettings(methods=("gamma",)))) as session:
        load(session, jobs(), tmp_path)
        session.run()
        for method in ("paper", "gama"):
            with raised(UsageError):
                session.report(out, method=method)
    assert not out.exists()


def test_two_runs_compare(tmp_path: Path) -> None:
    with memory_session() as session:
        load(session, jobs(), tmp_path)
        first = session.run("2018-08-10/2018-08-11")[-1].run
        second = session.run("2018-08-11/2018-08-12")[-1].run
        changes = session.speed.compare(first, second).to_pandas()
        assert changes["sigma"].abs().max() < 5
        verdicts = changes.filter(like="verdict")
        same = changes[verdicts.iloc[:, 0] == verdicts.iloc[:, 1]]
        assert (same["sigma"].abs().dropna().diff().dropna() <= 0).all()
        key = ["level", "name", "processing_type", "method"]
        back = session.speed.compare(second, first).to_pandas().set_index(key)["sigma"]
        pd.testing.assert_series_equal(changes.set_index(key)["sigma"].sort_index(), -back.sort_index())
        with raised(UsageError):
            session.speed.compare(first, first[:6]).to_pandas()
        with pytest.raises(NoResultError):
            session.speed.compare(first, "ffff").to_pandas()
        for none in (0, -1):
            with pytest.raises(UsageError):
                session.runs.prune(none)
        session.runs.prune(1)
        assert set(session.tables.runs().to_pandas()["run"]) == {second}


def test_a_closed_session_says_so(tmp_path: Path) -> None:
    session = memory_session()
    load(session, jobs(), tmp_path)
    session.close()
    session.close()
    calls: list[Callable[[], object]] = [
        session.tables.factors,
        session.run,
        session.jobs,
        lambda: session.query("queue").to_pandas(),
        lambda: session.ingest("jobs", tmp_path / "jobs.parquet"),
        lambda: session.tables.buckets().to_pandas(),
        lambda: session.runs.prune(1),
        lambda: session.report(tmp_path / "report.html"),
    ]
    for call in calls:
        with raised(StoreError):
            call()


def test_open_twice_in_one_process(tmp_path: Path) -> None:
    """Two sessions on one file see the same published rows; closing one leaves the other."""
    store = f"duckdb:{tmp_path}/jobs.duckdb"
    with esjobs.open(store, clock=lambda: NOW) as first, esjobs.open(store) as second:
        load(first, jobs(), tmp_path)
        assert second.query([], ["jobs"]).to_pandas()["jobs"].tolist() == [len(jobs())]
        first.close()
        second.run()
        assert len(second.tables.factors(level="queue", type="all", method="gamma").to_pandas()) == 12
    with esjobs.open(store) as third:
        assert len(third.tables.flags(level="queue", type="all", method="gamma").to_pandas()) == 12


@pytest.mark.parametrize("store", ["", "duckdb", "duckdb:", "mysql:x", "jobs.duckdb"])
def test_an_address_that_is_none_is_refused(store: str) -> None:
    with raised(UsageError):
        esjobs.open(store)


def test_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with memory_session() as session:
        load(session, jobs(), tmp_path)
        session.run()
        session.tables.flags().to_pandas()
        session.query(["queue", "cpu_model"], ["jobs", "efficiency"]).to_pandas()
        session.report(tmp_path / "report.html")
        session.export.jobs(tmp_path / "out.csv")
        session.speed.line().plot()
        session.runs.prune(1)
        with pytest.raises(EsjobsError):
            session.ingest("jobs", tmp_path / "none.csv")
    assert capfd.readouterr() == ("", "")


def test_settings_reach_the_fit(tmp_path: Path) -> None:
    settings = Settings(fit=FitSettings(methods=("gamma",), min_bucket_jobs=26))
    with memory_session(settings) as session:
        load(session, jobs(), tmp_path)
        session.run()
        factors = session.tables.factors(level="queue", type="all").to_pandas()
        assert set(factors["method"]) == {"gamma"}
        assert set(factors["status"]) == {"too few jobs"}
        assert factors["k"].isna().all()


def test_fits_of_all_types_are_the_same_without_those_of_each(tmp_path: Path) -> None:
    found = []
    for by_type in (True, False):
        with memory_session(Settings(fit=FitSettings(methods=("gamma",), by_type=by_type))) as session:
            load(session, jobs(), tmp_path)
            session.run()
            rows = session.tables.factors().to_pandas().drop(columns=["run"])
            found.append(rows.sort_values(["level", "processing_type", "name"], ignore_index=True))
    every, alone = found
    assert set(alone["processing_type"]) == {"all"} < set(every["processing_type"])
    same = every[every["processing_type"] == "all"].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, alone, check_exact=True)


def test_mistakes_in_calls_are_ours(ran: Session, tmp_path: Path) -> None:
    write_jobs(jobs(), path := tmp_path / "jobs.parquet")
    mistakes: list[Callable[[], object]] = [
        lambda: ran.ingest("nonsense", path),
        lambda: ran.ingest("jobs", []),
        lambda: ran.ingest("jobs", path, fill={"sight": 1}),
        lambda: ran.ingest("jobs", path, fill=["cores=many"]),
        lambda: ran.ingest("jobs", path, fill=["processing_type=all"]),
        lambda: ran.query("sight").to_pandas(),
        lambda: ran.query("queue", ["speed"]).to_pandas(),
        lambda: ran.query("queue", where="queue").to_pandas(),
        lambda: ran.run(where="user=me"),
        lambda: ran.export.jobs(tmp_path / "jobs.odd"),
    ]
    for mistake in mistakes:
        with raised(UsageError):
            mistake()
    assert ran.store.span().jobs == len(jobs())
