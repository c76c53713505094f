"""The pages in a browser: every panel is drawn, nothing is fetched, numbers are those of the store."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import esjobs
from dashboards.pages import PAGES
from dashboards.spec import JOBS, Page, View, Where
from dashboards.view.ask import groups
from esjobs.api.session import Session
from esjobs.core.numbers import percent
from esjobs.core.query import Count
from esjobs.core.window import Window
from tests.dashboards.answers import UNSCORED
from tests.dashboards.made_runs import add_runs
from tests.dashboards.opened_pages import again, open_file

if TYPE_CHECKING:
    import pandas as pd
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def demo(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The results of two nights of the demo."""
    copied = shutil.copy(demo_folder / "demo.duckdb", tmp_path_factory.mktemp("nights"))
    with esjobs.open(f"duckdb:{copied}") as session:
        session.run("2025-06-01/2025-06-25")
        add_runs(session)
        yield session


@pytest.fixture(scope="module")
def folder(demo: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of the demo."""
    return demo.export.html(tmp_path_factory.mktemp("pages")).parent


def file_of(page: Page) -> str:
    return "index" if page is PAGES[0] else page.id


EMPTY_IN_THE_DEMO = UNSCORED | {
    *("models-hs23", "models-hs06", "trust-ledger", "issues-idle-gpus"),
    *("issues-lost-by-user", "site-incidents"),
    "provisioning",
}
"""Panels without rows there: no references, no night, no index of provisioning, no time series, no nodes."""


def judged(demo: Session, kind: str | None = "all") -> "pd.DataFrame":
    """The verdicts of the headline on queues, as a notebook reads them."""
    return demo.tables.flags(level="queue", type=kind, method="gamma").to_pandas()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.id)
def test_every_panel_of_a_page_is_drawn(browser: "Browser", folder: Path, page: Page) -> None:
    opened = open_file(browser, folder, file_of(page))
    panels = opened.page.locator("[data-panel]").evaluate_all(
        """(all) => all.map((each) => ({
            id: each.dataset.panel,
            title: each.querySelector('h2').textContent,
            filled: each.querySelector('.body').childElementCount,
            empty: each.querySelector('.empty') !== null,
            charts: [...each.querySelectorAll('.chart')].map((chart) => chart.dataset.state),
        }))"""
    )
    assert [each["id"] for each in panels] == [placed.panel.id for placed in page.places]
    for each, placed in zip(panels, page.places, strict=True):
        assert each["title"] == placed.panel.title
        assert each["filled"], each["id"]
        assert set(each["charts"]) <= {"drawn"}, each["id"]
        assert each["empty"] is (each["id"] in EMPTY_IN_THE_DEMO), each["id"]
    assert opened.complaints == []
    inside = folder.as_uri()
    assert all(url.startswith(f"{inside}/") for url in opened.requests)


def test_the_confirmed_queues_are_those_of_the_store(browser: "Browser", folder: Path, demo: Session) -> None:
    opened = open_file(browser, folder, "sites")
    flags = judged(demo)
    confirmed = set(flags[flags["confirmed"].eq(True)]["name"])
    assert confirmed
    table = opened.page.locator("#sites-to-declare tbody tr:first-child td:first-child")
    assert set(table.all_inner_texts()) == confirmed
    chart = opened.page.locator("#sites-scatter svg text").all_text_contents()
    assert confirmed <= set(chart)
    counts = flags["status_shown"].value_counts()
    told = dict(
        opened.page.locator("#sites-counts .tiles li").evaluate_all(
            "(all) => all.map((each) => [each.querySelector('span').textContent, "
            "Number(each.querySelector('b').textContent)])"
        )
    )
    assert told["◆ confirmed"] == len(confirmed) == counts["confirmed"]
    assert told["● ok"] == counts["ok"]
    assert told["fitted"] == flags["k"].notna().sum()


def test_another_type_shows_its_own_numbers(browser: "Browser", folder: Path, demo: Session) -> None:
    opened = open_file(browser, folder, "sites")
    opened.page.get_by_role("combobox", name="Processing type").select_option("evgen")
    again(opened)
    assert opened.page.evaluate("location.hash") == "#processing-type=evgen"
    flags = judged(demo, "evgen")
    confirmed = set(flags[flags["confirmed"].eq(True)]["name"])
    table = opened.page.locator("#sites-to-declare tbody tr:first-child td:first-child")
    assert set(table.all_inner_texts()) == confirmed
    assert opened.complaints == []


def test_a_choice_narrows_the_page_and_goes_along(browser: "Browser", folder: Path, demo: Session) -> None:
    opened = open_file(browser, folder, "sites")
    page = opened.page
    page.get_by_role("combobox", name="Verdict").select_option("ok")
    again(opened)
    flags = judged(demo)
    ok = flags[flags["status_shown"] == "ok"]
    names = page.locator("#sites-in-words tbody tr:first-child td:first-child")
    assert set(names.all_inner_texts()) == set(ok["name"])
    marks = page.locator("#sites-scatter .marks_marks > path")
    assert marks.count() == len(ok)
    assert (
        page.locator("#sites-to-declare .empty").inner_text() == "No deviation is confirmed; nothing to send."
    )
    page.locator("nav a", has_text="Data quality").click()
    page.wait_for_function("() => document.body.dataset.drawn !== undefined")
    assert page.url.endswith("trust.html#verdict=ok")
    page.locator("nav a", has_text="Sites and queues").click()
    page.wait_for_function("() => document.body.dataset.drawn !== undefined")
    assert page.get_by_role("combobox", name="Verdict").input_value() == "ok"
    page.get_by_role("button", name="Show all").click()
    again(opened)
    assert page.get_by_role("combobox", name="Verdict").input_value() == "*"
    assert "#" not in page.url
    assert opened.complaints == []


def test_a_name_leads_to_its_site(browser: "Browser", folder: Path, demo: Session) -> None:
    opened = open_file(browser, folder, "sites")
    page = opened.page
    first = page.locator("#sites-to-declare tbody td a").first
    name = first.inner_text()
    first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/site.html#*")
    page.wait_for_function("() => document.body.dataset.drawn !== undefined")
    assert page.get_by_role("combobox", name="Queue").input_value() == name
    assert page.locator("#site-queues tbody td:first-child").all_inner_texts() == [name]
    flags = judged(demo, None)
    types = set(flags[(flags["name"] == name)]["processing_type"])
    rows = page.locator("#site-rows tbody tr:first-child td:nth-child(3)").all_inner_texts()
    assert set(rows) == types
    assert page.locator("#site-k-over-time .marks_marks > path").count() == 2
    assert opened.complaints == []


def test_a_table_is_sorted_and_searched(browser: "Browser", folder: Path, demo: Session) -> None:
    opened = open_file(browser, folder, "sites")
    table = opened.page.locator("#sites-in-words")
    heading = table.locator("th", has_text="Deviation")
    for direction, sign in (("ascending", 1), ("descending", -1)):
        heading.locator("button").focus()
        opened.page.keyboard.press("Enter")
        assert heading.get_attribute("aria-sort") == direction
        shown = table.locator("tbody tr:first-child td:nth-child(3)").evaluate_all(
            "(all) => all.map((each) => each.dataset.v)"
        )
        numbers = [sign * float(value) for value in shown if value]
        assert numbers == sorted(numbers)
        assert all(value == "" for value in shown[len(numbers) :])
    table.locator("input").fill("undeclared default")
    flags = judged(demo)
    found = flags[flags["status_shown"].eq("undeclared") & flags["sentence"].str.contains("default")]
    names = table.locator("tbody tr:first-child td:first-child").all_inner_texts()
    assert set(names) == set(found["name"])
    assert table.locator(".shown").inner_text() == f"{len(found)} of {len(flags)}"


def test_sums_over_what_is_chosen_are_those_of_the_store(
    browser: "Browser", folder: Path, demo: Session
) -> None:
    """The page adds up groups itself; the store is asked with the same conditions."""
    opened = open_file(browser, folder, "efficiency#processing-type=evgen")
    (panel,) = (placed.panel for placed in PAGES[4].places if placed.panel.id == "efficiency-by-queue")
    evgen = replace(panel.view, where=(*panel.view.where, Where("processing_type", ("evgen",))))
    rows = groups(demo.store, evgen, window=Window.parse("2025-06-01/2025-07-01")) or []
    ranked = sorted(rows, key=lambda row: -row["n_jobs"])[:200]
    ranked = sorted(ranked, key=lambda row: -row["core_s"])[: panel.most[0]]
    chart = opened.page.locator("#efficiency-by-queue svg")
    names = chart.locator(".role-axis-label text").all_text_contents()
    shares = chart.locator(".numbers_marks text").all_text_contents()
    assert names[-len(ranked) :] == [row["queue"] for row in ranked]
    # texts are painted in the order of the groups, which is that of jobs
    assert sorted(shares) == sorted(percent(row["cpu_s"] / row["core_s"]) for row in ranked)
    coverage = opened.page.locator("#efficiency-coverage .numbers_marks text").all_text_contents()
    everything = View(JOBS.name, where=(Where("processing_type", ("evgen",)),), metrics=(Count(),))
    (total,) = groups(demo.store, everything, window=Window.parse("2025-06-01/2025-07-01")) or []
    known = replace(everything, where=(*everything.where, Where("cores")))
    (with_cores,) = groups(demo.store, known, window=Window.parse("2025-06-01/2025-07-01")) or []
    assert coverage[2] == percent(with_cores["n_jobs"] / total["n_jobs"])
    assert opened.complaints == []


def test_a_history_is_that_of_the_store(browser: "Browser", folder: Path, demo: Session) -> None:
    flags = judged(demo)
    name = str(flags[flags["confirmed"].eq(True)]["name"].iloc[0])
    opened = open_file(browser, folder, f"site#queue={name}")
    marks = opened.page.locator("#site-k-over-time .marks_marks > path")
    told = marks.evaluate_all("(all) => all.map((each) => each.getAttribute('aria-label'))")
    steps = demo.tables.runs().to_pandas()
    runs = set(steps[steps["step"] == "flag"]["run"])
    seen = [demo.tables.flags(level="queue", type="all", method="gamma", run=run).to_pandas() for run in runs]
    expected = {float(each.loc[each["name"] == name, "k"].iloc[0]) for each in seen}
    found = {float(re.search(r"Speed factor k: ([\d.]+)", text)[1]) for text in told}  # type: ignore[index]
    assert len(found) == len(expected) == 2
    assert sorted(found) == pytest.approx(sorted(expected), rel=1e-3)


@pytest.mark.parametrize("by", ["user", "project"])
@pytest.mark.parametrize(
    ("page", "prefix", "score"),
    [("efficiency", "", "score_cpu"), ("people", "people-", "score_cpu"), ("people", "people-", "score_mem")],
)
def test_names_are_ranked_as_the_command_ranks_them(
    browser: "Browser", folder: Path, demo: Session, page: str, prefix: str, score: str, by: str
) -> None:
    opened = open_file(browser, folder, page)
    panel = f"#{prefix}{score.replace('_', '-')}-by-{by}"
    opened.page.locator(panel).scroll_into_view_if_needed()
    told = opened.page.locator(f"{panel} .numbers_marks text")
    told.first.wait_for()
    rows = demo.scores.rank(by, score).rows.to_pylist()
    assert len(rows) > 3
    assert sorted(told.all_text_contents()) == sorted(
        f"{row['score']:.0f} ({percent(row['coverage'])})" for row in rows
    )


def test_the_page_of_a_site_opens_on_the_worst(browser: "Browser", folder: Path, demo: Session) -> None:
    flags = judged(demo)
    worst = flags.sort_values("rank").iloc[0]
    opened = open_file(browser, folder, "site")
    names = opened.page.locator("#site-queues tbody tr:first-child td:first-child").all_inner_texts()
    assert names[0] == worst["name"]
    assert set(names) == set(flags[flags["site"] == worst["site"]]["name"])
    assert worst["site"] != flags["site"].min()
