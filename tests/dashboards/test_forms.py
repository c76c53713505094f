"""Numbers in charts: the one form for people, written by Vega; so many of how many are drawn."""

import json
from typing import Any

import pytest

from dashboards.pages import HEADLINE, PAGES
from dashboards.panels.verdicts import DEVIATIONS
from dashboards.spec import Panel, View, Where
from dashboards.targets.kibana.bundle import kibana
from dashboards.targets.portable.bundle import portable
from dashboards.targets.saved_objects.data_views import data_view
from dashboards.targets.vegalite.charts import CHARTS, from_index
from dashboards.targets.vegalite.forms import (
    COUNT,
    FORMS,
    NUMBER,
    PERCENT,
    SIGNED,
    formats_in,
    text_of,
    written,
)
from dashboards.targets.vegalite.marks import PLAIN
from dashboards.targets.vegalite.sources import dataset
from esjobs.core import numbers
from esjobs.core.query import Count, Moment, Sum
from tests.dashboards.drawn import svg
from tests.dashboards.drawn import written as texts
from tests.dashboards.questions import Chart, asked

VALUES = [0.0, -1e-5, 0.0042, -0.0042, 0.0994, 0.0996, -0.372, 1.0836, 12.34, 999.4, 1234.6, -54321.9, None]


@pytest.mark.parametrize(
    ("form", "people"),
    [
        (COUNT, numbers.count),
        (PERCENT, numbers.percent),
        (SIGNED, numbers.signed_percent),
        (NUMBER, numbers.number),
    ],
)
def test_charts_write_numbers_as_everybody_does(form: str, people: Any) -> None:
    values = [value for value in VALUES if form != NUMBER or value is None or abs(value) > 1e-3 or value == 0]
    if form == COUNT:
        values = [value for value in values if value is None or abs(value) >= 1 or value == 0]
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": [{"place": place, "v": value} for place, value in enumerate(values)]},
        "transform": [{"calculate": text_of("datum.v", form), "as": "told"}],
        "layer": [
            {
                "name": "told",
                "mark": "text",
                "encoding": {
                    "y": {"field": "place", "type": "ordinal"},
                    "text": {"field": "told", "type": "nominal"},
                },
            }
        ],
    }
    assert texts(svg(spec), "told") == [people(value) for value in values]


def test_forms_become_texts_and_labels() -> None:
    layer = {
        "mark": "point",
        "encoding": {
            "x": {"field": "v", "type": "quantitative", "axis": {"format": PERCENT}},
            "tooltip": [{"field": "v", "type": "quantitative", "format": SIGNED, "title": "v"}],
        },
    }
    made = written(layer)
    assert list(formats_in(made)) == []
    assert "labelExpr" in made["encoding"]["x"]["axis"]
    assert made["encoding"]["tooltip"][0]["field"] == made["transform"][0]["as"]


@pytest.mark.parametrize("make", [portable, kibana], ids=["portable", "kibana"])
def test_no_chart_of_a_bundle_has_a_format_of_its_own(make: Any) -> None:
    for each in asked(make(PAGES, HEADLINE)):
        if isinstance(each, Chart):
            assert [form for form in formats_in(each.spec) if form not in FORMS] == [], each.panel
            assert not any(form in json.dumps(each.spec) for form in FORMS), each.panel


def test_a_deviation_has_its_sign_in_tables_of_a_server() -> None:
    forms = json.loads(data_view(View("flags")).attributes["fieldFormatMap"])
    assert forms["deviation"]["params"]["pattern"].startswith("+")
    assert not forms["deviation_err"]["params"]["pattern"].startswith("+")


def test_a_chart_says_of_how_many_names_it_draws_the_first() -> None:
    panel = Panel(**{**DEVIATIONS.__dict__, "most": (40,)})
    spec = from_index(panel)
    rows = [
        {
            "name": f"q{n:02}",
            "deviation": 0.5 - n / 200,
            "deviation_err": 0.02,
            "status_shown": "ok",
            "rank": n,
        }
        for n in range(60)
    ]
    spec["data"] = {"name": "rows", "values": [{"_source": row} for row in rows]}
    picture = svg(spec)
    assert texts(picture, "cut") == ["40 of 60 are drawn"]
    spec["data"]["values"] = spec["data"]["values"][:40]
    assert texts(svg(spec), "cut") == []


def test_names_over_time_are_those_that_are_read_first() -> None:
    for page in PAGES:
        for placed in page.places:
            panel = placed.panel
            if panel.kind == "trend" and panel.view.by and panel.view.table == "flags":
                terms = from_index(panel)["data"]["url"]["body"]["aggs"]["groups"]["terms"]
                keys = [key for each in terms["order"] for key in each]
                assert keys[-2:] == ["rank", "_count"], panel.id


def ratio_panel() -> tuple[Panel, list[dict[str, Any]]]:
    """A ratio per user: one job of a lucky user, many of the others, one of whom differs."""
    found = next(p.panel for page in PAGES for p in page.places if p.panel.id == "efficiency-by-user")
    rows = []
    for user, n_jobs, share in (("a", 400, 0.8), ("b", 300, 0.8), ("c", 200, 0.4), ("one", 1, 0.99)):
        core = 100.0
        cpu = share * core
        spread = 25.0 * n_jobs
        rows.append(
            {
                "user": user,
                "cpu_s": cpu * n_jobs,
                "core_s": core * n_jobs,
                "cpu_s_sq": cpu * cpu * n_jobs + spread,
                "cpu_s_x_core_s": cpu * core * n_jobs,
                "core_s_sq": core * core * n_jobs,
                "n_jobs": n_jobs,
            }
        )
    return found, rows


def test_no_ratio_of_one_job_leads_and_who_differs_is_said() -> None:
    panel, rows = ratio_panel()
    spec = CHARTS["shares"](panel, dataset("rows"), {}, PLAIN)
    spec["data"] = {"name": "rows", "values": rows}
    picture = svg(spec)
    assert texts(picture, "numbers") == ["80 %", "80 %", "40 %"]
    assert texts(picture, "sentence") == ["1 of 3 differs from the rest by more than 3 standard errors."]
    spec["data"]["values"] = rows[:2]
    (said,) = texts(svg(spec), "sentence")
    assert said.endswith("their order has no meaning.")


def test_products_of_jobs_are_asked_without_a_script() -> None:
    """Cores are a key of the groups, so that a product of three is exact."""
    from dashboards.spec import OWN
    from dashboards.targets.vegalite.jobs import job_groups

    metrics = (Sum("cpu_s", "cpu_s"), Moment(("cpu_s", "wall_s", "cores"), "both"), Count())
    view = View("jobs", where=(Where("cpu_s"),), by=("user",), metrics=metrics)
    source = job_groups(view, OWN, "esjobs")
    body = json.dumps(source.data["url"]["body"])
    assert "script" not in body
    assert "weighted_avg" in body
    (made,) = (step for step in source.unfolded if step.get("as") == "both" and "calculate" in step)
    assert made["calculate"].endswith('* datum["cores"]')
