"""The expert's panels: what they draw is what the tables say, and they bear tables with little in them."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

import pandas as pd
import pytest

from dashboards.panels import REPORT, panel
from dashboards.panels.expert import (
    MATRIX,
    METHOD_SHIFT,
    PULL_HISTOGRAMS,
    SIBLINGS,
    TASK_CURVES,
    UNSTABLE,
    WORST,
)
from dashboards.targets.html.charts import siblings
from dashboards.targets.html.compose import Composer
from dashboards.targets.html.expert_charts import matrix, matrix_rows, pulls, task_curve, task_label
from dashboards.targets.html.parts import Block, FigurePart, TablePart, TermsPart, TextPart
from dashboards.targets.html.report import ReportData, render
from dashboards.targets.html.scales import log_axis
from dashboards.targets.vegalite.marks import GRID
from dashboards.view.rows import Row, task_of
from tests.dashboards.conftest import HOSTILE
from tests.dashboards.conftest import PULLS as COUNTS
from tests.dashboards.drawn import NEWEST, OLDEST, SIZE, lines, logarithmic, marks, svg

EXPERT = tuple(each for each in REPORT if each.section == "For experts")


def block_of(data: ReportData, identity: str) -> tuple[Block, Composer]:
    """A panel made concrete for all types together, and its composer."""
    composer = Composer(data)
    return composer.block(panel(identity), "all"), composer


def bucket(**more: Any) -> Row:
    """A bucket of a task in a residuals table, with a row for every field of the panels."""
    return {
        "name": "A",
        "n_jobs": 100,
        "events_per_job": 10.0,
        "cpu_s_per_event": 5.0,
        "expected_cpu_s_per_event": 4.0,
        "deviation": 0.25,
        "pull": 2.0,
        "status": "used",
        "task_id": "1",
        "core_class": "multi",
        "task_type": None,
        "work_kind": None,
        "k": 1.0,
        "k_err": 0.1,
        **more,
    }


def cells_of(block: Block, title: str) -> list[str]:
    """The texts of one column of a block's table."""
    (part,) = (part for part in block.parts if isinstance(part, TablePart))
    place = [heading.text for heading in part.headings].index(title)
    return [row.cells[place].text for row in part.rows]


def test_the_expert_reads_between_results_and_books() -> None:
    assert [each.id for each in EXPERT] == [
        "task-curves",
        "tasks",
        "matrix",
        "errors",
        "fit-quality",
        "pulls",
        "one-task",
        "siblings",
        "worst-buckets",
        "efficiency",
        "unstable",
        "method-shift",
    ]
    ids = [each.id for each in REPORT]
    assert ids[ids.index("task-curves") - 1] == "types"
    assert ids[ids.index("method-shift") + 1] == "books"


def test_the_tasks_with_most_jobs_have_a_chart_each(data: ReportData) -> None:
    assert data.residuals is not None
    block, composer = block_of(data, "task-curves")
    (figure,) = (part for part in block.parts if isinstance(part, FigurePart))
    drawn = [composer.charts.specs[number]["datasets"]["rows"]["rows"] for number in figure.charts]
    assert len(drawn) == 6
    assert sum(map(len, drawn)) == figure.marks
    sites = data.residuals[data.residuals.level == "queue"]
    jobs = sites.groupby(["task_id", "core_class", "task_type", "work_kind"], dropna=False).n_jobs.sum()
    first = jobs.sort_values(ascending=False).index[0]
    assert figure.titles[0].name == task_label(None if pd.isna(part) else part for part in first)
    assert re.search(r"ρ .* ± .* events, slope −.* ± .*: corrected", figure.titles[0].words)
    assert any(title.words == "ρ not estimated: start-up time unknown" for title in figure.titles)


