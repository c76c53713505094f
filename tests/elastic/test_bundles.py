"""Every question of both bundles, asked of real indices that hold the demo: answered as by the store."""

import functools
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
import vl_convert

import esjobs
from dashboards.pages import HEADLINE, PAGES
from dashboards.panels.age import AS_OF
from dashboards.spec import JOBS, Page, Panel, View, Where
from dashboards.targets.html.pages.pools import shown_view
from dashboards.targets.kibana.bundle import kibana
from dashboards.targets.portable.bundle import portable
from dashboards.targets.portable.visualizations import MOST_COLUMNS, MOST_OF_ROWS, columns_of_table, is_moment
from dashboards.targets.vegalite.sums import HOUR_S
from dashboards.view.ask import query_rows as asked_of_store
from dashboards.view.rows import Row, keeps
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.clock import system_clock
from esjobs.core.numbers import number
from esjobs.core.query import Count, Present, Query
from esjobs.core.rates import FEW_JOBS, INTERVAL_SIGMAS, wilson
from esjobs.core.states import FAILED, UNFINISHED_KINDS
from esjobs.publish.publication import rows_table
from esjobs.schema.catalogue import TABLES
from esjobs.schema.decomposition import DECOMPOSED
from esjobs.schema.issues import ISSUES
from esjobs.schema.kinds import Kind
from esjobs.schema.scores import SCORES
from esjobs.schema.speed import SPEED
from esjobs.settings import ClusterSettings
from esjobs.store.base import PointLatest
from scheduler.ledger import Ledger
from tests.dashboards.answers import UNSCORED, answered
from tests.dashboards.drawn import NEWEST, OLDEST, VERSION_BY_PRODUCT, marks, svg, written
from tests.dashboards.made_runs import add_runs
from tests.dashboards.questions import Chart, Question, asked
from tests.scores.made_jobs import made_jobs, put_all
from tests.servers.plugin import server_params
from tests.servers.pool import Servers
from tests.servers.server import Server

PREFIX = "bundles"
BUNDLES = {
    target: list(asked(make(PAGES, HEADLINE, PREFIX)))
    for target, make in {"portable": portable, "kibana": kibana}.items()
}
PANELS: dict[str, tuple[Page, Panel]] = {
    placed.panel.id: (page, placed.panel) for page in PAGES for placed in page.board
} | {AS_OF.id: (PAGES[0], AS_OF)}
SEARCHES = [
    (target, each) for target, found in BUNDLES.items() for each in found if isinstance(each, Question)
]
CHARTS = list({each.panel: each for each in BUNDLES["portable"] if isinstance(each, Chart)}.values())
PRODUCTS = server_params("elasticsearch8", "opensearch3", matrix=("elasticsearch9",))

ONE_OF_EACH_VENDOR = pytest.mark.parametrize(
    "server", server_params("elasticsearch8", "opensearch3"), indirect=True
)
"""For tests that draw: what is drawn from the same answers is the same."""

pytestmark = [pytest.mark.slow, pytest.mark.every_version]


@pytest.fixture(scope="session", params=PRODUCTS)
def server(request: pytest.FixtureRequest, servers: Servers) -> Server:
    """The shared server of each product that takes a bundle, running."""
    return servers.running(request.param)


QUESTIONS = """
centre = "Here"
period = "2025-06-01/2025-07-01"
[[input]]
area = "support"
name = "hours until solved"
value = 30
worst = 120
best = 8
[[input]]
area = "efficiency"
name = "CPU time"
measure = "efficiency"
worst = 0.5
best = 0.9
"""


