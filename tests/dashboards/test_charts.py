"""Charts as specifications: valid, one mark per row, and free of anything made from a name but data."""

import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from dashboards.panels import panel
from dashboards.panels.verdicts import SCATTER
from dashboards.targets.html.charts import dots_axis, dots_with_errors, plot_line, scatter_line, siblings
from dashboards.targets.html.compose import Composer
from dashboards.targets.html.report import ReportData
from dashboards.view.rows import Row, relative_to_siblings


def rows_of(data: ReportData, identity: str) -> list[Row]:
    """The rows of a panel for all types together."""
    return Composer(data).rows(panel(identity), "all")


def line_of(data: ReportData) -> Row:
    """The line that verdicts on sites rest on."""
    return next(row for row in Composer(data).tables["lines"] if row["processing_type"] == "all")


def without_rows(spec: dict[str, Any]) -> str:
    """A specification as text, its data left out."""
    return json.dumps({key: value for key, value in spec.items() if key != "datasets"})


def test_plot_line_is_the_chart_of_the_report(data: ReportData) -> None:
    assert data.flags is not None
    assert data.lines is not None
    chart = plot_line(data.flags, data.lines).to_dict()
    drawing = scatter_line(SCATTER, rows_of(data, "corepower-site"), line_of(data))
    assert chart == drawing.chart(860).to_dict()
    spec = drawing.spec()
    assert {**chart, "width": "container", "datasets": None} == {**spec, "datasets": None}
    assert chart["$schema"].startswith("https://vega.github.io/schema/vega-lite/")


def test_scatter_draws_every_site_with_both_values(data: ReportData) -> None:
    rows = rows_of(data, "corepower-site")
    drawing = scatter_line(SCATTER, rows, line_of(data))
    marks = drawing.datasets["points"]
    assert len(marks) == len(rows) == 57
    assert {mark["look"] for mark in marks} >= {
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
    for row in drawing.datasets["line"]:
        assert row["lo"] == pytest.approx(0.7 * row["y"])
        assert row["hi"] == pytest.approx(1.3 * row["y"])
        assert row["y"] == pytest.approx(line_of(data)["slope"] * row["x"])
    assert [row["label"] for row in drawing.datasets["edges"]] == ["+30%", "−30%"]


def test_tooltips_tell_what_a_coordinator_asks(data: ReportData) -> None:
    spec = scatter_line(SCATTER, rows_of(data, "corepower-site"), line_of(data)).spec()
    marks = next(layer for layer in spec["layer"] if layer.get("name") == "marks")
    titles = [item["title"] for item in marks["encoding"]["tooltip"]]
    assert titles == [
        "Name",
        "WLCG site",
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
        for forbidden in ("alert(", "{{7*7}}", "example.org", "xxxxxxxx", "datum"):
            assert forbidden not in text
        for channel in ("href", "url", "expr", "transform"):
            assert f'"{channel}":' not in text


def test_dots_keep_the_order_of_the_rows(data: ReportData) -> None:
    each = panel("factors-site")
    rows = rows_of(data, "factors-site")
    drawing = dots_with_errors(each, rows)
    assert [mark["x"] for mark in drawing.datasets["points"]] == [row["k"] for row in rows]
    assert drawing.height > 14 * len(rows)
    assert drawing.chart(400).to_dict()["layer"]


def test_equal_names_stay_two_rows(data: ReportData) -> None:
    rows = rows_of(data, "factors-site")[:1] * 3
    names = [mark["name"] for mark in dots_with_errors(panel("factors-site"), rows).datasets["points"]]
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
    related = relative_to_siblings(rows, "rc_site", "events_per_job", "k")
    assert len(drawing.datasets["points"]) == len(related) > 10
    assert drawing.chart(400).to_dict()["layer"]


def test_without_line_points_stand_alone(data: ReportData) -> None:
    assert data.flags is not None
    chart = plot_line(data.flags, pd.DataFrame()).to_dict()
    assert chart["datasets"]["line"] == []
    assert len(chart["datasets"]["points"]) > 0


def test_without_anything_there_is_still_a_chart() -> None:
    chart = plot_line(pd.DataFrame(), pd.DataFrame()).to_dict()
    assert chart["datasets"]["points"] == []


def test_the_chart_follows_what_the_frames_hold(data: ReportData) -> None:
    assert data.flags is not None
    assert data.lines is not None
    evgen = plot_line(data.flags.query("processing_type == 'evgen'"), data.lines).to_dict()
    asked = plot_line(data.flags, data.lines, processing_type="evgen").to_dict()
    assert evgen == asked
    models = data.flags.query("level == 'cpu_model'").assign(corepower=10.0, benchmark="HS06")
    assert len(plot_line(models, data.lines).to_dict()["datasets"]["points"]) == 6 * 2


def test_missing_errors_draw_no_bar(data: ReportData) -> None:
    rows = [{**row, "k_err": None} for row in rows_of(data, "corepower-site")]
    for mark in scatter_line(SCATTER, rows, line_of(data)).datasets["points"]:
        assert mark["lo"] == mark["y"] == mark["hi"]


def test_benchmarks_are_never_mixed(data: ReportData) -> None:
    assert data.flags is not None
    assert data.lines is not None
    flags = data.flags.copy()
    flags.loc[flags.index % 2 == 0, "benchmark"] = "HS23"
    lines = pd.concat([data.lines, data.lines.assign(benchmark="HS23", slope=0.05)])
    counts = {
        name: len(plot_line(flags, lines, benchmark=name).to_dict()["datasets"]["points"])
        for name in ("HS06", "HS23")
    }
    assert all(counts.values())
    assert sum(counts.values()) == 57
    composer = Composer(replace(data, flags=flags, lines=lines))
    assert len(composer.block(SCATTER, "all").parts) == 2