def test_the_curve_is_the_fixed_cost_through_the_median_site() -> None:
    rows = [bucket(events_per_job=n, cpu_s_per_event=c * (1 + 20 / n)) for n, c in ((5, 1), (20, 3), (80, 2))]
    task: Row = {"rho": 20.0, "rho_err": 1.0, "slope": -0.5, "slope_err": 0.1, "decision": "corrected"}
    picture = svg(task_curve(TASK_CURVES, rows, task).complete(0))
    assert len(marks(picture, "marks")) == 3
    across, up = (log_axis([row[column] for row in rows]) for column in ("events_per_job", "cpu_s_per_event"))
    (curve,) = lines(picture, "curve")
    assert len(curve) == 41
    for x, y in curve:
        events = logarithmic(x, across.low, across.high)
        assert logarithmic(y, up.low, up.high) == pytest.approx(
            median([1, 3, 2]) * (1 + 20 / events), rel=1e-3
        )
    dashes = {
        decision: marks(
            svg(task_curve(TASK_CURVES, rows, {**task, "decision": decision}).complete(0)), "curve"
        )[0].get("stroke-dasharray")
        for decision in ("corrected", "kept")
    }
    assert dashes == {"corrected": "1,0", "kept": "5,4"}
    for unknown in (None, {**task, "rho": None}):
        assert marks(svg(task_curve(TASK_CURVES, rows, unknown).complete(0)), "curve") == []
    (negative,) = lines(svg(task_curve(TASK_CURVES, rows, {**task, "rho": -30.0}).complete(0)), "curve")
    assert 0 < len(negative) < 41


def test_what_no_logarithm_holds_is_left_out(data: ReportData) -> None:
    unfit = [bucket(name="B", events_per_job=0.0), bucket(name="C", cpu_s_per_event=None)]
    rows = [bucket(), bucket(name="D"), *unfit]
    frame = pd.DataFrame(rows).assign(level="queue", method="gamma")
    block, _ = block_of(replace(data, residuals=frame, tasks=None), "task-curves")
    (figure,) = (part for part in block.parts if isinstance(part, FigurePart))
    assert figure.marks == 2
    assert figure.titles[0].words == "not recorded"


def test_a_kind_of_work_has_the_account_of_its_task(data: ReportData) -> None:
    frame = pd.DataFrame([bucket(name=name, work_kind="merge") for name in "AB"]).assign(
        level="queue", method="gamma"
    )
    account = {**dict(zip(("task_id", "core_class"), ("1", "multi"), strict=True)), "decision": "split"}
    block, _ = block_of(replace(data, residuals=frame, tasks=pd.DataFrame([account])), "task-curves")
    (figure,) = (part for part in block.parts if isinstance(part, FigurePart))
    assert figure.titles[0].name == "1 · multi · merge"
    assert figure.titles[0].words.endswith(": split")


def test_the_matrix_holds_what_has_most_jobs_fastest_first(make_data: Callable[..., ReportData]) -> None:
    composer = Composer(make_data(90, types=("all",)))
    rows = composer.rows(MATRIX, "all")
    cells, names, tasks = matrix_rows(MATRIX, rows)
    assert (len(names), len(tasks)) == (40, 25)
    speeds = [float(name.split()[-1]) for name in names]
    assert speeds == sorted(speeds, reverse=True)
    drawing = matrix(MATRIX, rows)
    drawn = drawing.datasets["rows"]
    assert len(marks(svg(drawing.complete(0)), "marks")) == len(drawn) == len(cells)
    framed = [row for row in drawn if row["status"] == "rejected"]
    assert drawn[-len(framed) :] == framed
    assert len(framed) == sum(row["status"] == "rejected" for row in cells) > 0
    weight: dict[str, int] = {}
    for row in rows:
        weight[row["name"]] = weight.get(row["name"], 0) + row["n_jobs"]
    kept = {row["name"] for row in cells}
    assert min(weight[name] for name in kept) >= max(weight[name] for name in set(weight) - kept)


def test_names_without_a_factor_stand_last_in_the_matrix() -> None:
    rows = [bucket(name="B", k=None), bucket(name="A", k=0.5), bucket(name=None, k=2.0)]
    assert matrix_rows(MATRIX, rows)[1] == ["–  2.00", "A  0.50", "B"]


def test_long_names_of_the_matrix_stay_apart() -> None:
    rows = [bucket(name="x" * 40 + str(n), task_id="y" * 50 + str(n)) for n in range(3)]
    _, names, tasks = matrix_rows(MATRIX, rows)
    assert len(set(names)) == len(set(tasks)) == 3
    assert max(map(len, names + tasks)) < 45


