"""Everything about one name: against the tables themselves, over windows, with names as people type them."""

import csv
import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dashboards.targets.html.profile import Curve
from esjobs.api.session import Session
from esjobs.core.arguments import Filters
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.numbers import number
from esjobs.core.window import Window
from esjobs.records.demo.grid import LAST_DAY
from esjobs.records.names.spelling import by_words
from esjobs.render.profile_page import profile_html, trends
from esjobs.render.rows import cell_text
from tests.cli.running import job_file, run
from tests.conftest import memory_session
from tests.flags.drift.grids import FIRST, GRID, fill
from tests.messages import raised

if TYPE_CHECKING:
    from collections.abc import Mapping

TRUTH = GRID.truth()
HOSTILE = "<img src=x onerror=alert(1)>"
EARLY = Window.of_days(FIRST, FIRST + timedelta(days=9))
LATE = Window.of_days(LAST_DAY - timedelta(days=9), LAST_DAY)


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = memory_session()
    fill(session)
    table = tmp_path_factory.mktemp("grid") / "corepower.csv"
    with table.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", "corepower", "benchmark", "level", "site", "valid_from"])
        for queue in TRUTH.queues:
            writer.writerow([queue.name, queue.speed, "HS06", "queue", queue.site, "2025-01-01"])
    session.declared.import_values(table)
    for window in (EARLY, LATE):
        session.run(window)
    session.flags.decompose()
    return session


def shown(session: Session, what: str, **chosen: str) -> list[dict[str, object]]:
    filters: Filters = {**chosen}  # type: ignore[typeddict-item]
    rows: list[dict[str, object]] = session.tables.read(what, **filters).rows.to_pylist()
    return rows


SITES: "Mapping[str, list[str]]" = {
    site: sorted(queue.name for queue in TRUTH.queues if queue.site == site)
    for site in {queue.site for queue in TRUTH.queues}
}
LARGE = max(SITES, key=lambda site: (len(SITES[site]), site))


def test_a_wlcg_site_has_all_its_queues(grid: Session) -> None:
    profile = grid.site(LARGE.lower())
    assert (profile.named.title, list(profile.named.names)) == (LARGE, SITES[LARGE])
    assert profile.window == LATE
    flags = shown(grid, "flags", level="queue", type="all", method="gamma", site=LARGE)
    assert sorted(map(repr, profile.flags)) == sorted(map(repr, flags))
    assert {row["name"] for row in profile.types} <= set(SITES[LARGE])


def test_a_queue_alone(grid: Session) -> None:
    queue = next(name for name in SITES[LARGE] if name not in SITES)
    profile = grid.site(queue)
    assert profile.named.names == (queue,)
    assert profile.named.site == LARGE
    (flag,) = profile.flags
    assert flag["name"] == queue
    shares = [row["share"] for row in profile.mixes]
    assert sum(shares) == pytest.approx(1.0)


def test_shares_factors_and_prediction_are_those_of_the_tables(grid: Session) -> None:
    name = SITES[LARGE][0]
    profile = grid.site(name)
    (factor,) = shown(grid, "factors", level="queue", type="all", method="gamma", name=name)
    assert [row["mix_k"] for row in profile.factors if row["processing_type"] == "all"] == [factor["mix_k"]]
    text = str(profile)
    assert f"predict a factor of {number(float(str(factor['mix_k'])))}" in text
    assert {row["part"] for row in profile.reasons} == {
        row["part"] for row in shown(grid, "decomposition", name=name)
    }


def test_a_queue_of_another_component_is_compared_with_nothing(grid: Session) -> None:
    apart = [
        row for row in shown(grid, "factors", level="queue", type="all", method="gamma") if row["component"]
    ]
    names = {str(row["name"]) for row in apart if row["k"] is not None}
    assert names >= {queue.name for queue in TRUTH.queues if queue.island}
    # no page has a ratio of it and of the others: the mix, the same models elsewhere, other windows
    for name in names:
        profile = grid.site(name)
        assert [row["mix_k"] for row in profile.factors] == [None] * len(profile.factors)
        assert profile.machines == []
        text = str(profile)
        assert "no common scale" in text
        assert "predict a factor" not in text
        assert "The same CPU models elsewhere" not in text
    assert names.isdisjoint(str(row["queue"]) for row in shown(grid, "cpu_speed_by_queue"))
    assert names.isdisjoint(str(row["name"]) for row in shown(grid, "decomposition"))