@pytest.fixture(scope="session")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the results of two nights of the demo are, and more that the bundles show."""
    folder = tmp_path_factory.mktemp("nights")
    shutil.copy(demo_folder / "demo.duckdb", folder)
    with esjobs.open(f"duckdb:{folder / 'demo.duckdb'}") as session:
        session.run("2025-06-01/2025-06-25")
        session.flags.update("2025-06-30")
        session.flags.decompose()
        ledger = Ledger(session.store, system_clock)
        ledger.write({"night": date(2025, 6, 29), "state": "done", "jobs": 1_000, "seconds": 3.5}, [])
        ledger.write({"night": date(2025, 6, 30), "state": "failed", "reason": "no room", "attempt": 2}, [])
        models = session.tables.factors(level="cpu_model", method=HEADLINE).to_pandas().dropna(subset=["k"])
        names = sorted(set(models["name"]))[::2]
        scores = folder / "HS23scores.csv"
        scores.write_text(
            "CPU,SMT enabled,Ncores,Score,Score/Ncores\n"
            + "".join(f"{name},1,{10 + place},{200 + 9 * place},\n" for place, name in enumerate(names * 2))
        )
        session.declared.import_references(scores, form="hepix-hs23")
        add_scores(session)
        add_issues(session)
        add_runs(session)
        questions = folder / "questions.toml"
        questions.write_text(QUESTIONS, encoding="utf-8")
        session.provisioning.index(questions)
    return folder


@pytest.fixture(scope="module")
def demo(folder: Path) -> Iterator[Session]:
    """The embedded store with these results."""
    with esjobs.open(f"duckdb:{folder / 'demo.duckdb'}") as session:
        yield session
    expected.cache_clear()


def add_issues(session: Session) -> None:
    """Issues of detectors, which the demo's jobs have none of for lack of time series."""
    (row, *_), day = session.tables.issues().rows.to_pylist(), date(2025, 5, 31)
    rows = [
        {**row, "day": day, "detector": "cpu-idle", "severity": "major", "idle_core_h": 200.0},
        {**row, "day": day, "detector": "gpu-idle", "severity": "critical", "idle_gpu_h": 600.0},
    ]
    batches = rows_table(ISSUES, rows).to_batches()
    session.store.publish([session.store.replace(ISSUES, str(day), batches)])


def add_scores(session: Session) -> None:
    """Scores of jobs whose counters are known, beside those of the demo, of which none are."""
    session.scores.compute("2025-06-29/2025-07-01")
    with esjobs.open("duckdb::memory:") as other:
        moved = [{**job, "end_time": job["end_time"] + timedelta(days=2500)} for job in made_jobs(500)]
        put_all(other.store, moved)
        other.scores.compute()
        batches = list(other.store.read(SCORES))
        days = {day for batch in batches for day in batch.column("day").to_pylist()}
        changes = []
        for day in sorted(days):
            rows = [batch.filter(pc.equal(batch.column("day"), day)) for batch in batches]
            changes.append(session.store.replace(SCORES, str(day), rows))
        session.store.publish(changes)


@pytest.fixture(scope="module")
def published() -> set[str]:
    """The products whose indices hold the same results."""
    return set()


@pytest.fixture
def filled(server: Server, demo: Session, demo_folder: Path, published: set[str]) -> Server:
    """A server with the jobs of the demo, every table and its latest run."""
    if server.product.name not in published:
        settings = Settings(store=server.url, cluster=ClusterSettings(prefix=PREFIX))
        with esjobs.open(settings=settings) as session:
            session.ingest("jobs", demo_folder / "jobs.parquet")
            changes: list[Any] = [
                PointLatest(each, latest(demo, kind)) for kind in (SPEED, DECOMPOSED) for each in kind.tables
            ]
            for each in (each for each in TABLES if each.made_by != "ingest"):
                rows = list(demo.store.read(each, ()))
                found = {value for batch in rows for value in batch.column(each.partition).to_pylist()}
                for value in sorted(found, key=str):
                    chosen = [batch.filter(pc.equal(batch.column(each.partition), value)) for batch in rows]
                    changes.append(session.store.replace(each, str(value), chosen))
            session.store.publish(changes)
        published.add(server.product.name)
    return server


def latest(demo: Session, kind: Kind = SPEED) -> str:
    """The run of a kind whose rows people see."""
    shown = demo.tables.latest_runs().to_pandas()
    return str(shown[shown["shown"] & (shown["kind"] == kind.name)]["run"].iloc[0])


