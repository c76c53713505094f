"""Panels asked of a real index: the same rows as of a store, and as many marks as from rows on a page."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import vl_convert

import esjobs
from dashboards.panels import REPORT
from dashboards.spec import Panel, View
from dashboards.targets.vegalite.charts import CHARTS, from_index, from_rows
from dashboards.targets.vegalite.index import MOST_ROWS, body, hits, index_of
from dashboards.targets.vegalite.marks import Spec
from dashboards.view.ask import query_rows
from dashboards.view.rows import Row
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.query import Count, Maximum, Minimum, Sum
from esjobs.schema.catalogue import table
from esjobs.schema.speed import SPEED
from esjobs.settings import ClusterSettings
from tests.dashboards.answers import answered, at, without_context
from tests.dashboards.drawn import VERSION_BY_PRODUCT, marks, svg
from tests.servers.plugin import server_params
from tests.servers.pool import Servers
from tests.servers.server import Server

TYPE, METHOD = "all", "gamma"
PANELS = [each for each in REPORT if each.view.table in {item.name for item in SPEED.tables}]
DRAWN = [each for each in PANELS if each.kind in CHARTS]
PRODUCTS = server_params("elasticsearch8", "opensearch3", matrix=("elasticsearch9",))

pytestmark = [pytest.mark.slow, pytest.mark.every_version]


@pytest.fixture(scope="session", params=PRODUCTS)
def server(request: pytest.FixtureRequest, servers: Servers) -> Server:
    """The shared server of each product whose dashboards draw, running."""
    return servers.running(request.param)


@pytest.fixture(scope="module")
def demo(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The results of the demo, embedded."""
    copied = shutil.copy(demo_folder / "demo.duckdb", tmp_path_factory.mktemp("views"))
    with esjobs.open(f"duckdb:{copied}") as session:
        yield session


@pytest.fixture(scope="module")
def published(demo: Session) -> dict[str, str]:
    """By product, the prefix under which its indices hold the same results."""
    return {}


@pytest.fixture
def prefix(server: Server, demo: Session, published: dict[str, str]) -> str:
    """What the names of the indices with the results of the demo begin with."""
    name = server.product.name
    if name not in published:
        settings = Settings(store=server.url, cluster=ClusterSettings(prefix="views"))
        with esjobs.open(settings=settings) as session:
            run = demo.tables.runs().to_pandas()["run"].iloc[0]
            session.store.publish(
                [session.store.replace(each, run, list(demo.store.read(each, ()))) for each in SPEED.tables]
            )
        published[name] = "views"
    return published[name]


def supplied(panel: Panel, demo: Session) -> Spec:
    """The chart of a panel with its rows read from the embedded store."""
    rows = {
        name: query_rows(demo.store, view, TYPE, METHOD)
        for name, view in {"rows": seen(panel), **{join.name: join.view for join in panel.joins}}.items()
    }
    plain = {name: [_values(row) for row in each] for name, each in rows.items()}
    return {**from_rows(panel), "datasets": plain}


def _values(row: Row) -> Row:
    return {name: value for name, value in row.items() if isinstance(value, str | int | float)}


def seen(panel: Panel) -> View:
    """The view of a panel; of one that is about every level, that of queues."""
    return replace(panel.view, level=panel.view.level or "queue")


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.id)
def test_a_view_holds_the_same_rows_in_a_store_and_in_an_index(
    panel: Panel, server: Server, prefix: str, demo: Session
) -> None:
    names = table(panel.view.table).column_names
    key = [name for name in names if name not in ("window_start", "window_end")]
    expected = query_rows(demo.store, panel.view, TYPE, METHOD)
    assert len(expected) <= MOST_ROWS
    search = without_context(body(panel.view, key, TYPE, METHOD))
    hits = server.json("POST", f"{index_of(replace(panel.view, runs='every'), prefix)}/_search", search)[
        "hits"
    ]["hits"]
    rows = [{name: hit["_source"].get(name) for name in key} for hit in hits]
    assert _sorted(rows) == _sorted([{name: row[name] for name in key} for row in expected])


@pytest.mark.parametrize("name", ["flags", "factors", "pull_histograms"])
def test_groups_of_an_index_are_those_of_a_store(
    name: str, server: Server, prefix: str, demo: Session
) -> None:
    column = "n_buckets" if name == "pull_histograms" else "n_jobs"
    sums = (Count("n"), Sum(column, "total"), Minimum(column, "least"), Maximum(column, "most"))
    by = ("method", "status_shown") if name == "flags" else ("method", "processing_type")
    view = View(name, by=by, metrics=sums, level="queue", types="every")
    source = hits(replace(view, runs="every"), (), prefix=prefix)
    buckets = answered(dict(source.data), server)["values"]["aggregations"]["groups"]["buckets"]
    rows = [{column: at(bucket, source.path(column)) for column in source.paths} for bucket in buckets]
    expected = query_rows(demo.store, view)
    assert len(rows) > 1
    assert _sorted(rows) == _sorted(expected)


def _sorted(rows: list[Row]) -> list[str]:
    """Rows in an order of their own; an index gives whole numbers back without their point."""
    return sorted(json.dumps({name: _value(row[name]) for name in sorted(row)}) for row in rows)


def _value(value: Any) -> Any:
    return float(value) if type(value) is int else value


@pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)
@pytest.mark.parametrize("panel", DRAWN, ids=lambda panel: panel.id)
def test_a_chart_draws_from_an_index_what_it_draws_from_rows(
    panel: Panel, server: Server, prefix: str, demo: Session, capfd: pytest.CaptureFixture[str]
) -> None:
    joins = tuple(replace(join, view=replace(join.view, runs="every")) for join in panel.joins)
    of_every_run = replace(panel, view=replace(panel.view, runs="every"), joins=joins)
    asking = from_index(of_every_run, processing_type=TYPE, method=METHOD, prefix=prefix)
    here, there = supplied(panel, demo), answered(asking, server)
    version = VERSION_BY_PRODUCT[server.product.name]
    counts = []
    for spec in (here, there):
        vl_convert.vegalite_to_vega(spec, vl_version=version, show_warnings=True)
        assert "WARN" not in capfd.readouterr().err
        picture = svg(spec, version)
        counts.append({name: len(marks(picture, name)) for name in _layers(spec)})
    assert counts[0] == counts[1]
    assert counts[0]["marks"] > 0


def _layers(spec: Spec) -> list[str]:
    inner = [layer for each in spec["layer"] for layer in (each, *each.get("layer", ()))]
    return [layer["name"] for layer in inner if "name" in layer and "mark" in layer]