def test_a_cell_says_percent_and_no_fit_is_grey() -> None:
    rows = [bucket(deviation=-0.124), bucket(name="B", deviation=None, status="no fit")]
    for version in (OLDEST, NEWEST):
        picture = svg(matrix(MATRIX, rows).complete(0), version)
        assert {mark.text for mark in picture.iter("{http://www.w3.org/2000/svg}text")} >= {"−12", "–"}
        filled = [mark.get("fill") for mark in marks(picture, "marks")]
        assert filled.count(GRID) == 1
        assert len(filled) == 2
    assert matrix(MATRIX, []).datasets["rows"] == []


def test_the_histogram_keeps_its_counts_and_the_normal_its_area() -> None:
    bars = [{"low": n / 2 - 5, "high": n / 2 - 4.5, "n_buckets": count} for n, count in enumerate(COUNTS)]
    picture = svg(pulls(PULL_HISTOGRAMS, bars).complete(0))
    said = [str(mark.get("aria-label")) for mark in marks(picture, "marks")]
    assert len(said) == len(COUNTS)
    assert "Pull: below −4.5" in said[0]
    assert "Pull: above 4.5" in said[-1]
    assert [int(re.findall(r"Buckets: (\d+)", text)[0]) for text in said] == COUNTS
    paths = [mark.get("d", "") for mark in marks(picture, "marks")]
    heights = [abs(float(re.findall(r"v(-?[\d.]+)", path)[0])) for path in paths]
    share = max(heights) / SIZE / max(COUNTS)
    assert heights == pytest.approx([count * share * SIZE for count in COUNTS], abs=0.01)
    (normal,) = lines(picture, "normal")
    assert math.fsum(y / share for _, y in normal) * 0.1 == pytest.approx(0.5 * sum(COUNTS), rel=1e-3)


def test_fits_without_a_histogram_draw_nothing(data: ReportData) -> None:
    block, _ = block_of(replace(data, pull_histograms=None), "pulls")
    assert block.parts == ()


def test_both_levels_of_all_types_have_their_pulls(data: ReportData) -> None:
    block, _ = block_of(data, "pulls")
    (figure,) = (part for part in block.parts if isinstance(part, FigurePart))
    assert [title.name for title in figure.titles] == ["Queues", "CPU models"]
    assert figure.titles[0].words == "812 buckets, width 1.06, 9 rejected"


def test_a_chi2_that_sigma_int_was_made_for_is_no_proof(data: ReportData) -> None:
    block, _ = block_of(data, "fit-quality")
    assert set(cells_of(block, "χ²/dof")) == {"0.986 by construction"}
    assert data.fits is not None
    assumed, _ = block_of(replace(data, fits=data.fits.assign(sigma_int_kind="assumed")), "fit-quality")
    assert set(cells_of(assumed, "χ²/dof")) == {"0.986"}
    bare, _ = block_of(replace(data, fits=data.fits.assign(dof=0).iloc[:2]), "fit-quality")
    (part,) = (part for part in bare.parts if isinstance(part, TablePart))
    assert "χ²/dof" not in [heading.text for heading in part.headings]


def test_the_error_of_a_verdict_is_the_sum_of_its_parts(data: ReportData) -> None:
    block, composer = block_of(data, "errors")
    rows = composer.rows(panel("errors"), "all")
    assert {row["verdict"] for row in rows} == {"deviates", "undecided", "ok"}
    for row in rows:
        parts = (row[f"deviation_err_{part}"] for part in ("stat", "int", "line"))
        assert math.hypot(*parts) == pytest.approx(row["deviation_err"], rel=0.01)
    assert len(cells_of(block, "Raw")) == len(rows)
    assert any(text != "–" for text in cells_of(block, "Sole link"))


def test_names_with_one_task_are_named(data: ReportData) -> None:
    block, composer = block_of(data, "one-task")
    rows = composer.rows(panel("one-task"), "all")
    text, names = block.parts
    assert isinstance(text, TextPart)
    assert isinstance(names, TermsPart)
    assert text.paragraphs[0].startswith(f"{len(rows)} queues have one unit of work in the fit")
    assert names.terms[0][1].count(", ") == len(rows) - 1
    assert data.factors is not None
    single = data.factors.assign(n_units=2.0)
    single.loc[single.index[0], "n_units"] = 1.0
    text = block_of(replace(data, factors=single), "one-task")[0].parts[0]
    assert isinstance(text, TextPart)
    assert text.paragraphs[0].startswith("1 queue has one unit of work")