def test_tasks_are_the_jobs_of_the_buckets(grid: Session) -> None:
    name = SITES[LARGE][0]
    profile = grid.site(name)
    counted: dict[tuple[object, object], int] = {}
    for row in grid.tables.batches("buckets", window=LATE).read_all().to_pylist():
        if row["queue"] == name:
            key = row["task_id"], row["core_class"]
            counted[key] = counted.get(key, 0) + row["n_jobs"]
    assert [row["n_jobs"] for row in profile.tasks] == sorted(counted.values(), reverse=True)[:12]
    for row in profile.tasks:
        assert row["n_jobs"] == counted[row["task_id"], row["core_class"]]


def test_history_has_both_windows_oldest_first(grid: Session) -> None:
    profile = grid.site(SITES[LARGE][0])
    assert [row["window_end"] for row in profile.history] == [EARLY.end, LATE.end]
    assert "Over time" in str(profile)


def test_a_cpu_model(grid: Session) -> None:
    model = next(row["cpu_model"] for row in shown(grid, "cpu_mix") if row["cpu_model"] is not None)
    assert isinstance(model, str)
    profile = grid.cpu(model.upper())
    assert profile.named.title == model
    mixes = [row for row in shown(grid, "cpu_mix") if row["cpu_model"] == model]
    assert {row["queue"] for row in profile.mixes} == {row["queue"] for row in mixes}
    assert sum(row["core_s"] for row in profile.mixes) == pytest.approx(sum(row["core_s"] for row in mixes))  # type: ignore[misc]
    assert {row["queue"] for row in profile.machines} <= {row["queue"] for row in profile.mixes}


def test_place_among_the_others_is_that_of_a_count(grid: Session) -> None:
    (place,) = [each for each in grid.site(LARGE).percentiles if each.metric == "efficiency"]
    frame = grid.query("site", ["jobs", "efficiency"], window=LATE).to_pandas()
    mine = frame[frame["site"] == LARGE]["efficiency"].iloc[0]
    others = frame[(frame["site"] != LARGE) & frame["site"].notna() & (frame["jobs"] >= 100)]
    assert place.value == pytest.approx(mine)
    assert place.among == len(others)
    assert place.worse == (others["efficiency"] < mine).sum()
    assert place.median == pytest.approx(others["efficiency"].median())


@pytest.mark.parametrize("name", ["NOWHERE-AT-ALL", LARGE[:-1]])
def test_close_names_are_offered(grid: Session, name: str) -> None:
    with raised(UsageError):
        grid.site(name)


def test_without_anything() -> None:
    with memory_session() as session, raised(NoJobsError):
        session.site("X")


def test_jobs_without_a_run_have_a_page(tmp_path: Path) -> None:
    with memory_session() as session:
        session.ingest("jobs", job_file(tmp_path / "jobs.csv"))
        profile = session.site("site03")
        assert profile.run is None
        assert "no speed factors yet: esjobs run" in str(profile)
        assert "efficiency" in str(profile)


def test_a_queue_that_no_fit_has_seen(tmp_path: Path) -> None:
    """Jobs that never enter a fit are there, and the page says so."""
    file = job_file(tmp_path / "jobs.csv")
    broken = [
        f"broken{number},task0,BROKEN-QUEUE,Intel Xeon E5-2650 v2 @ 2GHz,simul,failed,2018-08-10T12:00:00Z"
        ",1,100,900,1000,13000"
        for number in range(3)
    ]
    file.write_text(file.read_text() + "\n".join(broken) + "\n")
    with memory_session() as session:
        session.ingest("jobs", file)
        session.run()
        profile = session.site("broken-queue")
        assert profile.flags == []
        assert "not in the fit of this run" in str(profile)


