"""Reading the page: nothing is cut for good, narrow windows hold whole words, the keyboard reaches all."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dashboards.targets.html.report import ReportData
from tests.dashboards.browser import DRAWN, Opened, open_page
from tests.dashboards.conftest import ADVICE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

_OPEN = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
_CUT = """() => [...document.querySelectorAll('main *')]
    .filter((each) => getComputedStyle(each).webkitLineClamp !== 'none')
    .map((each) => ({
        hides: each.scrollHeight > each.clientHeight + 1,
        button: each.nextElementSibling && each.nextElementSibling.matches('button.more'),
    }))"""
_REGIONS = """() => [...document.querySelectorAll('.scroll')].map((each) => ({
    name: each.getAttribute('aria-label'),
    role: each.getAttribute('role'),
    wide: each.scrollWidth > each.clientWidth + 1,
    tall: each.scrollHeight > each.clientHeight + 1,
    hint: each.parentElement.querySelector('.hint').checkVisibility(),
    reached: each.tabIndex === 0,
}))"""
_BEYOND = """() => [...document.querySelectorAll('.chart svg')].flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')]
        .filter((text) => text.textContent && text.checkVisibility())
        .map((text) => [text.textContent, text.getBoundingClientRect()])
        .filter(([, box]) => box.width > 0)
        .filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1
            || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        .map(([words]) => words);
})"""


@pytest.fixture(scope="module")
def narrow(
    browser: "Browser", make_data: Callable[..., ReportData], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    """The report in a window 400 pixels wide, every fold open."""
    opened = open_page(browser, make_data(38), tmp_path_factory.mktemp("narrow"), width=400)
    opened.page.evaluate(_OPEN)
    opened.page.wait_for_function(DRAWN, timeout=20_000)
    yield opened
    assert opened.complaints == []


@pytest.fixture
def wide(browser: "Browser", data: ReportData, tmp_path: Path) -> Opened:
    """The report with the longest names, every fold open."""
    opened = open_page(browser, data, tmp_path, width=1400)
    opened.page.evaluate(_OPEN)
    opened.page.wait_for_function(DRAWN, timeout=20_000)
    return opened


def test_what_is_cut_has_a_button(wide: Opened) -> None:
    cut = wide.page.evaluate(_CUT)
    assert cut
    assert all(each["button"] and each["hides"] for each in cut)
    assert wide.page.locator("#method .more").count() == 0
    assert wide.page.locator("#method dd").last.inner_text().endswith("but never enters a fit.")


def test_the_keyboard_opens_and_closes_what_is_cut(wide: Opened) -> None:
    button = wide.page.locator(".more").first
    text = button.locator("xpath=preceding-sibling::*[1]")
    before = text.evaluate("(each) => each.clientHeight")
    button.focus()
    wide.page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    assert text.evaluate("(each) => each.clientHeight === each.scrollHeight")
    assert text.evaluate("(each) => each.clientHeight") > before
    wide.page.keyboard.press("Space")
    assert button.get_attribute("aria-expanded") == "false"
    assert text.evaluate("(each) => each.clientHeight") == before


def test_without_scripts_nothing_is_cut(browser: "Browser", data: ReportData, tmp_path: Path) -> None:
    page = open_page(browser, data, tmp_path, scripts=False).page
    assert page.locator(".long").count() > 0
    assert page.locator(".cut").count() == 0


def test_tables_say_when_they_scroll_sideways_and_only_then(narrow: Opened) -> None:
    page = narrow.page
    wide: list[int] = []
    for width in (400, 1500):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(200)
        regions = page.evaluate(_REGIONS)
        for region in regions:
            assert region["role"] == "region"
            assert region["name"]
            assert region["hint"] is region["wide"], region
            assert region["reached"] is (region["wide"] or region["tall"]), region
        wide.append(sum(region["wide"] for region in regions))
    assert wide[0] > wide[1]
    page.set_viewport_size({"width": 400, "height": 900})


def test_the_keyboard_scrolls_a_table_whose_names_stay(narrow: Opened) -> None:
    region = narrow.page.locator("#deviating .scroll")
    name = region.locator("tbody tr:first-child td:first-child").first
    before = name.bounding_box()
    region.focus()
    narrow.page.keyboard.press("ArrowRight")
    narrow.page.wait_for_function("(each) => each.scrollLeft > 20", arg=region.element_handle())
    after = name.bounding_box()
    assert before is not None
    assert after is not None
    assert after["x"] == pytest.approx(before["x"], abs=1)
    assert "more-left" in str(region.locator("xpath=..").get_attribute("class"))


def test_words_of_charts_are_whole_in_a_narrow_window(narrow: Opened) -> None:
    assert narrow.page.locator(".chart svg").count() > 10
    assert narrow.page.evaluate(_BEYOND) == []
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_benchmark_of_a_long_name_stretches_nothing(
    browser: "Browser", make_data: Callable[..., ReportData], tmp_path: Path
) -> None:
    data = make_data(12, types=("all",))
    assert data.flags is not None
    assert data.lines is not None
    name = "<b>" + "HS" * 300
    flags, lines = data.flags.assign(benchmark=name), data.lines.assign(benchmark=name)
    opened = open_page(browser, replace(data, flags=flags, lines=lines), tmp_path, width=400)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert opened.page.evaluate(_BEYOND) == []
    assert name in opened.page.locator("#corepower-site figcaption").inner_text()


def test_legends_wrap_in_a_narrow_window(narrow: Opened) -> None:
    entries = narrow.page.locator("#corepower-site .legend button")
    assert entries.count() >= 4
    assert entries.evaluate_all("(all) => all.every((each) => each.getBoundingClientRect().right <= 400)")


def test_advice_that_rows_share_is_given_once(wide: Opened, data: ReportData) -> None:
    text = wide.page.locator("#deviating").inner_text()
    rows = wide.page.locator("#deviating tbody")
    assert rows.count() > 2
    assert text.count(ADVICE) == 1
    assert text.index(ADVICE) < text.index("ran as fast as")
    assert data.flags is not None
    sent = data.flags[data.flags.confirmed == True].sentence  # noqa: E712 - a column with nulls
    assert sent.str.contains(ADVICE, regex=False).all()


def test_the_first_stop_of_the_keyboard_skips_the_contents(wide: Opened) -> None:
    page = wide.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "results"


def test_contents_stay_in_sight_and_cover_no_heading(wide: Opened) -> None:
    page = wide.page
    page.locator("nav a", has_text="Method").click()
    contents = page.locator("nav").bounding_box()
    heading = page.locator("#section-method h2").bounding_box()
    assert contents is not None
    assert heading is not None
    assert contents["y"] == pytest.approx(0, abs=1)
    assert heading["y"] >= contents["y"] + contents["height"]
