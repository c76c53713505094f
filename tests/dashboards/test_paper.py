"""The report on paper: what is closed on screen is there, headings stay with their charts, pages are few."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dashboards.panels.account import METHOD
from dashboards.targets.html.compose import Composer
from dashboards.targets.html.report import ReportData
from tests.dashboards.browser import open_page, without

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

_SCREEN = """() => ({
    open: document.querySelectorAll('details[open]').length,
    sizes: [...document.querySelectorAll('.chart svg')].map((each) => each.getAttribute('viewBox')),
})"""


_ASKED = ("Pulls of the buckets", "Where does each queue deviate, by task?", "2018-08-17")


def squeezed(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def printed(page: "Page", file: Path) -> list[str]:
    """The text of each page of the report's PDF without white space, for lines break anywhere."""
    page.pdf(path=file, prefer_css_page_size=True)
    if shutil.which("pdftotext") is None:
        without("pdftotext is missing: apt-get install poppler-utils")
    done = subprocess.run(["pdftotext", file, "-"], capture_output=True, text=True, check=True)
    return [squeezed(page) for page in done.stdout.split("\f")[:-1]]


@pytest.fixture(scope="module")
def plain(make_data: Callable[..., ReportData]) -> ReportData:
    """A run over 38 queues and two types."""
    return make_data(38, types=("all", "evgen", "simul"))


@pytest.fixture(scope="module", params=[True, False], ids=["scripts", "no scripts"])
def pages(
    request: pytest.FixtureRequest,
    browser: "Browser",
    plain: ReportData,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[str]:
    """The printed report, as a browser prints it with scripts and without."""
    folder = tmp_path_factory.mktemp("paper")
    opened = open_page(browser, plain, folder, scripts=request.param)
    return printed(opened.page, folder / "report.pdf")


def test_what_is_closed_on_screen_is_on_paper(pages: list[str], plain: ReportData) -> None:
    text = "".join(pages)
    composer = Composer(plain)
    blocks = {block.panel.id: block for section in composer.sections() for block in section.blocks}
    for name in ("flags-site-table", "undeclared", "set-aside", "without-factor"):
        panel = blocks[name].panel
        assert panel.folded
        rows = composer.rows(panel, "all")
        assert rows
        start = text.index(squeezed(panel.title))
        for row in rows:
            assert squeezed(str(row["name"])) in text[start:], (name, row["name"])


def test_the_method_is_there_to_its_last_word(pages: list[str]) -> None:
    text = "".join(pages)
    for _, words in METHOD.text:
        assert squeezed(words.replace("{limit}", "20 %"))[-60:] in text


def test_the_expert_part_is_left_out_and_said_to_be(pages: list[str]) -> None:
    said = pages[0][pages[0].index("Leftoutonpaper:") :].split(".Thefileitselfhasitall")[0]
    for title in ("For experts", "Individual processing types", "Accounting by day", "The fits"):
        assert squeezed(title) in said
    text = "".join(pages)
    for title in (*_ASKED, "The fits "):
        assert squeezed(title) not in text.replace(said, "")
    types = text[text.rindex("Thesamefitforeachprocessingtype") : text.index("Eachjobofthewindow")]
    assert types.count("queueswithaspeedfactor") == 2


def test_headings_stand_on_the_page_of_their_chart(
    browser: "Browser", plain: ReportData, tmp_path: Path
) -> None:
    pages = printed(open_page(browser, plain, tmp_path).page, tmp_path / "report.pdf")
    for heading, axis in (
        ("Speed factor against declared corepower", "Declared corepower (HS06 per core)"),
        ("Deviation from the declaration, queue by queue", "Deviation (faster"),
        ("Speed factors of queues Sorted", "Speed factor k"),
        ("Speed factors of CPU models Sorted", "Speed factor k"),
    ):
        (page,) = (page for page in pages if squeezed(heading) in page)
        assert squeezed(axis) in page[page.index(squeezed(heading)) :], heading


@pytest.mark.parametrize("width", [400, 1280])
def test_pages_are_few_whatever_the_window(
    browser: "Browser", plain: ReportData, tmp_path: Path, width: int
) -> None:
    pages = printed(open_page(browser, plain, tmp_path, width=width).page, tmp_path / "report.pdf")
    assert len(pages) <= 8
    assert pages[-1].endswith(f"{len(pages)}/{len(pages)}")


def test_everything_is_printed_for_who_asks(browser: "Browser", plain: ReportData, tmp_path: Path) -> None:
    opened = open_page(browser, plain, tmp_path)
    opened.page.get_by_label("Print everything").check()
    text = "".join(printed(opened.page, tmp_path / "report.pdf"))
    assert "Leftoutonpaper" not in text
    for title in _ASKED:
        assert squeezed(title) in text
    charts = text.count(squeezed("Declared corepower (HS06 per core)"))
    assert charts == 3, "all types together, and each of two"
    assert opened.complaints == []


def test_after_printing_the_screen_is_as_before(
    browser: "Browser", plain: ReportData, tmp_path: Path
) -> None:
    page = open_page(browser, plain, tmp_path).page
    before = page.evaluate(_SCREEN)
    printed(page, tmp_path / "report.pdf")
    page.wait_for_function(f"(known) => JSON.stringify(({_SCREEN})()) === JSON.stringify(known)", arg=before)
    assert page.evaluate(_SCREEN) == before


def test_nothing_is_wider_than_the_paper(browser: "Browser", data: ReportData, tmp_path: Path) -> None:
    """A browser shrinks all pages for the widest table; the longest names must not do that."""
    page = open_page(browser, data, tmp_path, width=703).page
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 703