@functools.cache
def expected(panel: Panel, page: Page, demo: Session) -> list[Row]:
    """The rows of a panel as the embedded store holds them, with what its page opens with.

    Kept, for up to 60 000 jobs are read for a panel, which both bundles and several charts have.
    """
    view = shown_view(panel)
    of_run = view.runs == "latest" and view.table in {each.name for each in SPEED.tables}
    if view.by and of_run:
        view = replace(view, where=(*view.where, Where("run", (latest(demo),))))
    rows = asked_of_store(demo.store, view, method=HEADLINE)
    if panel.view.by or panel.view.table == JOBS.name:
        return rows
    return [row for row in rows if keeps(row, page.preset) and (not of_run or row["run"] == latest(demo))]


def same(left: Any, right: Any) -> bool:
    """Equal values; numbers as an index gives them back, moments as texts."""
    if isinstance(left, datetime | str) and isinstance(right, datetime):
        moment = right if right.tzinfo else right.replace(tzinfo=UTC)
        return datetime.fromisoformat(str(left)) == moment
    if isinstance(left, str) and isinstance(right, date):
        return left[:10] == right.isoformat()
    if isinstance(left, float | int) and isinstance(right, float | int):
        return float(left) == pytest.approx(float(right), rel=1e-9)
    return bool(left == right) or (left is None and right is None)


def identity(pair: object) -> str:
    if isinstance(pair, tuple):
        return f"{pair[0]}-{pair[1].panel}"
    return pair.panel if isinstance(pair, Chart) else str(pair)


@pytest.mark.parametrize("pair", SEARCHES, ids=identity)
def test_a_panel_shows_what_the_store_holds(
    pair: tuple[str, Question], filled: Server, demo: Session
) -> None:
    _, question = pair
    answer = filled.json("POST", f"{question.index}/_search", question.body)
    assert answer["_shards"]["failed"] == 0
    rows = question.rows(answer)
    name = question.panel if question.panel in PANELS else question.panel.rpartition("-")[0]
    page, panel = PANELS[name]
    wanted = expected(panel, page, demo)
    assert wanted or panel.id in MAY_BE_EMPTY
    if panel.kind == "tiles":
        counts = {tile.label: sum(keeps(row, tile.where) for row in wanted) for tile in panel.tiles}
        (found,) = rows
        assert found == {label: counts[label] for label in found}
    elif panel.kind in ("table", "rows"):
        keys, numbers = ([column for column, _ in some] for some in columns_of_table(panel))
        # names of CPU models are short, and so are the numbers beside them
        assert len(keys) + len(numbers) <= MOST_COLUMNS + (panel.id == "models-table")
        if is_moment(panel, keys[0]) or len(wanted) < MOST_OF_ROWS:
            assert len(rows) == len(wanted)
        else:  # a name may have several rows, of which all are shown
            assert len(rows) >= MOST_OF_ROWS
        known = {key_of(row, keys): row for row in wanted}
        for row in rows:
            right = known[key_of(row, keys)]
            wrong = [each for each in numbers if not same(row[each], right[each])]
            # To an index the sum of nothing is 0; Kibana shows it as -.
            wrong = [each for each in wrong if (row[each], right[each]) != (0.0, None)]
            assert not wrong, [(each, row[each], right[each]) for each in wrong]
        if panel.view.sort[0] == "rank":
            assert [key_of(row, keys) for row in rows] == [key_of(row, keys) for row in wanted]
    elif panel.kind == "coverage":
        (found,) = rows
        counted = {
            entry.title: demo.sql(f"SELECT count({entry.column}) AS n FROM jobs").rows["n"][0].as_py()  # noqa: S608
            for entry in panel.fields
        }
        assert {label: found[label] for label in counted} == counted
        assert found["all jobs"] == max(counted.values()) == wanted[0]["n_jobs"]
    elif panel.kind == "trend":
        value, label = panel.entry("y").column, panel.entry("label").column
        of_label = {row[label]: row[value] for row in wanted}
        if "inner" in answer["aggregations"]:  # Lens filters a column for each label by itself
            assert rows
            for name in of_label:
                number = answer["aggregations"][name]["value"]
                assert any(same(number, whole(of_label.values())) for whole in (sum, max))
        else:  # one filter for each label, with the documents that it counts
            assert rows[0].keys() == of_label.keys()
            assert all(rows[0].values())
    elif panel.entry("label").column not in rows[0]:  # a filter for each label, in a fixed order
        (found,) = rows
        value, label = panel.entry("x").column, panel.entry("label").column
        assert {each: number for each, number in found.items() if number} == {
            row[label]: row[value] for row in wanted
        }
    else:
        value, label = panel.entry("x").column, panel.entry("label").column
        named = {row[label]: row[value] for row in wanted if row[label] is not None}
        found = {row[label]: row[value] for row in rows}
        assert len(found) == min(len(named), panel.most[0])
        assert all(same(found[key], named[key]) for key in found)
        assert not named or max(found.values()) == pytest.approx(max(named.values()))