def test_siblings_carry_the_origin_of_their_declaration(data: ReportData) -> None:
    rows = Composer(data).rows(SIBLINGS, "all")
    assert data.flags is not None
    flags = data.flags.query("level == 'queue' and processing_type == 'all' and method == 'gamma'")
    origins = dict(zip(flags.name, flags.origin, strict=True))
    assert rows
    for row in rows:
        assert row["origin"] == origins.get(row["name"])
        assert row["k_raw"] is not None
    block, _ = block_of(data, "siblings")
    (figure,) = (part for part in block.parts if isinstance(part, FigurePart))
    power = r"to the power −?0\.\d\d \(−?0\.\d\d without correction\)"
    assert re.search(power, figure.caption)
    assert set(cells_of(block, "Origin")) <= {"own", "inherited", "default", "–"}
    assert all(row["origin"] is None for row in Composer(replace(data, flags=None)).rows(SIBLINGS, "all"))


def test_the_worst_buckets_come_by_rank_sites_first(data: ReportData) -> None:
    rows = Composer(data).rows(WORST, "all")
    assert [(row["level"], row["rank"]) for row in rows] == [
        (level, rank) for level in ("queue", "cpu_model") for rank in range(1, 11)
    ]


def test_unstable_verdicts_name_the_change(data: ReportData) -> None:
    rows = Composer(data).rows(UNSTABLE, "all")
    assert rows
    assert {row["unstable_under"] for row in rows} == {"method paper"}


