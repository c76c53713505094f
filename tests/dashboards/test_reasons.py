"""Reasons in the report: the largest part of what a deviation is made of."""

from dataclasses import replace
from typing import Any

from dashboards.targets.html.report import render
from tests.dashboards.conftest import MakeData, frame


def part(name: str, **given: Any) -> dict[str, Any]:
    row = {
        "level": "queue",
        "processing_type": "all",
        "name": name,
        "verdict": "deviates",
        "deviation": -0.38,
        "corepower": 14.28,
        "part": "cpu mix",
        "share": 0.9,
        "share_err": 0.02,
        "largest": True,
        "reason": f"{name} −38 %, nearly all <i>cpu mix</i>.",
    }
    return row | given


def test_the_largest_part_of_each_deviation_is_told(make_data: MakeData) -> None:
    data = make_data(12, types=("all", "evgen"))
    rows = [
        part("SLOW_MIX"),
        part("SLOW_MIX", part="rest", largest=False, share=0.1, reason=None),
        part("QUIET", verdict="ok", reason="Nothing to explain."),
    ]
    page = render(replace(data, more={**data.more, "decomposition": frame("decomposition", rows)}))
    section = page[page.index('id="reasons"') :]
    section = section[: section.index("</table>")]
    assert "cpu mix" in section
    assert "nearly all &lt;i&gt;cpu mix&lt;/i&gt;" in section
    assert "rest" not in section
    assert "Nothing to explain." not in page


def test_the_reason_of_a_confirmed_queue_stands_with_its_verdict(make_data: MakeData) -> None:
    """Sentence, flag and reason of a queue are in one place, and nowhere else before the first chart."""
    data = make_data(12, types=("all", "evgen"))
    flags: Any = data.flags
    name = flags[(flags["level"] == "queue") & flags["confirmed"].eq(True)].iloc[0]["name"]
    rows = [
        part(name, sentence="its <i>mix</i> is slow"),
        part(name, part="rest", largest=False, sentence="what is left"),
    ]
    page = render(replace(data, more={**data.more, "decomposition": frame("decomposition", rows)}))
    section = page[page.index('id="deviating"') :]
    assert "Why: its &lt;i&gt;mix&lt;/i&gt; is slow." in section[: section.index("</table>")]
    assert "what is left" not in page
    assert 'id="reasons"' not in page


def test_without_reasons_nothing_is_said(make_data: MakeData) -> None:
    assert 'id="reasons"' not in render(make_data(12, types=("all", "evgen")))