def key_of(row: Row, keys: list[str]) -> tuple[str, ...]:
    """What tells a row of a table from the others: its texts and its day, as texts."""
    return tuple(re.sub(r"^(\d{4}-\d\d-\d\d)[ T].*", r"\1", str(row[key])) for key in keys)


MAY_BE_EMPTY = {
    "issues-idle-gpus",
    "issues-lost-by-user",
    "site-incidents",
    "site-days-efficiency",
    "site-days-failed",
}
"""Panels that the demo has no rows for: no GPUs, no nodes."""


def test_planted_queues_and_only_they_are_confirmed(filled: Server, demo: Session) -> None:
    flags = demo.tables.flags(run=latest(demo)).to_pandas()
    chosen = flags[(flags["level"] == "queue") & (flags["processing_type"] == "all")]
    wanted = set(chosen[(chosen["method"] == HEADLINE) & chosen["confirmed"].eq(True)]["name"])
    assert len(wanted) > 2
    for target, found in BUNDLES.items():
        questions = {each.panel: each for each in found if isinstance(each, Question)}
        question = questions["sites-to-declare"]
        rows = question.rows(filled.json("POST", f"{question.index}/_search", question.body))
        assert {row["name"] for row in rows} == wanted, target


def test_every_chart_gets_an_answer(filled: Server) -> None:
    for chart in CHARTS:
        assert answered(chart.spec, filled)["data"]["values"], chart.panel


@ONE_OF_EACH_VENDOR
@pytest.mark.parametrize("chart", CHARTS, ids=identity)
def test_a_chart_draws_what_the_store_holds(
    chart: Chart, filled: Server, demo: Session, capfd: pytest.CaptureFixture[str]
) -> None:
    page, panel = PANELS[chart.panel]
    spec = answered(chart.spec, filled)
    given = spec["data"]["values"]
    rows = given["aggregations"]["groups"]["buckets"] if isinstance(given, dict) else given
    assert rows, "no row was asked for"
    version = VERSION_BY_PRODUCT[filled.product.name]
    vl_convert.vegalite_to_vega(spec, vl_version=version, show_warnings=True)
    assert "WARN" not in capfd.readouterr().err
    picture = svg(spec, version)
    drawn = len(marks(picture, "marks"))
    text = "".join(picture.itertext())
    assert ("".join(panel.empty.split()) in "".join(text.split())) == (panel.id in UNSCORED)
    assert ("No CPU model here" in text) == (panel.id == "models-hs06")
    if panel.kind == "caption":
        n, (tile,) = len(expected(panel, page, demo)), panel.tiles
        said = f"{n} {tile.one if n == 1 else tile.label}"
        assert "".join(said.split()) == "".join(text.split())  # a line ends where the panel does
    elif panel.kind == "statement":
        (row,) = expected(panel, page, demo)
        words = str(row["sentence"]).split()
        assert all(word in text for word in words)
    elif panel.kind == "nights":
        assert drawn == min(len(rows), 1000)
    elif panel.kind == "days":
        # without a chosen site the newest rows of all sites are asked for, as many as a chart may hold
        assert 0 < drawn <= wanted_marks(panel, page, demo)
    else:
        assert drawn == wanted_marks(panel, page, demo)
    if panel.kind == "as-of":
        assert latest(demo) in text
        assert "Newestdaywithjobs:2025-06-30" in "".join(text.split())


