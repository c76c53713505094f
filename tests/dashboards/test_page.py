"""The page in a browser: nothing is fetched, nothing runs that is not ours, everything is drawn."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from dashboards.targets.html.profile import Fold
from dashboards.targets.html.profile import Part as ProfilePart
from dashboards.targets.html.report import ReportData
from tests.dashboards.browser import DRAWN, Opened, open_page
from tests.dashboards.conftest import HOSTILE, MakeData

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

_MARKS = """() => [...document.querySelectorAll('figure[data-marks]')].map((figure) => ({
    panel: figure.closest('[data-panel]').dataset.panel,
    rows: Number(figure.dataset.marks),
    marks: figure.querySelectorAll('.marks_marks > path').length,
    bars: figure.querySelectorAll('.bars_marks > line').length,
    drawn: [...figure.querySelectorAll('.chart')].every((chart) => chart.dataset.state === 'drawn'),
}))"""

_WITHOUT_BARS = ("task-curves", "matrix", "pulls")
_EXPERT = (*_WITHOUT_BARS, "efficiency")


@pytest.fixture(scope="module")
def opened(browser: "Browser", data: ReportData, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """The report over 60 sites, every fold opened."""
    found = open_page(browser, data, tmp_path_factory.mktemp("report"))
    found.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found.page.wait_for_function(DRAWN, timeout=20_000)
    return found


def test_nothing_is_fetched_and_nothing_complains(opened: Opened) -> None:
    assert len(opened.requests) == 1
    assert opened.requests[0].startswith("file:")
    assert opened.complaints == []


def test_every_row_has_its_mark_and_bar(opened: Opened) -> None:
    figures = opened.page.evaluate(_MARKS)
    assert len(figures) == 5 + 3 * 3 + len(_WITHOUT_BARS) + 1
    for figure in figures:
        assert figure["drawn"], figure
        assert figure["marks"] == figure["rows"] > 0, figure
        assert figure["bars"] == (0 if figure["panel"] in _WITHOUT_BARS else figure["rows"]), figure


def test_the_numbers_at_a_glance_stand_in_one_row(
    browser: "Browser", data: ReportData, tmp_path: Path
) -> None:
    page = open_page(browser, data, tmp_path, width=1100).page
    tops = page.locator(".tiles li").evaluate_all("tiles => tiles.map((tile) => tile.offsetTop)")
    assert len(tops) == 8
    assert len(set(tops)) == 1


def test_flagged_names_stand_in_table_and_chart(opened: Opened, data: ReportData) -> None:
    assert data.flags is not None
    flags = data.flags.query("level == 'queue' and processing_type == 'all' and method == 'gamma'")
    names = set(flags[flags.confirmed.eq(True)].name)
    assert names
    assert "</script><script>alert(3)</script>" in names
    table = opened.page.locator("#deviating tbody tr:first-child td:first-child").all_inner_texts()
    assert set(table) == names
    chart = opened.page.locator("#corepower-site .chart svg text").all_text_contents()
    assert names <= set(chart)


def test_hovering_tells_about_a_site(opened: Opened) -> None:
    page = opened.page
    mark = page.locator("#deviation-site .marks_marks > path").first
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    text = tooltip.inner_text()
    for word in (
        "Name",
        "Site",
        "Declared corepower",
        "Origin",
        "Deviation",
        "Verdict",
        "Jobs",
        "Tasks",
    ):
        assert word in text
    assert tooltip.locator("img, script, a").count() == 0


def test_hostile_names_are_text_in_tooltips(opened: Opened) -> None:
    """Every mark of the chart is hovered; only text may appear, and no dialog."""
    found = opened.page.evaluate(
        """() => {
            const texts = [];
            for (const mark of document.querySelectorAll('#factors-site .marks_marks > path')) {
                const box = mark.getBoundingClientRect();
                const at = {bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
                mark.dispatchEvent(new PointerEvent('pointermove', at));
                const tooltip = document.getElementById('vg-tooltip-element');
                texts.push([tooltip.textContent, tooltip.querySelectorAll('img, script, a').length]);
            }
            return texts;
        }"""
    )
    text = " ".join(words for words, _ in found)
    assert "<script>alert(1)</script>" in text
    assert '"><img src=x onerror=alert(2)>' in text
    assert sum(elements for _, elements in found) == 0
    assert opened.complaints == []


def test_hovering_a_cell_tells_about_its_bucket(opened: Opened) -> None:
    page = opened.page
    cell = page.locator("#matrix .marks_marks > path").first
    cell.scroll_into_view_if_needed()
    cell.hover(force=True)
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    text = tooltip.inner_text()
    for word in ("Queue", "Task", "Deviation", "Pull", "Status", "Jobs", "k ± error"):
        assert word in text


def test_the_matrix_keeps_the_order_of_its_rows(opened: Opened) -> None:
    """Vega sorts what it is not told to leave: the labels must come from fast to slow, 40 x 25 of them."""
    labels = opened.page.locator("#matrix .role-axis-label text")
    texts = [text for text in labels.all_text_contents() if text]
    tasks, names = texts[:25], texts[25:]
    speeds = [float(name.split()[-1]) for name in names]
    assert (len(tasks), len(names)) == (25, 40)
    assert speeds == sorted(speeds, reverse=True)


@pytest.mark.parametrize("sites", [4, 300])
def test_a_small_and_a_large_grid_are_drawn(
    browser: "Browser", make_data: Callable[..., ReportData], tmp_path: Path, sites: int
) -> None:
    opened = open_page(browser, make_data(sites, types=("all",)), tmp_path)
    figures = [figure for figure in opened.page.evaluate(_MARKS) if figure["panel"] in _EXPERT]
    assert {figure["panel"] for figure in figures} == set(_EXPERT)
    for figure in figures:
        assert figure["drawn"], figure
        assert figure["marks"] == figure["rows"] > 0, figure
    assert opened.complaints == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_one_task_and_hostile_tasks_are_drawn(browser: "Browser", data: ReportData, tmp_path: Path) -> None:
    assert data.residuals is not None
    one = data.residuals.assign(core_class="multi", task_type=None, work_kind=None, task_id=HOSTILE[0])
    opened = open_page(browser, replace(data, residuals=one.drop_duplicates(["level", "name"])), tmp_path)
    figures = {figure["panel"]: figure for figure in opened.page.evaluate(_MARKS)}
    for name in ("task-curves", "matrix"):
        assert figures[name]["drawn"]
        assert figures[name]["marks"] == figures[name]["rows"] > 0
    assert opened.page.locator("#task-curves .over b").all_inner_texts() == [f"{HOSTILE[0]} · multi"]
    assert opened.complaints == []


def test_a_click_sorts_up_and_down(opened: Opened) -> None:
    holder = opened.page.locator("#flags-site-table")
    heading = holder.locator("th", has_text="Deviation")
    column = heading.evaluate("(each) => each.cellIndex")
    values: list[list[float]] = []
    for direction in ("ascending", "descending"):
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == direction
        cells = holder.locator(f"tbody tr:first-child td:nth-child({column + 1})")
        shown = cells.evaluate_all("(all) => all.map((each) => each.dataset.v)")
        numbers = [float(value) for value in shown if value]
        assert all(value == "" for value in shown[len(numbers) :])
        values.append(numbers)
    assert values[0] == sorted(values[0])
    assert values[1] == sorted(values[0], reverse=True)


def test_the_filter_leaves_what_matches(opened: Opened) -> None:
    holder = opened.page.locator("#flags-site-table")
    holder.locator("input").fill("confirmed")
    rows = holder.locator("tbody:visible")
    assert rows.count() == opened.page.locator("#deviating tbody").count()
    assert holder.locator(".shown").inner_text().endswith("of 59")
    holder.locator("input").fill("")
    assert rows.count() == 59


def test_an_address_leads_to_a_queue_and_a_type(
    browser: "Browser", make_data: MakeData, tmp_path: Path
) -> None:
    odd = "O'HARE \"<b>&amp;"
    fold = Fold("A site", "deviates", [odd, "SITE-00"], [ProfilePart("Verdict", "", ["Said."], [], None)])
    opened = open_page(browser, replace(make_data(12, types=("all", "simul")), profiles=[fold]), tmp_path)
    page = opened.page
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = false; })")
    start = page.url
    names = page.locator("#flags-site-table tbody td:first-child").all_text_contents()
    name = next(each for each in names if sum(each in other for other in names) == 1)
    page.goto(f"{start}#{urlencode({'queue': name, 'type': 'simul'})}")
    shown = (
        "[...document.querySelectorAll('{} tbody:not([hidden])')].map((e) => e.rows[0].cells[0].textContent)"
    )
    page.wait_for_function("document.querySelector('details.type').open")
    assert set(page.evaluate(shown.format("details.type .filter ~ * table"))) == {name}
    assert page.locator("#flags-site-table").get_attribute("open") is None
    page.goto(f"{start}#{urlencode({'queue': odd})}")
    page.wait_for_function("document.querySelector('details.profile').open")
    page.evaluate("document.querySelector('#flags-site-table').open = true")
    page.fill("#flags-site-table .filter input", "SITE 1&2")
    assert page.evaluate("location.href") == f"{start}#queue=SITE+1%262"
    page.fill("#flags-site-table .filter input", "")
    assert page.evaluate("location.href") == start
    assert opened.complaints == []


def test_the_legend_brings_a_verdict_forward(opened: Opened) -> None:
    page = opened.page
    marks = page.locator("#corepower-site .marks_marks > path")
    assert marks.evaluate_all("(all) => all.every((each) => each.getAttribute('opacity') === '1')")
    dimmed = page.locator("#corepower-site .marks_marks > path.dimmed")
    entry = page.locator("#corepower-site .legend button", has_text="deviates, confirmed")
    entry.focus()
    page.keyboard.press("Enter")
    bright = page.locator("#corepower-site .marks_marks > path:not(.dimmed)").count()
    assert bright == page.locator("#deviating tbody").count()
    assert dimmed.count() == marks.count() - bright > 0
    assert dimmed.first.evaluate("(each) => getComputedStyle(each).opacity") == "0.12"
    page.keyboard.press("Enter")
    assert dimmed.count() == 0


def test_dark_follows_the_reader_and_paper_does_not(
    browser: "Browser", make_data: Callable[..., ReportData], tmp_path: Path
) -> None:
    opened = open_page(browser, make_data(5), tmp_path, "dark")
    page = opened.page
    ground = "() => getComputedStyle(document.body).backgroundColor"
    label = "() => getComputedStyle(document.querySelector('#corepower-site .role-axis-title text')).fill"
    dark = page.evaluate(ground), page.evaluate(label)
    page.emulate_media(media="print")
    light = page.evaluate(ground), page.evaluate(label)
    assert dark == ("rgb(22, 25, 29)", "rgb(157, 166, 176)")
    assert light == ("rgb(254, 254, 254)", "rgb(91, 100, 112)")
    assert opened.complaints == []


def test_a_page_fits_its_window(opened: Opened) -> None:
    for width in (1000, 1600):
        opened.page.set_viewport_size({"width": width, "height": 900})
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_script_but_ours_may_run(opened: Opened) -> None:
    """Even if a name became an element, the page's policy would not run what it carries."""
    ran = opened.page.evaluate(
        """() => new Promise((resolve) => {
            const intruder = document.createElement('div');
            intruder.innerHTML = '<a onclick="window.ran = true">name</a>';
            document.body.append(intruder);
            intruder.firstChild.dispatchEvent(new MouseEvent('click'));
            setTimeout(() => { intruder.remove(); resolve(window.ran === true); }, 50);
        })"""
    )
    assert ran is False
    assert len(opened.complaints) == 1
    assert "Content Security Policy" in opened.complaints.pop()


def test_chart_and_table_stand_on_the_first_screen(
    browser: "Browser", data: ReportData, tmp_path: Path
) -> None:
    page = open_page(browser, data, tmp_path, width=1400).page
    chart = page.locator("#corepower-site .chart svg").first.bounding_box()
    table = page.locator("#deviating table").bounding_box()
    assert chart is not None
    assert table is not None
    assert chart["y"] + chart["height"] <= 900
    assert table["y"] < chart["y"] + 100
    assert chart["x"] + chart["width"] <= table["x"]


def test_words_fit_a_telephone(browser: "Browser", data: ReportData, tmp_path: Path) -> None:
    page = open_page(browser, data, tmp_path, width=400).page
    widths = page.locator("#deviating .said").evaluate_all("(all) => all.map((each) => each.clientWidth)")
    assert widths
    assert max(widths) < 400