def test_the_page_shows_hostile_names_as_text(tmp_path: Path) -> None:
    file = job_file(tmp_path / "jobs.csv")
    file.write_text(file.read_text().replace("SITE03", HOSTILE))
    with memory_session() as session:
        session.ingest("jobs", file)
        session.run()
        page = profile_html(session.site(HOSTILE).content)
    assert HOSTILE not in page
    assert "&lt;img src=x" in page
    assert "<script" not in page


def test_figures_draw_every_deviation(grid: Session) -> None:
    profile = grid.site(LARGE).content
    page = profile_html(profile)
    rows = [row for row in (*profile.flags, *profile.types) if row["deviation"] is not None]
    several = [row for row in profile.history if row["estimate"] is not None]
    assert page.count('<g class="point') == len(rows) + len(several)
    assert profile_html(grid.site(LARGE).content) == page


def test_commands(tmp_path: Path) -> None:
    store = tmp_path / "store.duckdb"
    run("ingest", "jobs", str(job_file(tmp_path / "jobs.csv")), store=store)
    run("run", store=store)
    text = run("site", "site11", store=store)
    assert text.exit_code == 0
    assert text.output.startswith("queue SITE11 of the site SITE11\n") or "SITE11" in text.output
    found = json.loads(run("site", "SITE11", "--format", "json", store=store).output)
    assert found["flags"][0]["name"] == "SITE11"
    assert found["window"] == "2018-08-10/2018-08-15"
    page = tmp_path / "page.html"
    assert run("cpu", "intel xeon e5-2650 v3", "--out", str(page), store=store).exit_code == 0
    assert "<h1>CPU model Intel Xeon E5-2650 v3</h1>" in page.read_text()
    wrong = run("site", "SITE1", store=store)
    assert wrong.exit_code == 2
    assert "similar: " in wrong.stderr or "use one of" in wrong.stderr


def test_trends_are_the_numbers_of_the_weeks(grid: Session) -> None:
    run = grid.site(LARGE).run
    assert run is not None
    part = trends(grid.store, run)
    assert part is not None
    weeks = grid.query("week", ["jobs", "core_h", "efficiency", "failure_rate"]).to_pandas()
    assert part.table is not None
    assert [row[0] for row in part.table.rows] == weeks["week"].tolist()
    core_h = next(figure for figure in part.figures if figure.title == "Core hours")
    assert isinstance(core_h, Curve)
    assert [dot.label for dot in core_h.dots] == [
        f"{week}: {cell_text(value)}" for week, value in zip(weeks["week"], weeks["core_h"], strict=True)
    ]
    heights = [dot.y for dot in core_h.dots]
    assert np.argsort(heights).tolist() == np.argsort(-weeks["core_h"].to_numpy()).tolist()
    for figure in part.figures:
        marks = figure.dots if isinstance(figure, Curve) else figure.points
        assert all(0 <= mark.x <= figure.width and 0 <= mark.y <= figure.height for mark in marks)


def test_two_weeks_are_no_trend(tmp_path: Path) -> None:
    with memory_session() as session:
        session.ingest("jobs", job_file(tmp_path / "jobs.csv"))
        session.run()
        run = session.site("SITE01").run
        assert run is not None
        assert trends(session.store, run) is None


def test_a_report_has_the_sites_that_deviate(tmp_path: Path) -> None:
    with memory_session() as session:
        session.ingest("jobs", job_file(tmp_path / "jobs.csv"))
        session.run()
        page = session.report().html
    assert page.count('<details class="profile"') == 1
    assert "<b>SITE11</b>" in page


MODELS = ("AMD EPYC 7742", "AMD EPYC 7302", "Intel Xeon E5-2650 v2", "Intel Xeon E5-2650 v3")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("EPYC 7742 ", "AMD EPYC 7742"), ("2650 v3", "Intel Xeon E5-2650 v3"), ("73", "AMD EPYC 7302")],
)
def test_the_words_of_one_model_are_enough(asked: str, meant: str) -> None:
    assert by_words("no model", asked, MODELS) == meant


@pytest.mark.parametrize("asked", ["epyc", "e5-2650", "742", ""])
def test_words_of_several_models_or_none_are_refused(asked: str) -> None:
    with pytest.raises(UsageError):
        by_words("no model", asked, MODELS)
