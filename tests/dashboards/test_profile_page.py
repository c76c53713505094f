"""The page of one site, opened in a browser: words stay whole, and what scrolls says so."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dashboards.targets.html.profile import Columns, Part, ProfilePage, render_profile

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_TABLES = {
    "wide": Columns(
        [
            "queue",
            "verdict",
            "deviation (90 %)",
            "measured",
            "should declare",
            "origin",
            "speed factor",
            "jobs",
        ],
        [
            [
                "TAMARIND-HEP_HIMEM",
                "confirmed",
                "+49 ± 3 %",
                "11.15 (10.93 to 11.37)",
                "11.15",
                "own",
                "0.97",
                "9",
            ],
            [
                "TAMARIND-HEP_MCORE",
                "undeclared",
                "-",
                "11.04 (10.78 to 11.30)",
                "-",
                "inherited",
                "0.96",
                "8",
            ],
        ],
        frozenset((4, 6, 7)),
    ),
    "told": Columns(
        ["queue", "part", "explanation"],
        [
            [
                "TAMARIND-HEP_HIMEM",
                "declared default",
                "the declared 10 is a default that nobody measured; " * 3,
            ]
        ],
        frozenset(),
    ),
    "narrow": Columns(["task", "jobs"], [["26654720", "508"]], frozenset((1,))),
    "hostile": Columns(["name", "what"], [["A", "x" * 3000], ["B" * 20, "y z " * 100]], frozenset()),
}

_SEEN = """() => {
const lines = (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map((line) => line.top)).size;
};
return Object.fromEntries([...document.querySelectorAll('.frame')].map((frame) => {
    const region = frame.querySelector('.scroll');
    const cells = [...region.querySelectorAll('td.short, td.n, th')];
    return [region.getAttribute('aria-label'), {
        room: region.scrollWidth - region.clientWidth,
        hint: frame.querySelector('.hint').getBoundingClientRect().height > 8,
        broken: cells.filter((cell) => lines(cell) > 1).map((cell) => cell.textContent),
        narrowest: Math.min(...[...region.querySelectorAll('td.text')].map((cell) => cell.clientWidth)),
    }];
}));}"""


@pytest.mark.parametrize("width", [400, 640, 900, 1400])
def test_words_stay_whole_and_a_table_says_when_it_scrolls(
    browser: "Browser", tmp_path: Path, width: int
) -> None:
    page = _opened(browser, tmp_path, width)
    seen = page.evaluate(_SEEN)
    assert seen.keys() == _TABLES.keys()
    for name, table in seen.items():
        assert not table["hint"] or table["room"] > 0, (name, table)
        assert table["hint"] or table["room"] < 80, (name, table)
        assert table["narrowest"] is None or table["narrowest"] > 200, (name, table)
        if name != "hostile":
            assert table["broken"] == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert (seen["wide"]["hint"], seen["narrow"]["hint"]) == (width < 900, False)
    page.close()


def test_on_paper_nothing_is_said_of_scrolling(browser: "Browser", tmp_path: Path) -> None:
    page = _opened(browser, tmp_path, 400)
    page.emulate_media(media="print")
    assert not any(table["hint"] for table in page.evaluate(_SEEN).values())
    page.close()


def _opened(browser: "Browser", folder: Path, width: int) -> "Page":
    parts = [Part(name, "", [], [], table) for name, table in _TABLES.items()]
    file = folder / "site.html"
    file.write_text(render_profile(ProfilePage("A site", "a run", parts)), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900}, java_script_enabled=False)
    page.goto(file.as_uri())
    return page
