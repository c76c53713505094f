"""Pages open on few rows, and show the same as with all of them."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import esjobs
from tests.dashboards.opened_pages import again, open_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

SEEN = """() => {
    const charts = (block) => [...block.querySelectorAll('svg text')].map((each) => each.textContent);
    const blocks = [...document.querySelectorAll('section.block:not(.kind-worst)')];
    return Object.fromEntries(blocks.map((block) => [block.id, [block.innerText, ...charts(block)]]));
}"""
"""Texts of all panels; charts of the worst jobs say in other words how many there are."""
WHOLE = "() => { delete document.body.dataset.drawn; document.body.dataset.wanted = 'all'; whole(); }"


@pytest.fixture(scope="module")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copied = shutil.copy(demo_folder / "demo.duckdb", tmp_path_factory.mktemp("store"))
    with esjobs.open(f"duckdb:{copied}") as session:
        return session.export.html(tmp_path_factory.mktemp("pages")).parent


@pytest.mark.parametrize("name", ["site", "efficiency", "people"])
def test_a_page_opens_on_few_rows_and_shows_the_same(browser: "Browser", folder: Path, name: str) -> None:
    opened = open_file(browser, folder, name)
    again(opened)
    loaded = [address for address in opened.requests if f"/{name}-" in address]
    assert [address.rpartition("/")[2] for address in loaded] == [f"{name}-opened.js"]
    before: dict[str, Any] = opened.page.evaluate(SEEN)
    opened.page.evaluate(WHOLE)
    again(opened)
    assert opened.page.evaluate(SEEN) == before
    files = [next(folder.glob(f"*/{name}-{key}.js")) for key in ("opened", "0")]
    few, every = (path.stat().st_size for path in files)
    assert few < every
    assert opened.complaints == []
    opened.page.context.close()


def test_a_sorted_table_has_all_its_rows(browser: "Browser", folder: Path) -> None:
    opened = open_file(browser, folder, "people")
    again(opened)
    table = opened.page.locator("#people-jobs")
    assert table.locator("tbody").count() == 100
    table.locator("th button").last.click()
    again(opened)
    assert table.locator("th[aria-sort]").count() == 1
    assert any(address.endswith("people-0.js") for address in opened.requests)
    opened.page.context.close()


def test_an_address_with_a_choice_opens_on_all_rows(browser: "Browser", folder: Path) -> None:
    opened = open_file(browser, folder, "efficiency#state=failed")
    again(opened)
    assert any(address.endswith("efficiency-0.js") for address in opened.requests)
    assert not any(address.endswith("opened.js") for address in opened.requests)
    opened.page.context.close()
