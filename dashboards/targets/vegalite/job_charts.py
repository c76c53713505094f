"""Charts of jobs: amounts, busy cores, completeness, worst users."""

import json
from typing import Any

from dashboards.spec import NEUTRAL, Entry, Panel
from dashboards.targets.vegalite.forms import AMOUNT, COUNT, NUMBER, PERCENT, SCORE
from dashboards.targets.vegalite.marks import (
    INK,
    LINE,
    Paint,
    Spec,
    across,
    assembled,
    columns_of,
    over_time,
    valid,
)
from dashboards.targets.vegalite.sources import Source, Step
from dashboards.targets.vegalite.sums import HOUR_S, SERIES, cut, largest, named_bars
from esjobs.core.states import FAILED


def amounts(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """Hours per name, the largest first; over another sum where the field says so."""
    field = panel.entry("x")
    per = f" / datum[{json.dumps(field.per)}]" if field.per else ""
    needed = [field.column, *([field.per] if field.per else [])]
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        valid(*needed),
        *([{"filter": f"datum[{json.dumps(field.per)}] > 0"}] if field.per else []),
        {"calculate": f"datum[{json.dumps(field.column)}]{per} / {HOUR_S}", "as": "value"},
        {"filter": "datum.value > 0"},
        *largest("value", panel.most[0]),
    ]
    layers = [*named_bars(panel, field.title, AMOUNT, by="value"), cut(panel)]
    return assembled(source, steps, layers, paint)


def busy(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """Mean busy cores against allocated cores of jobs, with the line of equality."""
    x = across("cores", "Allocated cores", {"zero": True, "nice": True}, tickMinStep=1, tickCount=8)
    y = across("busy", "Busy cores, mean", {"zero": True, "nice": True}, tickCount=8)
    even = across("even", "Busy cores, mean", {"zero": True}, tickCount=8)
    tooltips = [
        {"field": "cores", "type": "quantitative", "title": "Allocated cores", "format": COUNT},
        {"field": "busy", "type": "quantitative", "title": "busy cores", "format": NUMBER},
        {"field": "share", "type": "quantitative", "title": "share", "format": PERCENT},
        {"field": "core_h", "type": "quantitative", "title": "Core-hours", "format": AMOUNT},
        {"field": "n_jobs", "type": "quantitative", "title": "Jobs", "format": COUNT},
    ]
    size = {
        "field": "core_h",
        "type": "quantitative",
        "scale": {"range": [50, 700], "zero": True},
        "legend": None,
    }
    layers: list[Spec] = [
        {
            "name": "line",
            "transform": [
                {"aggregate": [{"op": "max", "field": "cores", "as": "widest"}]},
                {"calculate": "[0, datum.widest]", "as": "cores"},
                {"flatten": ["cores"]},
                {"calculate": "datum.cores", "as": "even"},
            ],
            "mark": {"type": "line", "color": LINE, "strokeWidth": 1.2, "strokeDash": [5, 4]},
            "encoding": {"x": x, "y": even},
        },
        {
            "name": "marks",
            "mark": {"type": "point", "filled": True, "opacity": 0.75, "color": NEUTRAL},
            "encoding": {"x": x, "y": y, "size": size, "tooltip": tooltips},
        },
        {
            "name": "numbers",
            "mark": {
                "type": "text",
                "align": "right",
                "baseline": "top",
                "dx": -4,
                "dy": 8,
                "color": INK,
                "fontSize": 10.5,
            },
            "encoding": {
                "x": x,
                "y": y,
                "text": {"field": "share", "type": "quantitative", "format": PERCENT},
            },
        },
    ]
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        {"filter": "datum.wall_s > 0 && datum.cores > 0"},
        {"calculate": "datum.cpu_s / datum.wall_s", "as": "busy"},
        {"calculate": "datum.busy / datum.cores", "as": "share"},
        {"calculate": f"datum.wall_s * datum.cores / {HOUR_S}", "as": "core_h"},
    ]
    return assembled(source, steps, layers, paint)


