"""Projects, users, jobs: one after the other, on pages in a browser, and as the tables have them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import esjobs
from dashboards.panels.efficiency import SCORES
from esjobs.api.session import Session
from esjobs.schema.scores import SCORE_NAMES
from tests.dashboards.opened_pages import again, open_file

if TYPE_CHECKING:
    import pandas as pd
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def demo(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The demo."""
    copied = shutil.copy(demo_folder / "demo.duckdb", tmp_path_factory.mktemp("people"))
    with esjobs.open(f"duckdb:{copied}") as session:
        yield session


@pytest.fixture(scope="module")
def scores(demo: Session) -> "pd.DataFrame":
    """The scores as a notebook reads them."""
    return demo.tables.scores().to_pandas()


@pytest.fixture(scope="module")
def folder(demo: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, with some of jobs."""
    return demo.export.html(tmp_path_factory.mktemp("pages"), job_pages=60).parent


def test_names_are_ranked_by_every_score() -> None:
    assert SCORES == SCORE_NAMES


def names_of(page: "Page", panel: str) -> list[str]:
    """The names of the bars of a panel, from the top."""
    return page.locator(f"#{panel} svg .role-axis-label text").all_text_contents()


def bars_of(page: "Page", panel: str) -> "list[str]":
    """The numbers behind the bars of a panel."""
    return page.locator(f"#{panel} svg .numbers_marks text").all_text_contents()


def test_a_project_leads_to_its_users_and_a_user_to_their_jobs(
    browser: "Browser", folder: Path, scores: "pd.DataFrame"
) -> None:
    opened = open_file(browser, folder, "people")
    page = opened.page
    wasted = scores.groupby("project")["idle_core_h"].sum().sort_values(ascending=False)
    assert len(wasted) > 2
    assert [name for name in names_of(page, "people-wasted-by-project") if name in wasted.index] == list(
        wasted.index
    )
    project = str(wasted.index[0])
    page.locator("#people-wasted-by-project svg .marks_marks path").first.click()
    again(opened)
    assert page.get_by_role("combobox", name="Project").input_value() == project
    of_project = scores[scores["project"] == project]
    users = of_project.groupby("user")["idle_core_h"].sum().sort_values(ascending=False)
    shown = [name for name in names_of(page, "people-wasted-by-user") if name in set(scores["user"])]
    assert shown == list(users.index)
    assert bars_of(page, "people-wasted-by-user") == [f"{hours:,.0f}" for hours in users]

    user = str(users.index[-1])
    page.locator("#people-wasted-by-user svg .marks_marks path").last.click()
    again(opened)
    # what was chosen first still is
    assert page.get_by_role("combobox", name="Project").input_value() == project
    assert page.get_by_role("combobox", name="User").input_value() == user
    listed = set(page.locator("#people-jobs tbody td:nth-child(3)").all_inner_texts())
    assert listed <= {user}
    page.go_back()
    again(opened)
    assert page.get_by_role("combobox", name="User").input_value() == "*"
    assert opened.complaints == []


def test_a_job_of_a_user_has_its_page(browser: "Browser", folder: Path, scores: "pd.DataFrame") -> None:
    order = ["idle_core_h", "source", "job_id"]
    first = scores.sort_values(order, ascending=[False, True, True]).iloc[0]
    opened = open_file(browser, folder, f"people#project={first['project']}&user={first['user']}")
    link = opened.page.locator("#people-jobs tbody td a").first
    assert link.inner_text() == first["job_id"]
    link.click()
    opened.page.wait_for_url("**/jobs/*.html")
    assert opened.page.locator("h1").inner_text().startswith(f"Job {first['job_id']} of ")
    assert opened.complaints == []


def test_names_of_job_issues_lead_to_their_scores(browser: "Browser", folder: Path, demo: Session) -> None:
    issues = demo.tables.issues().to_pandas()
    wrong = issues[issues["severity"] != "info"]
    opened = open_file(browser, folder, "issues#severity=major")
    user = str(wrong[wrong["severity"] == "major"].groupby("user")["n_jobs"].sum().idxmax())
    opened.page.locator("#issues-by-user svg .marks_marks path").first.click()
    opened.page.wait_for_url("**/people.html#*")
    again(opened)
    assert opened.page.get_by_role("combobox", name="User").input_value() == user
    assert set(opened.page.locator("#people-jobs tbody td:nth-child(3)").all_inner_texts()) == {user}
    assert opened.complaints == []


@pytest.mark.parametrize(
    ("panel", "column"), [("people-worst", "score_sum"), ("people-wasteful", "idle_core_h")]
)
def test_the_first_25_are_those_of_the_table(
    browser: "Browser", folder: Path, scores: "pd.DataFrame", panel: str, column: str
) -> None:
    opened = open_file(browser, folder, "people")
    known = scores.dropna(subset=[column])
    first = known.sort_values([column, "source", "job_id"], ascending=[False, True, True]).head(25)
    labels = [f"{row.user} · {row.job_id}" for row in first.itertuples()]
    shown = [name for name in names_of(opened.page, panel) if "·" in name]
    assert shown == labels
    assert bars_of(opened.page, panel) == [f"{value:,.0f}" for value in first[column]]
    if column == "score_sum":
        dots = opened.page.locator(f"#{panel} svg .scores_marks path").count()
        parts = first[["score_cpu", "score_mem"]].notna().sum().sum()
        more = (first["score_mpi"].notna() | first["score_io"].notna()).sum()
        assert dots == parts + more > 25


def test_a_mark_per_job_of_most_node_hours(browser: "Browser", folder: Path, scores: "pd.DataFrame") -> None:
    opened = open_file(browser, folder, "people")
    known = scores.dropna(subset=["score_cpu"]).query("node_h > 0")
    assert len(known) > 10
    marks = opened.page.locator("#people-cpu-over-hours svg .marks_marks path")
    assert marks.count() == min(len(known), 1000)
