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


def with_states(data: ReportData, state: str) -> ReportData:
    """The same with one flag, of a queue that deviates."""
    flags: Any = data.flags
    row = flags[(flags["level"] == "site") & (flags["verdict"] == "deviates")].iloc[0]
    states = {
        "level": "site",
        "processing_type": "all",
        "name": row["name"],
        "rc_site": row["rc_site"],
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


def test_what_stands_open_is_listed_and_stands_beside_the_verdict(data: ReportData) -> None:
    page = render(with_states(data, "open"))
    section = page[page.index('id="open-flags"') :]
    section = section[: section.index("</table>")]
    assert "2018-07-04" in section
    assert "28" in section
    assert "ann &lt;b&gt;" in section
    deviating = page[: page.index('id="open-flags"')]
    assert ">open<" in deviating
    assert "2018-07-04" in deviating


def test_what_is_resolved_is_not_open(data: ReportData) -> None:
    page = render(with_states(data, "resolved"))
    assert "No flag is open." in page
    assert ">resolved<" in page


def test_without_memory_nothing_is_said(data: ReportData) -> None:
    page = render(data)
    assert 'id="open-flags"' not in page
    assert ">Flag<" not in page
