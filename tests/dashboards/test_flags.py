"""Flags with memory in the report: what stands open, and the state beside a verdict."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from dashboards.targets.html.report import ReportData, render
from tests.dashboards.conftest import MakeData, frame


@pytest.fixture(scope="module")
def data(make_data: MakeData) -> ReportData:
    """A run over 12 queues."""
    return make_data(12, types=("all", "evgen"))


def with_states(data: ReportData, state: str, *, confirmed: bool = True) -> ReportData:
    """The same with one flag, of a queue whose deviation is confirmed, or is not."""
    flags: Any = data.flags
    chosen = flags["confirmed"].eq(True) if confirmed else flags["verdict"].eq("ok")
    row = flags[(flags["level"] == "queue") & chosen].iloc[0]
    states = {
        "level": "queue",
        "processing_type": "all",
        "name": row["name"],
        "site": row["site"],
        "state": state,
        "since": date(2018, 7, 4),
        "nights": 28,
        "deviation": -0.31,
        "deviation_low": -0.36,
        "deviation_high": -0.26,
        "acknowledged_by": "ann <b>",
        "sentence": "Open since 2018-07-04, 28 nights.",
        "run": row["run"],
    }
    return replace(data, more={**data.more, "flag_states": frame("flag_states", [states])})


def part_of(page: str, panel: str) -> str:
    section = page[page.index(f'id="{panel}"') :]
    return section[: section.index("</table>")]


def test_the_flag_of_a_confirmed_queue_stands_beside_its_verdict_alone(data: ReportData) -> None:
    page = render(with_states(data, "open"))
    deviating = part_of(page, "deviating")
    assert ">open<" in deviating
    assert "2018-07-04" in deviating
    assert "ann &lt;b&gt;" in deviating
    assert 'id="open-flags"' not in page


def test_what_else_stands_open_is_listed(data: ReportData) -> None:
    page = render(with_states(data, "open", confirmed=False))
    section = part_of(page, "open-flags")
    assert "2018-07-04" in section
    assert ">28<" in section
    assert "ann &lt;b&gt;" in section
    assert ">open<" not in part_of(page, "deviating")


def test_what_is_resolved_is_not_open(data: ReportData) -> None:
    page = render(with_states(data, "resolved"))
    assert 'id="open-flags"' not in page
    assert ">resolved<" in page


def test_without_memory_nothing_is_said(data: ReportData) -> None:
    page = render(data)
    assert 'id="open-flags"' not in page
    assert ">Flag<" not in page