NOWHERE = [each for each in asked(portable(PAGES, HEADLINE, "nowhere")) if isinstance(each, Chart)]


def test_a_chart_on_an_index_that_is_not_there_says_what_is_missing(server: Server) -> None:
    """Before ``esjobs setup``, or of a step that never ran: no error, the panel's sentence."""
    assert len(NOWHERE) > 30
    for chart in NOWHERE:
        text = "".join(svg(answered(chart.spec, server)).itertext())
        assert "".join(PANELS[chart.panel][1].empty.split()) in "".join(text.split()), chart.panel


def wanted_marks(panel: Panel, page: Page, demo: Session) -> int:
    """How many marks a chart has to have."""
    if panel.kind in ("light", "as-of"):
        return 1
    if panel.kind == "coverage":
        return len(panel.fields)
    rows = expected(panel, page, demo)
    if panel.kind == "beside":
        return len({row[panel.view.over] for row in rows})
    if panel.kind == "against-scores":
        (join,) = panel.joins
        scored = {row["cpu_model"] for row in asked_of_store(demo.store, join.view)}
        # without any score the marks stay, unseen: an axis wants a range
        return sum(row["name"] in scored for row in rows) or len(rows)
    if panel.kind == "ends":
        return sum(map(len, ended_hours(panel, rows).values()))
    if panel.kind == "rates":
        return len(rates_of(panel, rows))
    if panel.view.over:
        return len(moments(panel.view, demo, panel.most[0]))
    if panel.kind in ("distribution", "tenths"):
        return len(rows)
    if panel.kind == "days":
        # of several sites the first
        full = [row for row in rows if None not in (row["observed"], row["low"], row["high"])]
        return sum(row["site"] == min(row["site"] for row in full) for row in full)
    if panel.kind in ("shares", "waste", "amounts", "weighted"):
        rows = [row for row in rows if panel.kind != "weighted" or row[panel.entry("x").per]]
        rows = [row for row in rows if enough(panel, row)]
        return min(panel.most[0], len([row for row in rows if row[panel.view.by[0]] is not None]))
    needed = [panel.entry("x").column] if panel.kind != "pulls" else []
    shown = [row for row in rows if all(row[column] is not None for column in needed)]
    return min(len(shown), panel.most[0]) if panel.most else len(shown)


def ended_hours(panel: Panel, rows: list[Row]) -> dict[str, dict[str, float]]:
    """Hours of a queue by how its jobs ended, of the queues that are shown, the most lost first."""
    hours: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        kind = next(kind for kind, states in UNFINISHED_KINDS.items() if row["state"] in states)
        hours[row["queue"]][kind] += row["core_s"] / HOUR_S
    places = sorted(hours, key=lambda name: (-_lost(hours[name]), -sum(hours[name].values()), name))
    return {name: hours[name] for name in places[: panel.most[0]]}


def _lost(of_kinds: dict[str, float]) -> float:
    return sum(hours for kind, hours in of_kinds.items() if kind != "cancelled")