def coverage(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """Of how many jobs each field is known, a bar per field."""
    titles = [field.title for field in panel.fields]
    label = Entry("known", "Field", "name", "label")
    steps: list[Step] = [
        *source.lifted(()),
        {"window": [{"op": "row_number", "as": "place"}]},
        {"joinaggregate": [{"op": "max", "field": "doc_count", "as": "all"}]},
        # the first group is that of all jobs, the others are the fields in their order
        {"filter": "datum.place > 1 && datum.all > 0"},
        {"calculate": f"{json.dumps(titles)}[datum.place - 2]", "as": "known"},
        {"calculate": "datum.doc_count / datum.all", "as": "value"},
    ]
    shown = Panel(panel.id, panel.title, panel.kind, panel.section, fields=(label,))
    return assembled(source, steps, named_bars(shown, "Share of jobs", PERCENT, most=1.0), paint)


def beside(panel: Panel, source: Source, joins: dict[str, Source], paint: Paint) -> Spec:
    """A share or a mean day by day: of the chosen jobs, with a mark per day, and of all jobs as a line."""
    up = panel.entry("y")
    (every,) = joins.values()
    is_share = up.show == "fraction"
    form = PERCENT if is_share else NUMBER
    x = over_time("at")
    y = across("value", up.title, {"zero": True}, format=form, tickCount=6)
    scale = {"domain": ["selected jobs", "all jobs"], "range": [SERIES[0], NEUTRAL]}
    colour = {"field": "whose", "type": "nominal", "scale": scale, "title": None}
    tooltips = [
        {"field": "day", "type": "nominal", "title": "Day"},
        {"field": "whose", "type": "nominal", "title": "Of"},
        {
            "field": "value",
            "type": "quantitative",
            "title": up.title,
            "format": form,
        },
        {"field": "n_jobs", "type": "quantitative", "title": "Jobs", "format": COUNT},
    ]
    encoding: dict[str, Any] = {"x": x, "y": y, "color": colour}
    layers: list[Spec] = [
        {
            "name": "all",
            "data": dict(every.data),
            "transform": [*every.lifted(()), *_daily(panel, "all jobs")],
            "mark": {"type": "line", "strokeWidth": 1.4, "strokeDash": [5, 3]},
            "encoding": encoding,
        },
        {
            "name": "line",
            "mark": {"type": "line", "strokeWidth": 1.6},
            "encoding": encoding,
        },
        {
            "name": "marks",
            "mark": {"type": "point", "filled": True, "size": 30, "opacity": 1},
            "encoding": {**encoding, "tooltip": tooltips},
        },
    ]
    steps = [*source.lifted(columns_of(panel)), *_daily(panel, "selected jobs")]
    return assembled(source, steps, layers, paint)


def _daily(panel: Panel, whose: str) -> list[Step]:
    """From groups of a day to its share or mean."""
    up, time = panel.entry("y"), panel.entry("x").column
    # a number of jobs means those that failed; all else is in seconds
    failed = up.column == "n_jobs"
    is_failed = f"indexof({json.dumps(list(FAILED))}, datum.state) >= 0"
    over = f"{is_failed} ? datum.n_jobs : 0" if failed else f"datum[{json.dumps(up.column)}] / {HOUR_S}"
    return [
        {"calculate": over, "as": "over"},
        {
            "aggregate": [
                {"op": "sum", "field": "over", "as": "over"},
                {"op": "sum", "field": "n_jobs", "as": "n_jobs"},
            ],
            "groupby": [time],
        },
        {"filter": "datum.n_jobs > 0"},
        {"calculate": "datum.over / datum.n_jobs", "as": "value"},
        {"calculate": f"toDate(datum[{json.dumps(time)}])", "as": "at"},
        {"calculate": "utcFormat(datum.at, '%Y-%m-%d')", "as": "day"},
        {"calculate": json.dumps(whose), "as": "whose"},
    ]


# CPU terms in the sum of scores, with labels for a narrow legend
_PARTS = (("score_cpu", "cpu"), ("score_mem", "mem"), ("communication", "mpi + io"))


def worst(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A bar per job in the order of the rows, and dots where its scores lie when the bar is their sum."""
    field = panel.entry("x")
    label = Entry("job", "User and job", "name", "label")
    value = f"datum[{json.dumps(field.column)}]"
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        {"filter": f"isValid({value})"},
        {"window": [{"op": "row_number", "as": "place"}]},
        {"filter": f"datum.place <= {panel.most[0]}"},
        {"calculate": value, "as": "value"},
        {"calculate": "(datum.user || 'unknown') + ' · ' + datum.job_id", "as": "job"},
        {
            "calculate": "isValid(datum.score_mpi) || isValid(datum.score_io) ? "
            "(datum.score_mpi || 0) + (datum.score_io || 0) : null",
            "as": "communication",
        },
    ]
    shown = Panel(panel.id, panel.title, panel.kind, panel.section, fields=(label,))
    bars, numbers = named_bars(shown, field.title, AMOUNT)
    bars["encoding"]["tooltip"] += [
        {"field": each.column, "type": "quantitative", "title": each.title, "format": AMOUNT}
        for each in panel.fields
        if each.show in ("count", "number") and each is not field
    ]
    layers = [bars, numbers]
    if field.column == "score_sum":
        bars["mark"] |= {"opacity": 0.25}
        layers.append(
            {
                "name": "scores",
                "transform": [
                    {"fold": [column for column, _ in _PARTS], "as": ["part", "score"]},
                    {"filter": "isValid(datum.score)"},
                    {"calculate": f"{json.dumps(dict(_PARTS))}[datum.part]", "as": "what"},
                ],
                "mark": {"type": "point", "filled": True, "size": 38, "opacity": 1},
                "encoding": {
                    "x": {**bars["encoding"]["x"], "field": "score"},
                    "y": bars["encoding"]["y"],
                    "color": {
                        "field": "what",
                        "type": "nominal",
                        "title": None,
                        "scale": {"domain": [title for _, title in _PARTS], "range": list(SERIES[:3])},
                        "legend": {
                            "orient": "top",
                            "columns": 3,
                            "columnPadding": 10,
                            "labelLimit": 200,
                            "symbolType": "circle",
                        },
                    },
                    "tooltip": [
                        {"field": "what", "type": "nominal", "title": "score"},
                        {"field": "score", "type": "quantitative", "title": "%", "format": SCORE},
                    ],
                },
            }
        )
    return assembled(source, steps, layers, paint)


def of_jobs(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A mark per job: a score over hours on a logarithmic axis."""
    right, up = panel.entry("x"), panel.entry("y")
    scale = {"type": "log", "nice": False, "padding": 8}
    x = across(right.column, right.title, scale, format=NUMBER, tickCount=6)
    y = across(up.column, up.title, {"domain": [0, 100], "nice": False}, tickCount=6)
    tooltips = [
        {
            "field": each.column,
            "type": "nominal" if each.show == "name" else "quantitative",
            "title": each.title,
            **({} if each.show == "name" else {"format": AMOUNT}),
        }
        for each in panel.fields
    ]
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        {"filter": f"datum[{json.dumps(right.column)}] > 0 && isValid(datum[{json.dumps(up.column)}])"},
    ]
    marks: Spec = {
        "name": "marks",
        "mark": {"type": "point", "filled": True, "size": 26, "opacity": 0.45, "color": NEUTRAL},
        "encoding": {"x": x, "y": y, "tooltip": tooltips},
    }
    return assembled(source, steps, [marks], paint)
