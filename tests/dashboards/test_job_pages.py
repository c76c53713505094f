"""Pages of jobs in the folder of pages: which jobs have one, what leads to it, what goes with the jobs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from click.testing import CliRunner

import esjobs
from esjobs.api.session import Session
from esjobs.cli.demo import demonstrate
from esjobs.cli.main import main
from esjobs.render.job_pages import FOLDER, job_pages
from tests.dashboards.opened_pages import open_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The demo with few jobs."""
    folder = tmp_path_factory.mktemp("demo")
    demonstrate(folder, jobs=6_000, seed=3)
    with esjobs.open(f"duckdb:{folder / 'demo.duckdb'}") as session:
        yield session


def pages(folder: Path) -> set[str]:
    return {path.name for path in (folder / FOLDER).iterdir()}


def test_the_worst_have_a_page_and_what_is_left_out_is_said(demo: Session, tmp_path: Path) -> None:
    first = demo.export.html(tmp_path / "out", job_pages=80)
    issues = demo.tables.issues().to_pandas()
    wrong = issues[issues["severity"] != "info"]
    assert len(pages(first.parent)) == 80 < wrong["job_id"].nunique()
    told = re.search(r"<dt>Pages of jobs</dt><dd>([^<]*)", first.read_text())
    assert told is not None
    assert told[1].startswith("80: ")
    assert f"of {wrong['job_id'].nunique():,} with issues" in told[1]
    scores = demo.tables.scores().to_pandas().dropna(subset=["score_sum"])
    worst = scores.sort_values(["score_sum", "source", "job_id"], ascending=[False, True, True])[
        "job_id"
    ].iloc[0]
    assert any(name.startswith(f"{worst}-") for name in pages(first.parent))


@pytest.mark.parametrize("most", [1, 20, 40, 200, 100_000])
def test_which_jobs_have_a_page_is_what_pandas_says(demo: Session, most: int) -> None:
    """The store sorts and hands over as much as there is room for; the answer is that of all rows."""
    names = ["source", "job_id"]
    issues, scores = demo.tables.issues().to_pandas(), demo.tables.scores().to_pandas()
    wrong = issues[issues["severity"] != "info"].sort_values(
        ["severity_rank", "idle_core_h", *names], ascending=[False, False, True, True]
    )
    first = [
        scores.dropna(subset=[column])
        .sort_values([column, *names], ascending=[False, True, True])
        .head(min(25, most))
        for column in ("score_sum", "idle_core_h")
    ]
    order = pd.concat([*first, wrong])[names].drop_duplicates()
    expected = list(order.head(most).itertuples(index=False, name=None))
    found = job_pages(demo.store, most)
    assert list(found.files) == expected
    with_issues = set(wrong[names].itertuples(index=False, name=None))
    assert (found.n_with_issues, found.n_shown) == (len(with_issues), len(with_issues & set(expected)))


def test_pages_of_jobs_that_are_no_more_among_the_worst_go(demo: Session, tmp_path: Path) -> None:
    """What somebody else put there stays; the same rows give the same files."""
    folder = demo.export.html(tmp_path / "out", job_pages=60).parent
    many = {path.name: path.read_bytes() for path in (folder / FOLDER).iterdir()}
    (folder / FOLDER / "notes.html").write_text("<p>mine</p>")
    demo.export.html(folder, job_pages=60)
    assert {path.name: path.read_bytes() for path in (folder / FOLDER).iterdir()} == many | {
        "notes.html": b"<p>mine</p>"
    }
    demo.export.html(folder, job_pages=5)
    few = pages(folder) - {"notes.html"}
    assert few < set(many)
    assert len(few) == 5
    demo.export.html(folder, job_pages=0)
    assert pages(folder) == {"notes.html"}
    assert "Pages of jobs" not in (folder / "index.html").read_text()


def test_the_number_is_an_option(demo: Session, tmp_path: Path) -> None:
    demonstrate(tmp_path / "demo", jobs=1_000, seed=3)
    store = f"duckdb:{tmp_path / 'demo' / 'demo.duckdb'}"
    done = CliRunner().invoke(
        main, ["--store", store, "dashboards", "export-html", "--out", str(tmp_path / "out"), "--jobs", "3"]
    )
    assert done.exit_code == 0, done.output
    assert len(pages(tmp_path / "out")) == 3
    refused = CliRunner().invoke(main, ["dashboards", "export-html", "--out", "x", "--jobs", "-1"])
    assert refused.exit_code == 2


@pytest.mark.browser
def test_an_id_leads_to_the_page_of_its_job(browser: "Browser", demo: Session, tmp_path: Path) -> None:
    folder = demo.export.html(tmp_path / "out", job_pages=100).parent
    opened = open_file(browser, folder, "issues")
    link = opened.page.locator("#issues-jobs tbody td a").first
    job = link.inner_text()
    link.click()
    opened.page.wait_for_url(f"**/{FOLDER}/*.html")
    assert opened.page.locator("h1").inner_text().startswith(f"Job {job} of ")
    assert opened.page.locator("article.issue").count() >= 1
    # the style sheet that all of them share is there
    assert (
        opened.page.locator("article.issue").first.evaluate(
            "(each) => getComputedStyle(each).borderLeftWidth"
        )
        == "4px"
    )
    opened.page.get_by_role("link", name="Job issues").click()
    opened.page.wait_for_url("**/issues.html")
    assert opened.complaints == []
    inside = folder.as_uri()
    assert all(url.startswith(f"{inside}/") for url in opened.requests)
