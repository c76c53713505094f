"""Numbers, names, axes and labels: the parts of a page that need no page."""

import math
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dashboards.targets.html
from dashboards.spec import Entry, View, Where, look_of
from dashboards.targets.html.cells import moment, percent, read, readable_json, unbroken
from dashboards.targets.html.labels import place_labels
from dashboards.targets.html.scales import Axis, axis_of, ratio_axis, ratio_ticks
from dashboards.view.rows import Row, records, relative_to_siblings, rows_of, select, siblings_of, sort_rows
from esjobs.core import numbers
from esjobs.core.numbers import number
from esjobs.core.text import visible
from esjobs.schema.catalogue import table

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.0836, 0.0312, "1.08 ± 0.03"),
        (0.0768, 0.0008, "0.0768 ± 0.0008"),
        (123.4, 5.2, "123 ± 5"),
        (1.0, 0.0, "1.00 ± 0.00"),
        (0.0, None, "0.00"),
        (-0.5, 0.25, "−0.50 ± 0.25"),
        (1e308, None, "1.00e+308"),
        (None, 0.1, "–"),
    ],
)
def test_number(value: float | None, error: float | None, text: str) -> None:
    assert number(value, error) == text


def test_percent_has_its_interval_and_a_real_minus() -> None:
    assert percent(-0.372, 0.03).replace("\u202f", " ") == "−37 ± 5 %"
    assert percent(0.001).replace("\u202f", " ") == "+0.1 %"
    assert percent(0.0001).replace("\u202f", " ") == "0 %"
    assert percent(57.0).replace("\u202f", "") == "+5,700%"


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(min_value=0, max_value=1e300))
def test_any_number_reads(value: float, error: float) -> None:
    assert number(value, error)
    assert percent(value, error).endswith("%")


@given(st.text(st.characters(codec=None)))
def test_any_name_can_be_seen_and_encoded(name: str) -> None:
    seen = visible(name)
    assert seen.encode("utf-8") is not None
    assert not any(ord(character) < 32 or "\u202a" <= character <= "\u202e" for character in seen)


def test_surrogates_and_controls_are_written_out() -> None:
    assert visible("a\ud800b\x00\n\u2066") == "a\\ud800b\\x00\\n\\u2066"
    assert visible("Zürich Höchst ≥ 2") == "Zürich Höchst ≥ 2"


def test_times_are_utc_with_or_without_a_zone() -> None:
    assert moment(pd.Timestamp("2018-08-01 12:00")) == "2018-08-01T12:00:00Z"
    assert moment(pd.Timestamp("2018-08-01 14:00", tz="Europe/Berlin")) == "2018-08-01T12:00:00Z"
    assert moment(datetime(2018, 8, 1, tzinfo=UTC)) == "2018-08-01"
    assert moment(date(2018, 8, 1)) == "2018-08-01"
    assert moment(datetime(2018, 8, 1, 3, 4, 5, 678, tzinfo=UTC)) == "2018-08-01T03:04:05Z"
    assert moment("yesterday") == "yesterday"


def test_json_reads_as_words() -> None:
    assert readable_json('["a", "b"]') == "a; b"
    assert readable_json("12") == "12"
    text = '{"rules": {"max": 2.0, "types": ["a", "b"], "on": true, "off": null}, "none": []}'
    assert readable_json(text) == "rules: (max: 2, types: a, b, on: yes, off: –); none: –"


def test_fields_read_as_their_panel_wants() -> None:
    row: Row = {"k": 1.5, "k_err": None, "benchmark": None}
    row |= {"ok": False, "verdict": "mixed", "level": "cpu_model"}
    assert read(row, Entry("k", "k", "number", error="k_err", unit="benchmark")) == "1.50"
    assert read(row, Entry("ok", "ok", "yesno")) == "no"
    assert read(row, Entry("verdict", "verdict", "verdict")) == "mixed"
    assert read(row, Entry("level", "level", "level")) == "CPU models"
    assert read(row, Entry("absent", "absent")) == "–"
    assert look_of(None) == "other"


def test_records_know_one_kind_of_missing() -> None:
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None], dtype="Int64"),
            "b": [np.nan, math.inf],
            "c": pd.array([True, None], dtype="boolean"),
            "d": [pd.NaT, pd.Timestamp("2018-08-01")],
            "e": pd.array(["x", None], dtype="string"),
        }
    )
    assert records(frame) == [
        {"a": 1, "b": None, "c": True, "d": None, "e": "x"},
        {"a": None, "b": None, "c": None, "d": pd.Timestamp("2018-08-01"), "e": None},
    ]
    assert records(pd.DataFrame()) == []


def test_frames_are_completed_with_nulls() -> None:
    assert rows_of("lines", None) == []
    (row,) = rows_of("lines", pd.DataFrame({"slope": [1.0], "surplus": [2.0]}))
    assert list(row) == list(table("lines").column_names)
    assert row["slope"] == 1.0
    assert row["status"] is None


