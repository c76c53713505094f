"""Judged days on the page of a site: against the table, with its incidents, and where nothing was judged."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from dashboards.targets.html.profile import DayByDay
from esjobs.api.session import Session
from esjobs.publish.publication import read_table
from esjobs.render.day_figures import day_figures
from esjobs.render.profile.days import DAYS_SHOWN, METRICS, days_of_site, days_within
from esjobs.render.profile.sections import DAY_BY_DAY, sections
from esjobs.render.today_page import today_page
from esjobs.schema.today import EVERYWHERE, TODAY_DAYS
from tests.cli.running import job_file
from tests.conftest import NOW, memory_session
from tests.today.grid_jobs import BAD_FROM, BAD_SITE, BAD_TO, DAYS, day, jobs_of, put


@pytest.fixture(scope="module")
def judged() -> Iterator[Session]:
    with memory_session() as session:
        put(session.store, jobs_of(range(DAYS)))
        session.flags.today.update()
        yield session


def test_a_site_has_its_judged_days_and_its_incident(judged: Session) -> None:
    profile = judged.site(BAD_SITE)
    rows = [
        row
        for row in read_table(judged.store, TODAY_DAYS).to_pylist()
        if row["site"] == BAD_SITE and row["metric"] in METRICS
    ]
    assert [(row["day"], row["metric"], row["observed"]) for row in profile.days] == sorted(
        (row["day"], row["metric"], row["observed"]) for row in rows
    )
    assert len({row["day"] for row in profile.days}) <= DAYS_SHOWN
    (incident,) = profile.incidents
    assert incident["since"] == day(BAD_FROM)
    assert incident["until"] in (day(BAD_TO), None)


def test_the_table_marks_the_days_of_the_incident(judged: Session) -> None:
    profile = judged.site(BAD_SITE)
    (section,) = [each for each in sections(profile.content) if each.title == DAY_BY_DAY]
    assert section.sentences == [profile.incidents[0]["sentence"]]
    assert section.table is not None
    marked = [row["day"] for row in section.table.to_pylist() if row["incident"]]
    assert marked == sorted(days_within(profile.incidents, profile.days[-1]["day"]))
    assert day(BAD_FROM) in marked


def test_other_sites_have_days_and_no_incident(judged: Session) -> None:
    other = next(row for row in judged.query("queue") if row["queue"] != BAD_SITE)
    profile = judged.site(other["queue"])
    assert profile.days
    assert profile.incidents == []


def test_figures_stay_in_their_boxes_and_shade_the_incident(judged: Session) -> None:
    profile = judged.site(BAD_SITE)
    figures = list(day_figures(profile.days, profile.incidents))
    assert len(figures) == 2
    n_days = len({row["day"] for row in profile.days})
    n_shaded = len(days_within(profile.incidents, profile.days[-1]["day"]))
    for figure in figures:
        assert len(figure.dots) == n_days
        assert len(figure.shades) == n_shaded
        numbers = [
            float(text) for text in re.findall(r"[-\d.]+", figure.area + figure.expected + figure.path)
        ]
        assert all(0 <= x <= figure.width for x in numbers[::2])
        assert all(-0.1 <= y <= figure.height for y in numbers[1::2])
        assert all(0 <= tick.at <= figure.height for tick in figure.ticks)


def test_one_day_makes_no_figure(judged: Session) -> None:
    profile = judged.site(BAD_SITE)
    last = profile.days[-1]["day"]
    assert list(day_figures([row for row in profile.days if row["day"] == last], ())) == []
    assert list(day_figures((), ())) == []


def test_days_of_an_incident_that_lasts_go_on_to_the_last() -> None:
    lasting = {"since": day(3), "until": None}
    assert days_within([lasting], day(5)) == {day(3), day(4), day(5)}
    assert days_within([{"since": day(3), "until": day(3)}], day(9)) == {day(3)}
    assert days_within([{"since": day(9), "until": None}], day(9) - timedelta(days=1)) == set()


def test_without_judged_days_nothing_is_said(tmp_path: Path) -> None:
    with memory_session() as session:
        session.ingest("jobs", job_file(tmp_path / "jobs.csv"))
        profile = session.site("SITE01")
        assert (profile.days, profile.incidents) == ([], [])
        assert DAY_BY_DAY not in [each.title for each in sections(profile.content)]
        assert DAY_BY_DAY not in profile.html


def test_the_first_page_has_the_days_of_all_sites(judged: Session) -> None:
    judged.run()
    page = today_page(judged.store, NOW)
    (part,) = [each for each in page.parts if each.title == "All sites by day"]
    titles = [figure.title for figure in part.figures]
    assert titles[:2] == ["CPU efficiency", "Jobs that failed"]
    n_days = len({row["day"] for row in days_of_site(judged.store, EVERYWHERE)})
    for figure in part.figures:
        assert isinstance(figure, DayByDay)
        assert 1 < len(figure.dots) <= n_days
        assert figure.about.startswith("Band: ")
        assert "Shaded" not in figure.about