def test_the_largest_shifts_stand_under_a_sentence_on_all(data: ReportData) -> None:
    block, composer = block_of(data, "method-shift")
    rows = composer.rows(METHOD_SHIFT, "all")
    sizes = [abs(row["method_sigmas"]) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    text, table = block.parts
    assert isinstance(text, TextPart)
    assert isinstance(table, TablePart)
    assert f"median magnitude of {median(sizes):.3f} σ" in text.paragraphs[0]
    assert f"at most {sizes[0]:.3f} σ" in text.paragraphs[0]
    assert len(table.rows) == 15 < len(rows)


def test_thousands_of_tasks_are_cut_and_counted(data: ReportData) -> None:
    frame = pd.DataFrame([{"task_id": str(n), "n_jobs": n} for n in range(3000)])
    block, _ = block_of(replace(data, tasks=frame), "tasks")
    assert cells_of(block, "Task")[0] == "2999"
    assert len(cells_of(block, "Task")) == 400
    assert isinstance(block.parts[1], TextPart)
    assert block.n == 3000


@pytest.mark.parametrize("nothing", [None, pd.DataFrame()])
def test_without_tasks_and_residuals_the_rest_stands(data: ReportData, nothing: pd.DataFrame | None) -> None:
    page = render(replace(data, tasks=nothing, residuals=nothing))
    for identity in ("task-curves", "tasks", "matrix", "worst-buckets"):
        start = page.index(f'id="{identity}"')
        assert panel(identity).empty in page[start : start + 2000]


def test_the_method_of_residuals_is_the_headline(data: ReportData) -> None:
    assert data.residuals is not None
    other = replace(data, residuals=data.residuals.assign(method="paper"))
    assert Composer(other).rows(MATRIX, "all") == []


def test_factors_show_what_was_taken_out(data: ReportData) -> None:
    block, composer = block_of(data, "factors-site")
    (figure,) = (part for part in block.parts if isinstance(part, FigurePart))
    marks = next(
        layer for layer in composer.charts.specs[figure.charts[0]]["layer"] if layer.get("name") == "marks"
    )
    titles = {item["title"] for item in marks["encoding"]["tooltip"]}
    assert {"k raw", "ρ, events", "Sole link"} <= titles
    table, _ = block_of(data, "factors-site-table")
    for title in ("k raw", "ρ, events", "Sole link"):
        assert any(text != "–" for text in cells_of(table, title))


def test_deviating_sites_say_via_whom(data: ReportData) -> None:
    assert data.flags is not None
    block, _ = block_of(replace(data, flags=data.flags.assign(sole_link="GRID-BRIDGE")), "deviating")
    assert set(cells_of(block, "Sole link")) == {"GRID-BRIDGE"}


def test_hostile_names_everywhere_leave_no_element(data: ReportData) -> None:
    assert data.residuals is not None
    assert data.tasks is not None
    frame, tasks = data.residuals.copy(), data.tasks.copy()
    for column in ("name", "task_id", "core_class", "task_type", "work_kind", "status"):
        frame[column] = [HOSTILE[n % len(HOSTILE)] for n in range(len(frame))]
    for column in ("task_id", "core_class", "task_type", "work_kind", "decision", "reason"):
        tasks[column] = [HOSTILE[n % len(HOSTILE)] for n in range(len(tasks))]
    hostile = replace(data, residuals=frame, tasks=tasks)
    page = render(hostile)
    written = page[: page.index('<script type="application/json"')]
    for element in ("<script", "<img", "<b onmouseover"):
        assert element not in written
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in written
    composer = Composer(hostile)
    composer.sections()
    for spec in composer.charts.specs:
        text = json.dumps({key: value for key, value in spec.items() if key != "datasets"})
        assert "alert(" not in text
        assert "example.org" not in text


def test_a_task_is_more_than_its_number() -> None:
    rows = [bucket(core_class="single"), bucket(core_class="multi"), bucket(work_kind="merge")]
    assert len({task_of(row) for row in rows}) == 3
    assert len(matrix_rows(MATRIX, rows)[2]) == 3


def test_tasks_of_one_site_have_no_chart(data: ReportData) -> None:
    rows = [bucket(), bucket(name="B"), bucket(task_id="2"), bucket(task_id="3")]
    frame = pd.DataFrame(rows).assign(level="queue", method="gamma")
    block, _ = block_of(replace(data, residuals=frame), "task-curves")
    (figure,) = (part for part in block.parts if isinstance(part, FigurePart))
    assert (len(figure.charts), figure.marks) == (1, 2)
    assert "Omitted: 2 tasks that ran at one queue only." in figure.caption
    alone, _ = block_of(replace(data, residuals=frame[2:]), "task-curves")
    assert alone.parts == (TextPart(("No comparison: each of 2 tasks ran at one queue only.",)),)


def test_the_rounding_of_zero_is_not_shown_as_a_result(data: ReportData) -> None:
    """Without independent loops every residual is 0 by construction: no ranking, no histogram, no matrix."""
    assert data.residuals is not None
    assert data.fits is not None
    assert data.factors is not None
    nothing = replace(
        data,
        residuals=data.residuals.assign(deviation=2e-15, pull=-2e-14),
        fits=data.fits.assign(pull_width=6.7e-15, dof=0),
        factors=data.factors.assign(method_sigmas=-8e-15),
    )
    for identity in ("matrix", "pulls", "worst-buckets"):
        assert block_of(nothing, identity)[0].parts == ()
        assert "by construction" in panel(identity).empty
    (text,) = block_of(nothing, "method-shift")[0].parts
    assert isinstance(text, TextPart)
    assert text.paragraphs[0].startswith("No effect: it gives each of ")
    assert set(cells_of(block_of(nothing, "fit-quality")[0], "Pull width")) == {"0.00"}


@pytest.mark.parametrize("identity", ["matrix", "worst-buckets"])
def test_residuals_above_zero_are_called_faster(identity: str) -> None:
    (note,) = {field.note for field in panel(identity).fields if field.column == "deviation"}
    assert "above 0: faster" in note
    assert "faster" in panel(identity).description


def test_few_siblings_are_named_in_their_chart(data: ReportData) -> None:
    rows = [
        bucket(name=f"{site}_{n}", site=site, component=0, k=k, k_err=0.01, k_raw=k, events_per_job=10.0 * n)
        for site in ("SITE-A", "SITE-B")
        for n, k in ((1, 0.9), (2, 1.1))
    ]
    full = [{field.column: None for field in SIBLINGS.fields} | {"benchmark": None} | row for row in rows]
    sets = siblings(SIBLINGS, full).datasets
    named = {label["label"] for side in ("left", "right") for label in sets[f"roomy_{side}"]}
    assert named == {"SITE-A", "SITE-B"}
    many = [{**row, "site": f"{row['site']}{n}"} for n in range(10) for row in full]
    assert siblings(SIBLINGS, many).datasets["roomy_left"] == []
