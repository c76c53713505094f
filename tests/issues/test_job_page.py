"""The page about one job: what is on it, the ranges that are marked, and names that are traps."""

import re
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

import esjobs
from esjobs.core.errors import NoResultError, UsageError
from esjobs.issues.plots import sparkline, underline
from esjobs.render.job_page import job_html
from esjobs.render.text.job import figure, page_lines, record_lines
from esjobs.render.text.jobs_beside import beside
from esjobs.schema.issues import FOOTPRINTS
from tests.issues.conftest import HOSTILE
from tests.issues.made_jobs import START, put_records, record
from tests.messages import raised


class Elements(HTMLParser):
    """The elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_story_of_a_job(detected: esjobs.Session) -> None:
    story = detected.job("stops").content
    assert (story.source, story.record["user"]) == ("c", "alice")
    assert [row["detector"] for row in story.issues if row["begin"] is not None] == ["collapse", "cpu-idle"]
    (plot,) = story.plots
    assert (plot.metric, plot.n_units, plot.start) == ("cpu_load", 4, START)
    (collapse,) = [row for row in story.seen_in("cpu_load") if row["detector"] == "collapse"]
    assert (plot.position(collapse["begin"]), plot.position(collapse["until"])) == (0.5, 1.0)
    half = len(plot.mean) // 2
    assert plot.mean[: half - 1].min() > 0.9
    assert plot.mean[half + 1 :].max() == 0


def test_the_lines_of_a_terminal(detected: esjobs.Session) -> None:
    lines = list(page_lines(detected.job("stops").content, 84))
    start = next(number for number, line in enumerate(lines) if line.startswith("  cpu_load, 4 x core"))
    assert re.fullmatch(r"    █{40}▁{40}", lines[start + 1])
    (mark,) = [line for line in lines[start:] if line.endswith("  collapse")]
    assert mark == " " * 44 + "━" * 40 + "  collapse"
    assert any("The cores stopped working" in line for line in lines)
    assert any(line.startswith("  user") and line.endswith("alice") for line in lines)
    assert not any("not judged" in line for line in lines)


def test_the_page_needs_nothing_else_and_marks_the_range(detected: esjobs.Session, tmp_path: Path) -> None:
    page = detected.job("stops").save(tmp_path / "job.html").read_text()
    elements = Elements(page).tags
    assert not {"script", "img", "link", "iframe", "object"} & {tag for tag, _ in elements}
    assert not [attrs for _, attrs in elements if {"src", "href", "onload", "onclick"} & set(attrs)]
    assert "url(" not in page
    assert spans(page) == [("240.0", "240.0")]
    tracks = re.findall(r'<g class="track track-(\w+)"><text[^>]*>([^<]*)', page)
    assert tracks == [("minor", "collapse (minor)"), ("info", "cpu-idle (info)")]
    assert page == job_html(detected.job("stops").content)
    assert "default-src 'none'" in page


def spans(page: str) -> list[tuple[str, ...]]:
    """Where the ground of a plot is shaded."""
    return re.findall(r'<rect class="shade" x="([\d.]+)" y="0" width="([\d.]+)"', page)


def test_times_of_several_issues_are_shaded_once(detected: esjobs.Session) -> None:
    """Four rules about the same hours: each has its row, and no part of the ground has two shades."""
    story = detected.job("stops").content
    (row,) = [each for each in story.issues if each["detector"] == "collapse"]
    length = story.plots[0].end - START
    more = [
        {
            **row,
            "detector": f"rule-{number}",
            "begin": START + share * length,
            "until": START + until * length,
        }
        for number, (share, until) in enumerate([(0.0, 0.25), (0.2, 0.3), (0.25, 0.75), (0.9, 1.0)])
    ]
    page = job_html(replace(story, issues=(row, *more)))
    assert spans(page) == [("0.0", "480.0")]
    assert page.count('<g class="track') == 5
    apart = job_html(replace(story, issues=(row, more[0])))
    assert spans(apart) == [("0.0", "120.0"), ("240.0", "240.0")]


def test_figures_have_the_units_that_people_write(detected: esjobs.Session) -> None:
    story = detected.job("stops").content
    mean = {"flops_s": 264e9, "clock_hz": 2.4e9, "power_w": 350.0, "mem_bw_b_s": 1.5e11, "ipc": 1.5}
    shown = {metric: figure({"metric": metric, "mean": value}, "mean") for metric, value in mean.items()}
    assert list(shown.values()) == ["264 GF/s", "2.4 GHz", "350 W", "150 GB/s", "1.5"]
    row = dict.fromkeys(FOOTPRINTS.column_names) | {"metric": "power_w", "scope": "node", "total": 7.2e6}
    row |= {"gap_frac": 0.0, "series_s": 14400.0}
    with_power = replace(story, footprints=(row,))
    assert ("energy", "2 kWh (power_w)") in record_lines(with_power)
    assert "2 kWh" in job_html(with_power)
    assert not [name for name, _ in record_lines(story) if name == "energy"]


def test_names_that_are_traps_are_shown_as_text(hostile: esjobs.Session) -> None:
    story = hostile.job(HOSTILE)
    assert story.issues
    page = job_html(story.content)
    assert not {"script", "img", "i"} & {tag for tag, _ in Elements(page).tags}
    assert page.count("<script") == 0
    assert "<b>n1" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page
    lines = "\n".join(page_lines(story.content, 100))
    assert "\x1b" not in lines
    assert "<b>n1</b>/1" in lines


def test_a_job_with_nothing_but_a_record(detected: esjobs.Session) -> None:
    page = job_html(detected.job("lazy").content)
    assert "low-efficiency" in page
    assert "Time series" not in page


def test_a_job_that_is_not_there_or_not_the_only_one(detected: esjobs.Session, tmp_path: Path) -> None:
    with raised(NoResultError):
        detected.job("nope")
    put_records(detected, tmp_path, [record("lazy", source="d")])
    with raised(UsageError):
        detected.job("lazy")
    assert detected.job("lazy", source="d").source == "d"


def test_jobs_side_by_side(detected: esjobs.Session) -> None:
    stories = [detected.job(name).content for name in ("lazy", "idle")]
    table = beside(stories)
    assert table.column_names == ["fact", "lazy", "idle"]
    rows = {row["fact"]: (row["lazy"], row["idle"]) for row in table.to_pylist()}
    assert rows["user"] == ("bob", "alice")
    assert rows["cluster"] == ("emmy", "(same)")
    assert rows["issues"][0] == "low-efficiency"
    # only one of them has time series
    (load,) = (row for name, row in rows.items() if name.startswith("mean cpu_load"))
    assert load[0] is None
    assert float(load[1]) > 0


def test_sparklines_of_odd_values() -> None:
    assert sparkline(np.array([np.nan, 0.0, 5.0]), 0.0) == " ▁█"
    assert sparkline(np.array([]), 1.0) == ""
    assert underline(1.0, 1.0, 8) == " " * 7 + "━"
    assert underline(0.0, 0.0, 8) == "━"


def test_earlier_runs_of_the_name(session: esjobs.Session, tmp_path: Path) -> None:
    """Against the records themselves: same source, user and name, ended before, newest first, ten at most."""
    days = [START + timedelta(days=number) for number in range(14)]
    rows = [record(f"run{n}", start=day, job_name="chem", cpu_s=14400.0) for n, day in enumerate(days)]
    rows += [
        record("other user", start=days[3], job_name="chem", user="bob"),
        record("other name", start=days[4], job_name="physics"),
        record("other source", start=days[5], job_name="chem", source="d"),
        record("without a name", start=days[6]),
        record("without a user", start=days[7], job_name="alone", user=None),
        record("without a user before", start=days[6], job_name="alone", user=None),
    ]
    put_records(session, tmp_path, rows)
    session.issues.detect()
    story = session.job("run12").content
    assert [run.record["job_id"] for run in story.runs] == [f"run{n}" for n in range(11, 1, -1)]
    assert {run.record["efficiency"] for run in story.runs} == {0.25}
    listed = {row["detector"] for row in session.job("run11").content.issues if row["severity"] != "info"}
    assert set(story.runs[0].issues) == listed != set()
    assert session.job("run0").content.runs == ()
    assert session.job("without a name").content.runs == ()
    alone = session.job("without a user").content
    assert [run.record["job_id"] for run in alone.runs] == ["without a user before"]
    page = job_html(story)
    assert "Earlier runs of chem" in page
    lines = list(page_lines(story, 100))
    start = lines.index("earlier runs of chem")
    assert lines[start + 2].split()[:3] == ["run11", f"{days[11]:%Y-%m-%d}", "04:00"]
    assert "Earlier runs" not in job_html(session.job("run0").content)