def rates_of(panel: Panel, rows: list[Row]) -> list[float]:
    """The rates of the names that are shown: of those with most jobs for sure, by the lower end of each."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for row in rows:
        one = sums[row["queue"]]
        over = row["queue_s"] / HOUR_S if "queue_s" in row else row["n_jobs"] * (row["state"] in FAILED)
        square = row["queue_s_sq"] / HOUR_S**2 if "queue_s" in row else over
        sums[row["queue"]] = [one[0] + over, one[1] + square, one[2] + row["n_jobs"]]
    shown = []
    for over, square, n_jobs in sums.values():
        if n_jobs < FEW_JOBS:
            continue
        mean = over / n_jobs
        error = np.sqrt(max(square / n_jobs - mean**2, 0.0) / (n_jobs - 1))
        low = wilson(np.array([mean]), np.array([n_jobs]))[0][0]
        shown.append((max(mean - INTERVAL_SIGMAS * error, 0.0) if "queue_s" in rows[0] else low, mean))
    return [mean for _, mean in sorted(shown, reverse=True)[: panel.most[0]]]


def moments(view: View, demo: Session, most: int) -> dict[tuple[Any, Any], list[Row]]:
    """The rows of a view over time by name and day, of the names that are shown."""
    bare = View(view.table, where=view.where, level=view.level, types="main")
    rows = asked_of_store(demo.store, bare, method=HEADLINE)
    (column,) = view.by
    names: dict[Any, list[Row]] = {}
    for row in rows:
        names.setdefault(row[column], []).append(row)
    if view.first:
        names = {name: each for name, each in names.items() if any(keeps(row, view.first) for row in each)}
    order = sorted(names, key=lambda name: (*_foremost(view, names[name]), name))
    grouped: dict[tuple[Any, Any], list[Row]] = {}
    for name in order[:most]:
        for row in names[name]:
            grouped.setdefault((name, row[view.over]), []).append(row)
    return grouped


def _foremost(view: View, rows: list[Row]) -> tuple[float, ...]:
    """What orders the names of a chart over time: rows of interest, rank or jobs, rows."""
    wanted = -sum(keeps(row, view.first) for row in rows) if view.first else 0
    if "rank" in rows[0]:
        place = min(row["rank"] for row in rows)
    else:
        place = -max((row["n_jobs"] or 0 for row in rows), default=0) if "n_jobs" in rows[0] else 0
    return wanted, place, -len(rows)


NUMBERED = [
    each
    for each in CHARTS
    if PANELS[each.panel][1].kind
    in ("shares", "waste", "weighted", "distribution", "amounts", "busy", "ends", "rates", "coverage")
]


# answers of each vendor are compared above; what is summed from equal answers is equal
@pytest.mark.parametrize("server", server_params("elasticsearch8", matrix=("opensearch3",)), indirect=True)
@pytest.mark.parametrize("chart", NUMBERED, ids=identity)
def test_the_numbers_that_are_drawn_are_those_of_the_store(
    chart: Chart, filled: Server, demo: Session
) -> None:
    """What the charts derive from groups of the index, by the sums that the embedded store gives."""
    page, panel = PANELS[chart.panel]
    wanted = drawn_numbers(panel, expected(panel, page, demo), demo)
    picture = svg(answered(chart.spec, filled))
    assert sorted(written(picture, "numbers")) == sorted(wanted)
    assert (len(wanted) > 1) == (panel.id not in UNSCORED)


def percent(share: float) -> str:
    """A share as the charts write it: what lies in the middle is rounded up, as browsers do."""
    digits = 0 if share >= 0.0995 else 1
    text = f"{Decimal(100 * share).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)}"
    return f"{'0' if share < 5e-4 else text} %"


def hours(value: float) -> str:
    """An amount as the charts write it."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def enough(panel: Panel, row: Row) -> bool:
    """True if a name has jobs enough for a rate, where the panel draws its interval."""
    field = panel.entry("x")
    counted = f"{field.column}_jobs" if panel.kind == "weighted" else "n_jobs"
    return f"{field.column}_sq" not in row or row[counted] >= FEW_JOBS


