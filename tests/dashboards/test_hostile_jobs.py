"""Scored jobs whose names attack, read by the ingest step: text on the pages, on their own and in links."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.text import visible
from tests.dashboards.conftest import HOSTILE
from tests.dashboards.opened_pages import again, open_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

NAMES = (
    *HOSTILE,
    "<img src=http://evil.example/x onerror=fetch('http://evil.example/')>",
    "javascript:alert(5)",
    "../../../etc/passwd",
    "a/b?c=d&e=f#g%00 h",
    "constructor",
    "__proto__",
    "*",
    "=HYPERLINK('http://evil.example')",
    "n" * 300,
)
END = datetime(2026, 3, 2, 12, tzinfo=UTC)


def job(number: int, name: str) -> dict[str, object]:
    """A job that has a poor score, an issue, and one name for everything."""
    return {
        "source": name,
        "job_id": name,
        **dict.fromkeys(("queue", "user", "project", "application", "cluster", "exit_code", "task_id"), name),
        "processing_type": name,
        "cpu_raw": "Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz",
        "smt": False,
        "cores": 4,
        "nodes": 1,
        "wall_s": 7200 + number,
        "cpu_s": 100,
        "requested_wall_s": 864_000,
        "requested_memory_b": 1e12,
        "max_rss_b": 1e9,
        "start_time": (END - timedelta(seconds=7200 + number)).isoformat(),
        "end_time": END.isoformat(),
        "state": "failed" if number % 4 == 0 else "finished",
        "counters": {
            name: 1.0,
            "UOPS_RETIRED.RETIRE_SLOTS": 1e6 + number,
            "CPU_CLK_UNHALTED.THREAD": 1e9,
            "CPU_CLK_UNHALTED.THREAD_ANY": 1e9,
            "CYCLE_ACTIVITY.STALLS_LDM_PENDING": 8e8,
            "RESOURCE_STALLS.SB": 1e8,
        },
    }


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A store with such jobs, scored and looked through."""
    folder = tmp_path_factory.mktemp("hostile-jobs")
    records = folder / "jobs.jsonl"
    records.write_text("\n".join(json.dumps(job(*each)) for each in enumerate(NAMES)))
    with esjobs.open(f"duckdb:{folder / 'jobs.duckdb'}") as session:
        report = session.ingest("jobs", records)
        assert report.n_dropped == 0
        session.issues.detect()
        session.scores.compute()
        yield session


@pytest.fixture(scope="module")
def folder(stored: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, one of them of each job."""
    out = stored.export.html(tmp_path_factory.mktemp("pages"), job_pages=100).parent
    assert len(list((out / "jobs").iterdir())) == len(NAMES)
    return out


def nothing_came_in(page: "Page") -> None:
    """No element of a name, and nothing that a name would run."""
    assert page.locator("main img, main script, main iframe, main object, main base").count() == 0
    assert page.evaluate("[...document.links].every((one) => one.protocol === 'file:' && !one.host)")
    assert page.evaluate("[...document.querySelectorAll('*')].every((one) => !one.hasAttribute('onerror'))")


def inside(urls: list[str], folder: Path) -> bool:
    """Whether all that was asked for are files of the pages."""
    return all(url.startswith(f"{folder.as_uri()}/") for url in urls)


def test_people_and_their_jobs_are_text(browser: "Browser", folder: Path) -> None:
    opened = open_file(browser, folder, "people")
    page = opened.page
    nothing_came_in(page)
    offered = (
        page.get_by_role("combobox", name="User")
        .locator("option")
        .evaluate_all("(all) => all.map((each) => each.value)")
    )
    assert {visible(name) for name in NAMES} - {"*"} <= set(offered)
    rows = page.locator("#people-jobs tbody tr")
    assert rows.count() == len(NAMES)
    assert opened.complaints == []
    assert inside(opened.requests, folder)


@pytest.mark.parametrize("page", ["index", "efficiency", "issues"])
def test_pages_about_jobs_run_nothing(browser: "Browser", folder: Path, page: str) -> None:
    opened = open_file(browser, folder, page)
    nothing_came_in(opened.page)
    # a panel without a value draws an empty axis, and Vega says so
    wrong = [each for each in opened.complaints if "Infinite extent" not in each]
    assert wrong == []
    assert inside(opened.requests, folder)


@pytest.mark.parametrize("name", [NAMES[1], *NAMES[4:6], *NAMES[9:15]], ids=lambda name: name[:20])
def test_a_name_can_be_chosen_and_leads_to_its_job(browser: "Browser", folder: Path, name: str) -> None:
    opened = open_file(browser, folder, "people")
    page = opened.page
    page.get_by_role("combobox", name="User").select_option(value=visible(name))
    again(opened)
    assert page.locator("#people-jobs tbody tr").count() == 1
    page.reload()
    again(opened)
    assert page.get_by_role("combobox", name="User").input_value() == visible(name)
    link = page.locator("#people-jobs tbody td a").first
    link.click()
    page.wait_for_url("**/jobs/*.html")
    nothing_came_in(page)
    heading = page.locator("h1").text_content() or ""
    assert visible(name)[:40] in heading
    for way, address in (("Projects and users", "people"), ("Job issues", "issues")):
        page.get_by_role("link", name=way).click()
        page.wait_for_url(f"**/{address}.html*")
        page.go_back()
        page.wait_for_url("**/jobs/*.html")
    assert opened.complaints == []
    assert inside(opened.requests, folder)
    page.context.close()
