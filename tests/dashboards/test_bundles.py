"""Bundles of dashboards: nothing that a server refuses, nothing that a table lacks, the same each time."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dashboards.pages import HEADLINE, PAGES
from dashboards.spec import OWN, JobsIndex, Mean, Page, Panel, table
from dashboards.targets.kibana.bundle import kibana
from dashboards.targets.portable.bundle import portable
from dashboards.targets.saved_objects.boards import Opening
from dashboards.targets.saved_objects.checks import complaints
from dashboards.targets.saved_objects.data_views import KINDS
from docs.generate import objects
from esjobs.cli.main import main
from esjobs.core.query import Metric, metric_fields
from esjobs.core.tables import Table
from esjobs.render.bundles import TARGETS, bundle_of
from esjobs.schema.catalogue import TABLES
from esjobs.store.elastic.layout import rows_index
from tests.messages import compare_text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BAD = sorted((HERE / "bad").glob("*.ndjson"))
MAKERS = {"portable": portable, "kibana": kibana}
EVERY_PANEL = [(page, placed.panel) for page in PAGES for placed in (*page.places, *page.served)]
ABOUT_ROWS = [(page, panel) for page, panel in EVERY_PANEL if panel.view.table]


def named(pair: object) -> str:
    return pair[1].id if isinstance(pair, tuple) else str(pair)


@pytest.mark.parametrize("name", [f"{target}.{end}" for target in TARGETS for end in ("ndjson", "md")])
def test_committed_bundles_are_current(name: str) -> None:
    committed = (ROOT / "kibana_objects" / name).read_text(encoding="utf-8")
    assert committed == objects()[name], f"kibana_objects/{name} is stale: make docs"


@pytest.mark.parametrize("target", TARGETS)
def test_a_bundle_is_whole(target: str) -> None:
    assert complaints(bundle_of(target)) == []


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_broken_bundle_is_told(path: Path) -> None:
    """The first line of each says which complaint it has to give, and it is the only one."""
    wanted, _, text = path.read_text(encoding="utf-8").partition("\n")
    assert complaints(text) == [wanted.removeprefix("# ")]


def test_every_check_has_a_broken_bundle() -> None:
    assert len(BAD) >= 20


@pytest.mark.parametrize("pair", ABOUT_ROWS, ids=named)
def test_a_panel_names_columns_that_its_table_has(pair: tuple[Page, Panel]) -> None:
    page, panel = pair
    asked = table(panel.view.table)
    own = [field for field in panel.fields if not field.table]
    names = [name for field in own for name in (field.column, field.error, field.per, field.unit)]
    names += [where.column for where in (*panel.view.where, *panel.view.first)]
    names += [where.column for tile in panel.tiles for where in tile.where]
    names += [tile.column for tile in panel.tiles]
    names += [*panel.view.by, panel.view.over]
    names += [name.lstrip("-").strip("|") for name in panel.view.sort]
    names += [metric.field for metric in panel.view.metrics if hasattr(metric, "field")]
    unknown = {name for name in names if name} - set(asked.column_names)
    unknown -= {metric.name for metric in panel.view.metrics}
    assert not unknown
    for choice in page.choices:
        if panel.kind not in UNFILTERED:
            assert choice.column in table(choice.table).column_names


UNFILTERED = {"markdown"}


@pytest.mark.parametrize("pair", ABOUT_ROWS, ids=named)
def test_a_panel_counts_and_sorts_what_an_index_can(pair: tuple[Page, Panel]) -> None:
    _, panel = pair
    asked = table(panel.view.table)
    for name in panel.view.by:
        assert asked.column(name).type in ("keyword", "integer")
    for metric in panel.view.metrics:
        for name in metric_names(metric):
            assert asked.column(name).type in ("number", "integer")
    if panel.view.over:
        assert asked.column(panel.view.over).type in ("time", "day")
    for name in panel.view.sort:
        metrics = {metric.name for metric in panel.view.metrics}
        bare = name.lstrip("-").strip("|")
        assert bare in metrics or KINDS[asked.column(bare).type][2]


def metric_names(metric: Metric | Mean) -> tuple[str, ...]:
    return (metric.field,) if isinstance(metric, Mean) else metric_fields(metric)


def test_what_a_page_opens_with_is_known_to_all_its_panels() -> None:
    """A filter on a column that an index lacks leaves no row of it."""
    for page in PAGES:
        for condition in page.preset:
            for placed in (*page.places, *page.served):
                view = placed.panel.view
                if view.table:
                    assert condition.column in table(view.table).column_names, placed.panel.id
                    assert view.types == "every", placed.panel.id


@pytest.mark.parametrize("each", TABLES, ids=lambda each: each.name)
def test_data_views_say_what_the_mapping_says(each: Table) -> None:
    mapping = rows_index(each)["mappings"]["properties"]
    for column in each.columns:
        if column.type in KINDS:
            _, known_as, searchable = KINDS[column.type]
            found = mapping[column.name]
            assert (found["type"], found.get("index", True)) == (known_as, searchable), column.name
            assert found.get("doc_values", True), column.name


@pytest.mark.parametrize("target", TARGETS)
def test_a_dashboard_is_three_screens_that_ask_few_things(target: str) -> None:
    for line in MAKERS[target](PAGES, HEADLINE).splitlines():
        each = json.loads(line)
        assert each["type"] != "search"
        if each["type"] != "dashboard":
            continue
        opened = each["attributes"]
        assert (opened["timeFrom"], opened["timeTo"]) == ("now-30d/d", "now")
        assert opened["refreshInterval"] == {"pause": False, "value": 300_000}
        panels = json.loads(opened["panelsJSON"])
        assert max(sum(panel["gridData"][side] for side in "yh") for panel in panels) <= 3 * SCREEN
        for panel in panels:
            for url in urls(panel):
                assert url["body"].get("size", 0) <= 1000
        # the choices of a page are a panel in one product, and no panel in the other
        assert len([panel for panel in panels if panel["panelIndex"] != "choices"]) <= 12, each["id"]
    for page in PAGES:
        assert set(page.beyond) <= {placed.panel.id for placed in page.places}, page.id


@pytest.mark.parametrize("target", TARGETS)
def test_a_click_empties_no_panel_of_its_page(target: str) -> None:
    """A page is filtered only by what its panels have columns of, or by what it offers as a choice."""
    of_page = {f"esjobs-dashboard-{page.id}": page for page in PAGES}
    shown = {placed.panel.id: placed.panel for page in PAGES for placed in page.board}
    silent = set()
    for line in map(json.loads, MAKERS[target](PAGES, HEADLINE).splitlines()):
        for each in json.loads(line["attributes"].get("panelsJSON", "[]")):
            page, panel = of_page[line["id"]], shown.get(each["panelIndex"])
            if each["embeddableConfig"].get("disableTriggers"):
                silent.add(each["panelIndex"])
            elif panel is not None and panel.kind in ("bars", "tiles"):
                assert page.narrows(panel.entry("label").column), panel.id
            lens = each["embeddableConfig"].get("attributes", {}).get("state", {})
            for column in lens.get("visualization", {}).get("columns", ()):
                if column.get("oneClickFilter"):
                    assert page.narrows(column["columnId"]) or page.leads_to, panel
    charts = {"sites-counts", "trust-days", "trust-nights", "trust-outcomes", "efficiency-coverage"}
    assert silent == charts | {"trust-components", "trust-fits", "trust-ledger"}


def test_a_queue_or_a_site_has_rows_for_every_panel_of_its_page() -> None:
    (page,) = (page for page in PAGES if page.id == "site")
    for placed in page.board:
        columns = rows_index(table(placed.panel.view.table))["mappings"]["properties"]
        assert {"name", "site"} <= set(columns), placed.panel.id


SCREEN = 32
"""Rows of the grid that a screen of 1,080 pixels shows."""


def test_a_click_chooses_a_name_and_its_night() -> None:
    """Each server has functions of its own name; that of the other would end the chart."""
    for target, product in {"kibana": "kibana", "portable": "opensearchDashboards"}.items():
        text = MAKERS[target](PAGES, HEADLINE, jobs=JobsIndex("archive", "end", OWN.columns))
        assert set(re.findall(r"(\w+)AddFilter", text)) == {product}
        assert set(re.findall(r"(\w+)SetTimeFilter", text)) == {product}
        calls = {name: call for line in text.splitlines() for name, call in sent(json.loads(line))}
        asked = f'{product}AddFilter({{match_phrase: {{"site": X[0]}}}}, "esjobs-flag-history")'
        assert calls["today-nights", "sent_marks"] == f"X && isValid(X[0]) ? {asked} : null".replace(
            "X", 'pick_marks["site"]'
        )
        assert f"{product}SetTimeFilter" in calls["today-nights", "sent_when"]
        assert f"{product}SetTimeFilter" in calls["today-days-failed", "sent_marks"]
        assert calls["efficiency-by-queue", "sent_marks"].endswith('"archive") : null')
        assert '{match_phrase: {"name"' in calls["site-k-over-time", "sent_marks"]
        assert "as-of" not in {panel for panel, _ in calls}


def sent(line: dict[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    """What a click on a mark of a chart calls, by panel and parameter."""
    for panel in json.loads(line["attributes"].get("panelsJSON", "[]")):
        spec = json.loads(panel["embeddableConfig"].get("savedVis", {}).get("params", {}).get("spec", "{}"))
        for each in spec.get("params", ()):
            if each["name"].startswith("sent"):
                yield (panel["panelIndex"], each["name"]), each["expr"]


def test_names_lead_to_pages_where_there_are_some() -> None:
    text = kibana(PAGES, HEADLINE, opening=Opening(days=7, refresh_s=0, base_url="https://grid.example"))
    lines = [json.loads(line)["attributes"] for line in text.splitlines()]
    forms = {each["title"]: json.loads(each["fieldFormatMap"]) for each in lines if "fieldFormatMap" in each}
    assert forms["esjobs-issues"]["job_id"]["params"]["urlTemplate"] == "https://grid.example/job/{{value}}"
    assert (
        forms["esjobs-latest-flags"]["site"]["params"]["urlTemplate"] == "https://grid.example/site/{{value}}"
    )
    assert forms["esjobs-latest-flags"]["deviation"]["id"] == "percent"
    opened = [each for each in lines if "timeFrom" in each]
    assert {(each["timeFrom"], each["refreshInterval"]["pause"]) for each in opened} == {("now-7d/d", True)}
    assert "urlTemplate" not in kibana(PAGES, HEADLINE)


def urls(panel: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a chart asks."""
    spec = panel["embeddableConfig"].get("savedVis", {}).get("params", {}).get("spec")
    if spec is None:
        return

    def inside(found: Any) -> Iterator[dict[str, Any]]:
        if isinstance(found, dict):
            if isinstance(found.get("url"), dict):
                yield found["url"]
            for value in found.values():
                yield from inside(value)
        elif isinstance(found, list):
            for value in found:
                yield from inside(value)

    yield from inside(json.loads(spec))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"references":[{', '"references":[7,{'),
        ('"panelsJSON":"[{', '"panelsJSON":"[7,{'),
        ('"kibanaSavedObjectMeta":{', '"kibanaSavedObjectMeta":[],"x":{'),
        ('\\"gridData\\":{', '\\"gridData\\":{\\"x\\":\\"a\\",\\"y\\":{},\\"z\\":'),
        ('"type":"dashboard"', '"type":["dashboard"]'),
    ],
)
def test_a_file_of_any_shape_is_told_without_a_traceback(old: str, new: str) -> None:
    text = bundle_of("portable")
    assert old in text
    assert complaints(text.replace(old, new, 1)) != []


def test_tables_keep_rows_in_which_a_text_is_missing() -> None:
    """Lens heeds ``missingBucket`` only beside ``otherBucket``."""
    texts = json.dumps([json.loads(line) for line in bundle_of("kibana").splitlines()])
    settings = re.findall(r'\\"missingBucket\\": ?(\w+).*?\\"otherBucket\\": ?(\w+)', texts)
    assert {("true", "true"), ("false", "false")} == set(settings)


def test_a_prefix_moves_names_and_indices(tmp_path: Path) -> None:
    (tmp_path / "esjobs.toml").write_text('[cluster]\nprefix = "other"\n')
    said = CliRunner().invoke(
        main,
        ["--config", str(tmp_path / "esjobs.toml"), "dashboards", "render", "--out", str(tmp_path / "out")],
    )
    assert said.exit_code == 0, said.output
    for target in TARGETS:
        text = (tmp_path / "out" / f"{target}.ndjson").read_text()
        assert complaints(text) == []
        assert "esjobs-" not in text
        assert '"id":"other-dashboard-sites"' in text


def test_the_jobs_of_an_archive_are_a_data_view(tmp_path: Path) -> None:
    arguments = ["--jobs-index", "jobs_archive_*", "--field-map", "atlas-panda", "--quiet"]
    said = CliRunner().invoke(
        main, [*arguments, "dashboards", "render", "--target", "kibana", "--out", str(tmp_path)]
    )
    assert said.exit_code == 0, said.output
    lines = [json.loads(line) for line in (tmp_path / "kibana.ndjson").read_text().splitlines()]
    (found,) = [each["attributes"] for each in lines if each["id"] == "esjobs-data-jobs"]
    assert (found["title"], found["timeFieldName"]) == ("jobs_archive_*", "endtime")
    computed = json.loads(found["runtimeFieldMap"])
    assert set(computed) == {"cpu_efficiency", "cpu_s_per_event", "core_h"}
    assert "doc['actualcorecount']" in computed["core_h"]["script"]["source"]


def test_check_says_what_is_wrong_and_fails(tmp_path: Path) -> None:
    good = CliRunner().invoke(main, ["dashboards", "check"])
    assert (good.exit_code, good.stdout) == (0, "")
    broken = tmp_path / "broken.ndjson"
    broken.write_text(bundle_of("portable").replace('"8.9.0"', '"10.2.0"'))
    bad = CliRunner().invoke(main, ["dashboards", "check", str(broken)])
    assert bad.exit_code == 1
    assert "typeMigrationVersion is 10.2.0, expected 8.9.0" in bad.stdout
    missing = CliRunner().invoke(main, ["dashboards", "check", str(tmp_path / "no.ndjson")])
    assert missing.exit_code == 1
    compare_text(missing.stderr)