def drawn_numbers(panel: Panel, rows: list[Row], demo: Session) -> list[str]:
    """The numbers behind bars, as texts."""
    if panel.kind == "coverage":
        jobs = demo.store.aggregate(Query((), (Count("all"),))).table.to_pylist()[0]["all"]
        having = [
            demo.store.aggregate(Query((), (Count("some"),), where=(Present(field.column),)))
            for field in panel.fields
        ]
        return [percent(found.table.to_pylist()[0]["some"] / jobs) for found in having]
    if panel.kind == "ends":
        told = []
        for kinds in ended_hours(panel, rows).values():
            lost, cancelled = _lost(kinds), kinds.get("cancelled", 0.0)
            told.append(f"{lost:,.0f}" + (f" + {cancelled:,.0f} cancelled" if cancelled >= 0.5 else ""))
        return told
    if panel.kind == "rates":
        of_hours = "queue_s" in rows[0]
        return [number(rate) if of_hours else percent(rate) for rate in rates_of(panel, rows)]
    if panel.kind == "busy":
        return [percent(row["cpu_s"] / row["wall_s"] / row["cores"]) for row in rows]
    field, label = panel.entry("x"), panel.entry("label").column
    if panel.kind == "distribution":
        total = sum(row[field.column] for row in rows)
        return [percent(row[field.column] / total) for row in rows]
    if panel.kind == "weighted":
        known = [row for row in rows if row[field.per] and enough(panel, row)]
        largest = sorted(known, key=lambda row: -row[field.per])[: panel.most[0]]
        whole = panel.fields[-1].column
        return [
            f"{row[field.column] / row[field.per]:.0f} ({percent(row[field.per] / row[whole])})"
            for row in largest
        ]
    rows = [row for row in rows if row[label] is not None and enough(panel, row)]
    if panel.kind == "shares":
        largest = sorted(rows, key=lambda row: -row[field.per])[: panel.most[0]]
        return [percent(row[field.column] / row[field.per]) for row in largest]
    if panel.kind == "waste":
        values = [(row[field.per] - row[field.column]) / HOUR_S for row in rows]
    else:
        values = [row[field.column] / (row[field.per] if field.per else 1) / HOUR_S for row in rows]
    return [hours(value) for value in sorted(values, reverse=True)[: panel.most[0]]]


def test_a_queue_chosen_by_its_name_has_its_jobs(filled: Server, demo: Session) -> None:
    """Results call a queue ``name``; the index of jobs finds it under that, too."""
    counts = demo.store.aggregate(Query(("queue",), (Count(),))).table.to_pylist()
    name, n_jobs = max(((row["queue"], row["n_jobs"]) for row in counts), key=lambda pair: pair[1])
    search = {"query": {"match_phrase": {"name": name}}, "size": 0, "track_total_hits": True}
    assert filled.json("POST", f"{PREFIX}-jobs/_search", search)["hits"]["total"]["value"] == n_jobs


def test_the_line_that_is_drawn_is_that_of_the_table(filled: Server, demo: Session) -> None:
    lines = demo.tables.lines(run=latest(demo)).to_pandas()
    chosen = lines[(lines["level"] == "queue") & (lines["method"] == HEADLINE)]
    wanted = {row.processing_type: row.slope for row in chosen.itertuples()}
    (chart,) = [each for each in CHARTS if each.panel == "sites-scatter"]
    spec = answered(chart.spec, filled)
    rows = [hit["_source"] for hit in spec["layer"][0]["data"]["values"]]
    found = {row["processing_type"]: row["slope"] for row in rows}
    assert found == wanted
    assert len(found) > 3
    picture = svg(spec)
    assert len(marks(picture, "line")) == 1, "one type is chosen, and its line alone is drawn"


@pytest.mark.parametrize("chart", CHARTS, ids=identity)
def test_without_rows_a_chart_says_so(chart: Chart) -> None:
    spec = json.loads(json.dumps(chart.spec))

    def emptied(found: Any) -> Any:
        if isinstance(found, dict):
            if "url" in found:
                answer = {"timed_out": False, "aggregations": {"groups": {"buckets": []}}}
                none = [] if "property" in found["format"] else answer
                return {**({"name": found["name"]} if "name" in found else {}), "values": none}
            return {key: emptied(value) for key, value in found.items()}
        return [emptied(each) for each in found] if isinstance(found, list) else found

    for version in (OLDEST, NEWEST):
        picture = svg(emptied(spec), version)
        said = " ".join("".join(each.itertext()) for each in picture.iter() if each.tag.endswith("text"))
        _, panel = PANELS[chart.panel]
        assert all(word in said for word in (panel.empty or "No rows").split())
