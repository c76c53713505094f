"""Pages over names that attack, over nothing, on narrow, dark and printed ground."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dashboards.pages import PAGES
from dashboards.targets.html.pages.files import Setting, files_of, site_of
from dashboards.targets.html.report import ReportData
from tests.dashboards.conftest import HOSTILE
from tests.dashboards.made_pages import Frames, pages
from tests.dashboards.opened_pages import again, open_file, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

FILES = ("index", *(page.id for page in PAGES[1:]))


@pytest.fixture(scope="module")
def folder(data: ReportData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a run over 60 sites, some of them with hostile names."""
    return write(pages(data), tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a store without a row."""
    return write(site_of(PAGES, Frames(ReportData()), Setting()), tmp_path_factory.mktemp("nothing"))


def test_the_same_rows_give_the_same_files(data: ReportData) -> None:
    assert list(files_of(pages(data))) == list(files_of(pages(data)))


def test_hostile_names_are_text(browser: "Browser", folder: Path) -> None:
    opened = open_file(browser, folder, "sites")
    page = opened.page
    more = page.locator("#sites-in-words .further")
    if more.is_visible():
        more.click()
    names = page.locator("#sites-in-words tbody tr:first-child td:first-child").all_text_contents()
    for name in HOSTILE[:6]:
        assert any(name.replace("\n", "\\n") in shown for shown in names), name
    assert any("\\u202eright to left" in shown for shown in names)
    assert page.locator("main img, main script, main iframe").count() == 0
    page.locator("#sites-in-words a", has_text="img src=x").first.click()
    page.wait_for_url("**/site.html#*")
    page.wait_for_function("() => document.body.dataset.drawn !== undefined")
    assert page.get_by_role("combobox", name="Queue").input_value() == HOSTILE[1]
    assert page.locator("#site-queues tbody td:first-child").all_text_contents() == [HOSTILE[1]]
    assert opened.complaints == []


def test_what_stands_in_the_address_is_only_compared(browser: "Browser", folder: Path) -> None:
    chosen = "site#queue=%3Cimg%20src%3Dx%20onerror%3Dalert(9)%3E&site=*&constructor=1&__proto__=2"
    opened = open_file(browser, folder, chosen)
    assert opened.page.locator("#site-queues .empty").count() == 1
    assert opened.page.locator("main img").count() == 0
    assert opened.complaints == []
    opened = open_file(browser, folder, "sites#processing-type=no%20such%20type")
    assert opened.page.get_by_role("combobox", name="Processing type").input_value() == "all"
    assert opened.complaints == []


@pytest.mark.parametrize("file", FILES)
def test_nothing_draws_an_explanation(browser: "Browser", nothing: Path, file: str) -> None:
    opened = open_file(browser, nothing, file)
    (page,) = (each for each in PAGES if file in ("index" if each is PAGES[0] else each.id,))
    for placed in page.places:
        panel = placed.panel
        if panel.kind in ("markdown", "tiles"):
            continue
        words = opened.page.locator(f"#{panel.id} .empty").inner_text()
        assert words.startswith(panel.empty or "No rows"), panel.id
    assert opened.complaints == []


@pytest.mark.parametrize("width", [400, 900, 1400])
def test_a_page_is_as_wide_as_its_window(browser: "Browser", folder: Path, width: int) -> None:
    for file in FILES:
        opened = open_file(browser, folder, file, width=width)
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, file
        assert opened.complaints == []
        opened.page.context.close()


def test_dark_follows_the_reader_and_paper_does_not(browser: "Browser", folder: Path) -> None:
    page = open_file(browser, folder, "sites", scheme="dark").page
    ground = "() => getComputedStyle(document.body).backgroundColor"
    mark = "() => getComputedStyle(document.querySelector('#sites-scatter .role-axis-title text')).fill"
    dark = page.evaluate(ground), page.evaluate(mark)
    page.emulate_media(media="print")
    assert dark == ("rgb(22, 25, 29)", "rgb(157, 166, 176)")
    assert (page.evaluate(ground), page.evaluate(mark)) == ("rgb(254, 254, 254)", "rgb(91, 100, 112)")


def test_the_keyboard_reaches_choices_tables_and_legends(browser: "Browser", folder: Path) -> None:
    page = open_file(browser, folder, "sites").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "results"
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.closest('form, .legend, th, td, .filter')?.tagName"))
    assert {"UL", "TH"} <= seen
    page.get_by_role("combobox", name="Verdict").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => location.hash.startsWith('#verdict=')")


def test_a_verdict_has_its_colour_wherever_it_stands(browser: "Browser", folder: Path) -> None:
    opened = open_file(browser, folder, "sites")
    page = opened.page
    drawn = page.locator("#sites-scatter .marks_marks > path[stroke='#bf3c06']").count()
    said = page.locator("#sites-in-words .verdict.look-confirmed").count()
    assert said >= drawn > 0
    page.get_by_role("combobox", name="Verdict").select_option("confirmed")
    again(opened)
    colours = page.locator("#sites-scatter .marks_marks > path").evaluate_all(
        "(all) => [...new Set(all.map((each) => each.getAttribute('stroke')))]"
    )
    assert colours == ["#bf3c06"]
