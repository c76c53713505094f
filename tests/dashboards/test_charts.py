"""Charts as specifications: valid, one mark per row, and free of anything made from a name but data."""

import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import altair as alt
import pandas as pd
import pytest

from dashboards.panels import panel
from dashboards.panels.verdicts import SCATTER
from dashboards.spec import Entry
from dashboards.targets.html.charts import (
    dots_axis,
    dots_with_errors,
    line_chart,
    scatter,
    scatter_line,
    siblings,
)
from dashboards.targets.html.compose import Composer
from dashboards.targets.html.marks import drawing, look
from dashboards.targets.html.report import ReportData
from dashboards.targets.vegalite.marks import PLAIN
from dashboards.view.rows import Row, relative_to_siblings
from tests.dashboards.drawn import SIZE, linear, lines, logarithmic, marks, svg


def rows_of(data: ReportData, identity: str) -> list[Row]:
    """The rows of a panel for all types together."""
    return Composer(data).rows(panel(identity), "all")


def line_of(data: ReportData) -> Row:
    """The line that verdicts on sites rest on."""
    return next(row for row in Composer(data).tables["lines"] if row["processing_type"] == "all")


def layer(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """A layer by its name."""
    return next(each for each in spec["layer"] if each.get("name") == name)


def without_rows(spec: dict[str, Any]) -> str:
    """A specification as text, its data left out."""
    return json.dumps({key: value for key, value in spec.items() if key != "datasets"})


def test_the_line_chart_is_that_of_the_report(data: ReportData) -> None:
    chart = line_chart(data.flags, data.lines)
    drawing = scatter_line(SCATTER, rows_of(data, "corepower-site"), line_of(data), legend=True)
    assert chart == drawing.complete(860)
    assert {**chart, "width": "container", "datasets": None} == {**drawing.spec, "datasets": None}
    alt.LayerChart.from_dict(chart)  # raises when it is no Vega-Lite


def test_scatter_draws_every_site_with_both_values(data: ReportData) -> None:
    rows = rows_of(data, "corepower-site")
    drawing = scatter_line(SCATTER, rows, line_of(data))
    assert len(marks(svg(drawing.spec | {"datasets": drawing.datasets}), "marks")) == len(rows) == 57
    assert {look(SCATTER, row).label for row in rows} >= {
        "deviates, confirmed",
        "candidate, not confirmed",
        "ok",
        "undecided",
        "undeclared, a default value",
    }
    named = {label["label"] for side in ("left", "right") for label in drawing.datasets[f"roomy_{side}"]}
    assert len(named) == sum(row["confirmed"] is True for row in rows)


def test_scatter_band_is_the_limit_of_the_data(data: ReportData) -> None:
    drawing = scatter_line(SCATTER, rows_of(data, "corepower-site"), line_of(data), limit=0.3)
    picture = svg(drawing.complete(0))
    encoding = layer(drawing.spec, "marks")["encoding"]
    across, up = (encoding[side]["scale"]["domain"] for side in ("x", "y"))
    slope = line_of(data)["slope"]
    for name, slopes in (("line", {slope}), ("band", {0.7 * slope, 1.3 * slope})):
        (drawn,) = lines(picture, name)
        found = [linear(y, *up) / linear(x, *across) for x, y in drawn]
        assert (min(found), max(found)) == pytest.approx((min(slopes), max(slopes)), rel=1e-4)
    assert [row["label"] for row in drawing.datasets["edges"]] == ["+30 %", "−30 %"]


def test_tooltips_tell_what_a_coordinator_asks(data: ReportData) -> None:
    spec = scatter_line(SCATTER, rows_of(data, "corepower-site"), line_of(data)).spec
    titles = [item["title"] for item in layer(spec, "marks")["encoding"]["tooltip"]]
    assert titles == [
        "Name",
        "Site",
        "Declared corepower",
        "Origin",
        "Speed factor k ± error",
        "Deviation ± 90 %",
        "Verdict",
        "Jobs",
        "Tasks",
    ]


def test_no_name_leaves_the_data(data: ReportData) -> None:
    composer = Composer(data)
    composer.sections()
    for spec in composer.charts.specs:
        text = without_rows(spec)
        for forbidden in ("alert(", "{{7*7}}", "example.org", "xxxxxxxx"):
            assert forbidden not in text
        for channel in ("href", "url", "expr"):
            assert f'"{channel}":' not in text


def test_expressions_are_the_same_whatever_the_names_are(data: ReportData) -> None:
    """What Vega evaluates is ours: nothing of the data enters it but limits of axes."""

    def expressions(given: ReportData) -> set[str]:
        composer = Composer(given)
        composer.sections()
        tests = re.compile(r'"(?:calculate|filter|test)": ("(?:[^"\\]|\\.)*")')
        found = (text for spec in composer.charts.specs for text in tests.findall(without_rows(spec)))
        return {re.sub(r"-?\d[\d.e+-]*", "#", text) for text in found}

    renamed = {
        name: getattr(data, name).assign(name=[f"Q{n}" for n in range(len(getattr(data, name)))])
        for name in ("factors", "flags", "residuals")
    }
    assert expressions(data) == expressions(replace(data, **renamed))


def test_dots_keep_the_order_of_the_rows(data: ReportData) -> None:
    each = panel("factors-site")
    rows = rows_of(data, "factors-site")
    drawing = dots_with_errors(each, rows)
    assert [mark["k"] for mark in drawing.datasets["rows"]] == [row["k"] for row in rows]
    assert drawing.spec["height"] > 14 * len(rows)
    assert len(marks(svg(drawing.complete(0)), "marks")) == len(rows)


def test_days_and_times_are_iso_texts_in_the_rows_of_every_chart() -> None:
    moments = {"day": date(2018, 8, 1), "loaded_at": datetime(2018, 8, 1, 12, tzinfo=UTC)}
    wanted = {"day": "2018-08-01", "loaded_at": "2018-08-01T12:00:00+00:00"}
    rows: list[Row] = [{"name": "A", "k": 1.0, "score": 2.0, **moments}]
    details = (Entry("day", "Day", "time", "label"), Entry("loaded_at", "Read", "time", "category"))
    fields = (Entry("score", "Score", "number", "x"), Entry("k", "Speed", "number", "y"), *details)
    drawn = scatter(replace(panel("corepower-site"), kind="scatter", fields=fields, joins=()), rows)
    (mark,) = json.loads(json.dumps(drawn.datasets["rows"], allow_nan=False))
    assert {name: mark[name] for name in wanted} == wanted
    plain = drawing(panel("corepower-site"), rows, PLAIN, {"more": rows})
    assert json.loads(json.dumps(plain.datasets))["more"] == [{**rows[0], **wanted}]


def test_equal_names_stay_two_rows(data: ReportData) -> None:
    rows = rows_of(data, "factors-site")[:1] * 3
    names = [mark["name"] for mark in dots_with_errors(panel("factors-site"), rows).datasets["rows"]]
    assert len(set(names)) == 3


def test_an_absurd_factor_stands_at_the_edge_with_its_value(data: ReportData) -> None:
    each = panel("factors-site")
    rows = rows_of(data, "factors-site")
    rows = [{**rows[0], "name": "ABSURD", "k": 312.0}, *rows]
    drawing = dots_with_errors(each, rows)
    assert drawing.datasets["beyond"] == [
        {"name": "ABSURD", "x": dots_axis(each, rows).high, "label": "312.00 ± 0.07"}
    ]
    flags = rows_of(data, "corepower-site")
    flags[0] = {**flags[0], "k": 312.0}
    scatter = scatter_line(SCATTER, flags, line_of(data))
    labels = [row["label"] for side in ("left", "right") for row in scatter.datasets[f"roomy_{side}"]]
    assert any("312" in label and "off the scale" in label for label in labels)


def test_siblings_are_relative_to_their_site(data: ReportData) -> None:
    rows = rows_of(data, "siblings")
    drawing = siblings(panel("siblings"), rows)
    related = relative_to_siblings(rows, "site", "events_per_job", "k")
    assert len(marks(svg(drawing.complete(0)), "marks")) == len(related) > 10
    encoding = layer(drawing.spec, "marks")["encoding"]
    across, up = (encoding[side]["scale"]["domain"] for side in ("x", "y"))
    drawn = [mark.get("transform", "") for mark in marks(svg(drawing.complete(0)), "marks")]
    spots = [tuple(map(float, re.findall(r"[\d.]+", text))) for text in drawn]
    for (x, y), (_, right, high) in zip(spots, related, strict=True):
        assert logarithmic(x / SIZE, *across) == pytest.approx(right, rel=1e-3)
        assert logarithmic(1 - y / SIZE, *up) == pytest.approx(high, rel=1e-3)


def test_without_line_points_stand_alone(data: ReportData) -> None:
    chart = line_chart(data.flags, pd.DataFrame())
    picture = svg(chart)
    assert lines(picture, "line") == []
    assert len(marks(picture, "marks")) == len(chart["datasets"]["rows"]) > 0


def test_without_anything_there_is_still_a_chart() -> None:
    chart = line_chart(pd.DataFrame(), pd.DataFrame())
    assert chart["datasets"]["rows"] == []
    assert marks(svg(chart), "marks") == []


def test_the_chart_follows_what_the_frames_hold(data: ReportData) -> None:
    assert data.flags is not None
    assert data.lines is not None
    evgen = line_chart(data.flags.query("processing_type == 'evgen'"), data.lines)
    asked = line_chart(data.flags, data.lines, processing_type="evgen")
    assert evgen == asked
    models = data.flags.query("level == 'cpu_model'").assign(corepower=10.0, benchmark="HS06")
    assert len(line_chart(models, data.lines)["datasets"]["rows"]) == 6 * 2


def test_missing_errors_draw_no_bar(data: ReportData) -> None:
    rows = [{**row, "k_err": None} for row in rows_of(data, "corepower-site")]
    for bar in marks(svg(scatter_line(SCATTER, rows, line_of(data)).complete(0)), "bars"):
        assert (float(bar.get("x2", 0)), float(bar.get("y2", 0))) == (0, 0)


def test_benchmarks_are_never_mixed(data: ReportData) -> None:
    assert data.flags is not None
    assert data.lines is not None
    flags = data.flags.copy()
    flags.loc[flags.index % 2 == 0, "benchmark"] = "HS23"
    declared: pd.DataFrame = pd.concat([data.lines, data.lines.assign(benchmark="HS23", slope=0.05)])
    counts = {
        name: len(line_chart(flags, declared, benchmark=name)["datasets"]["rows"])
        for name in ("HS06", "HS23")
    }
    assert all(counts.values())
    assert sum(counts.values()) == 57
    composer = Composer(replace(data, flags=flags, lines=declared))
    assert len(composer.block(SCATTER, "all").parts) == 2
