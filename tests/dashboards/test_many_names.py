"""A page of a large grid: types show their foremost names and say where the others are."""

import json
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from dashboards.panels import panel
from dashboards.targets.html.compose import Composer
from dashboards.targets.html.parts import TablePart, TypePart
from dashboards.targets.html.report import render
from dashboards.view.rows import rows_of
from tests.dashboards.conftest import MakeData


def types_of(composer: Composer) -> list[TypePart]:
    return [
        part
        for part in composer.block(panel("types"), composer.main_type).parts
        if isinstance(part, TypePart)
    ]


def names_in(part: TypePart, identity: str) -> set[str]:
    (block,) = (each for each in part.blocks if each.panel.id == identity)
    (table,) = (each for each in block.parts if isinstance(each, TablePart))
    return {row.cells[0].text for row in table.rows}


def test_a_type_of_many_names_shows_the_foremost(make_data: MakeData) -> None:
    data = make_data(90, types=("all", "simul"))
    assert data.flags is not None
    composer = Composer(data)
    (part,) = types_of(composer)
    flags = data.flags.query("level == 'queue' and method == 'gamma' and processing_type == 'simul'")
    shown = names_in(part, "flags-site-table")
    assert len(shown) == 40
    deviating = set(flags[flags.verdict == "deviates"].name)
    assert deviating
    assert deviating <= shown
    others = flags[flags.verdict != "deviates"]
    least = others[others.name.isin(shown)].n_jobs.min()
    assert least >= others[~others.name.isin(shown)].n_jobs.max()
    assert part.note.startswith(f"Shown are 40 of {len(flags)} queues")
    assert f"esjobs show flags --type simul --run {flags.run.iloc[0]}" in part.note
    assert part.note.replace("'", "&#39;") in render(data)
    (other,) = types_of(Composer(replace(data, method="paper", headline="gamma")))
    assert "--type simul --method paper --run" in other.note
    together = composer.rows(panel("flags-site-table"), "all")
    assert len(together) == len(
        data.flags.query("level == 'queue' and method == 'gamma' and processing_type == 'all'")
    )


def test_a_type_of_few_names_shows_all(make_data: MakeData) -> None:
    data = make_data(30, types=("all", "simul"))
    assert data.flags is not None
    (part,) = types_of(Composer(data))
    flags = data.flags.query("level == 'queue' and method == 'gamma' and processing_type == 'simul'")
    assert names_in(part, "flags-site-table") == set(flags.name)
    assert part.note == ""


def test_what_charts_have_in_common_is_on_the_page_once(make_data: MakeData) -> None:
    data = make_data(90, types=("all",))
    composer = Composer(data)
    composer.sections()
    packed: list[dict[str, Any]] = composer.charts.packed()
    assert any("like" in chart for chart in packed)
    restored = [{**packed[chart["like"]], **chart} if "like" in chart else chart for chart in packed]
    for chart in restored:
        chart.pop("like", None)
    assert restored == composer.charts.specs
    (text,) = re.findall(
        r'<script type="application/json" id="charts">(.*?)</script>', render(data), re.DOTALL
    )
    assert json.loads(text) == json.loads(json.dumps(packed))


@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_rows_of_one_method(kind: str) -> None:
    held: Any = pa.table({"name": ["A", "B"], "method": ["gamma", "paper"], "k": [float("nan"), 1.0]})
    held = held.to_pandas() if kind == "pandas" else held
    (row,) = rows_of("factors", held, "gamma")
    assert (row["name"], row["k"], row["k_err"]) == ("A", None, None)
    assert len(rows_of("factors", held)) == 2
