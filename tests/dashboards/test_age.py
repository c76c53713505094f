"""Every page says of which window and run its numbers are, how old they are, and whether they may be used."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import esjobs
from dashboards.pages import HEADLINE, PAGES
from dashboards.targets.html.report import ReportData, render
from dashboards.targets.kibana.bundle import kibana
from dashboards.targets.portable.bundle import portable
from esjobs.api.session import Session
from esjobs.core.freshness import Freshness
from esjobs.render.html_pages import pages_of
from esjobs.render.report import report_data
from tests.dashboards.browser import open_page
from tests.dashboards.conftest import MakeData
from tests.dashboards.opened_pages import open_file
from tests.dashboards.questions import Chart, asked

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WRITTEN = datetime(2026, 11, 23, 12, tzinfo=UTC)
OLD = 'Newest day with jobs: 2025-06-30<span class="ago"> (510 days before 2026-11-23)</span>'


@pytest.fixture(scope="module")
def demo(demo_folder: Path) -> Iterator[Session]:
    with esjobs.open(
        f"duckdb:{demo_folder / 'demo.duckdb'}", read_only=True, clock=lambda: WRITTEN
    ) as session:
        yield session


@pytest.fixture(scope="module")
def data(make_data: MakeData) -> ReportData:
    return make_data(12)


def test_every_page_of_the_demo_says_how_old_it_is(demo: Session) -> None:
    found = pages_of(demo.store, now=WRITTEN).pages
    assert len(found) == len(PAGES)
    for name, page in found.items():
        head = page[: page.index("</header>")]
        assert OLD in head, name
        assert 'data-light="No"' in head, name
        assert "2025-06-01 to 2025-06-30" in head, name
        assert "Synthetic data" in head, name


def test_the_report_and_its_conclusion_say_how_old_they_are(demo: Session) -> None:
    page = render(report_data(demo.store, now=WRITTEN))
    assert OLD in page[: page.index("</header>")]
    assert '<span class="too-old"> Synthetic data as of 2025-06-30' in page
    assert "(510 days before 2026-11-23)</span>. Do not send." in page
    fresh = render(report_data(demo.store, now=datetime(2025, 7, 1, 12, tzinfo=UTC)))
    assert 'data-light="Yes"' in fresh
    assert '<span class="too-old" hidden>' in fresh
    assert "cleared to send" not in fresh[: fresh.index('id="deviating"')]


def test_the_page_of_a_site_says_how_old_it_is(demo: Session, tmp_path: Path) -> None:
    name = str(demo.flags.verdicts().to_pandas()["name"].iloc[0])
    page = demo.site(name).save(tmp_path / "site.html").read_text("utf-8")
    assert "newest day with jobs 2025-06-30 (510 days before 2026-11-23); too old to send" in page


@pytest.mark.parametrize("make", [portable, kibana], ids=["portable", "kibana"])
def test_no_filter_reaches_the_age_on_the_pages_of_a_server(make: type) -> None:
    found = list(asked(make(PAGES, HEADLINE)))
    lines = [each for each in found if isinstance(each, Chart) and each.panel == "as-of"]
    assert len({each.page for each in lines}) == len(PAGES)
    for each in lines:
        text = json.dumps(each.spec)
        assert "context" not in text
        assert "timefilter" not in text


@pytest.mark.browser
@pytest.mark.parametrize(("days", "light"), [(0.6, "Yes"), (4, "With care"), (60, "No")])
def test_a_report_grows_old_after_it_was_written(
    browser: "Browser", data: ReportData, tmp_path: Path, days: float, light: str
) -> None:
    end = datetime.now(UTC) - timedelta(days=days)
    written = replace(data, age=Freshness(end, end + timedelta(hours=1)))
    page = open_page(browser, written, tmp_path).page
    assert page.locator(".age").get_attribute("data-light") == light
    assert page.locator(".age b").inner_text() == light
    assert page.locator("#conclusion .too-old").is_visible() is (light == "No")
    assert f"{round(days)} day" in page.locator(".age").inner_text()


@pytest.mark.browser
def test_the_conclusion_on_a_page_says_that_it_is_old(
    browser: "Browser", demo: Session, tmp_path: Path
) -> None:
    folder = demo.export.html(tmp_path / "pages", job_pages=0).parent
    opened = open_file(browser, folder, "sites")
    words = opened.page.locator("#sites-conclusion .too-old")
    assert words.is_visible()
    assert "days ago" in words.inner_text()
    assert opened.complaints == []