def test_selection_follows_level_type_method_and_order() -> None:
    each = View("flags", where=(Where("k"),), level="queue", sort=("-|d|", "name"))
    base = {"level": "queue", "processing_type": "all", "method": "paper", "k": 1.0}
    rows = [
        base | {"name": "a", "d": 0.1},
        base | {"name": "b", "d": -0.5},
        base | {"name": "c", "d": None},
        base | {"name": "d", "d": 0.1, "method": "gamma"},
        base | {"name": "e", "d": 0.1, "processing_type": "evgen"},
        base | {"name": "f", "d": 0.1, "level": "cpu_model"},
        base | {"name": "g", "d": 0.1, "k": None},
    ]
    assert [row["name"] for row in select(each, rows, "all", "paper")] == ["b", "a", "c"]


def test_text_sorts_descending_too() -> None:
    rows: list[Row] = [{"name": name} for name in ("b", "a", "c")]
    assert [row["name"] for row in sort_rows(rows, ("-name",))] == ["c", "b", "a"]


def test_siblings_share_site_and_component() -> None:
    rows: list[Row] = [
        {"site": "A", "component": 0, "k": 1.0, "n": 10.0},
        {"site": "A", "component": 0, "k": 4.0, "n": 40.0},
        {"site": "A", "component": 1, "k": 9.0, "n": 1.0},
        {"site": "B", "component": 0, "k": 1.0, "n": 1.0},
        {"site": None, "component": 0, "k": 1.0, "n": 1.0},
    ]
    assert siblings_of(rows, "site") == rows[:2]
    related = relative_to_siblings(rows, "site", "n", "k")
    assert [(round(x, 9), round(y, 9)) for _, x, y in related] == [(0.5, 0.5), (2.0, 2.0)]
    assert relative_to_siblings([{**rows[0], "n": None}, rows[1]], "site", "n", "k") == []


def test_one_absurd_value_does_not_stretch_an_axis() -> None:
    spans = [(1 + n / 100, 1.1 + n / 100) for n in range(40)]
    axis = axis_of([*spans, (300.0, 310.0)])
    assert axis.high < 4
    assert not axis.holds(305.0)
    assert axis.clip(305.0) == axis.high
    assert axis_of(spans).holds(1.49)


@pytest.mark.parametrize(
    "spans", [[], [(1.0, 1.0)], [(0.0, 0.0)] * 3, [(-1.0, -1.0)], [(1e-9, 1e-9), (5.0, 5.0)]]
)
def test_an_axis_always_has_a_width(spans: list[tuple[float, float]]) -> None:
    axis = axis_of(spans)
    assert axis.high > axis.low


def test_ratios_are_even_around_one() -> None:
    axis = ratio_axis([0.5, 1.2])
    assert axis.low * axis.high == pytest.approx(1)
    assert axis.holds(0.5)
    assert 1.0 in ratio_ticks(axis)
    assert len(ratio_ticks(ratio_axis([0.01]))) <= 10


def test_labels_leave_each_other_alone() -> None:
    marks = [(0.5 + n / 500, 0.5) for n in range(6)]
    placed = place_labels(marks, [(n, f"SITE-NAME-{n}") for n in range(6)], Axis(0, 1), Axis(0, 1), 400.0)
    spots = [(label.side, round(label.y, 3)) for label in placed]
    assert len(set(spots)) == len(spots)
    (edge,) = place_labels([(1.0, 1.0)], [(0, "edge")], Axis(0, 1), Axis(0, 1), 400)
    assert (edge.text, edge.side) == ("edge", "left")
    assert place_labels([], [], Axis(0, 1), Axis(0, 1), 400) == []


def test_charts_write_numbers_as_texts_do(browser: "Browser") -> None:
    """The locale that charts are embedded with, asked of the library that draws them."""
    library = Path(dashboards.targets.html.__file__).parent
    page = browser.new_page()
    for name in ("library/vega.js", "embed.js", "shared.js"):
        page.add_script_tag(content=(library / name).read_text(encoding="utf-8"))
    ask = """async ([form, values]) => {
        const spec = {
            data: { values: values.map((value, place) => ({ value, place })) },
            mark: "text",
            encoding: {
                y: { field: "place", type: "ordinal" },
                text: { field: "value", type: "quantitative", format: form },
            },
        };
        const shown = document.body.appendChild(document.createElement("div"));
        await vegaEmbed(shown, spec, SHARED.formatLocale);
        return [...shown.querySelectorAll("g.mark-text.marks text")].map((each) => each.textContent);
    }"""
    changes = [-0.372, -0.1, 0.25, 0.999, 1.5]
    assert page.evaluate(ask, ["+.0%", changes]) == [percent(value) for value in changes]
    shares = [0.004, 0.0512]
    assert page.evaluate(ask, [".1%", shares]) == [unbroken(numbers.percent(value)) for value in shares]
    counts = [0, 7, 1234, 13012, -1234567]
    assert page.evaluate(ask, [",d", counts]) == [numbers.count(value) for value in counts]
    page.close()
