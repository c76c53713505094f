"""The chart of what jobs took that did not finish, by how they ended."""

import json

from dashboards.spec import Panel
from dashboards.targets.vegalite.forms import AMOUNT, COUNT, text_of
from dashboards.targets.vegalite.marks import INK, Paint, Spec, assembled, columns_of, valid
from dashboards.targets.vegalite.sources import Source, Step
from dashboards.targets.vegalite.sums import HOUR_S, amount, names_axis
from esjobs.core.states import FAILED_KINDS, UNFINISHED_KINDS

# By the kind of end, in the order of a bar; what is cancelled, and not lost, is pale and comes last
COLOURS = dict(zip(UNFINISHED_KINDS, ("#9c5a6b", "#8a6d00", "#5b4b8a", "#777d86", "#d9c583"), strict=True))

_KIND_OF = {state: kind for kind, states in UNFINISHED_KINDS.items() for state in states}


def ends(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """Hours per name, a part of a bar for each kind of end, the most lost first; cancelled beside it."""
    label, field = panel.entry("label"), panel.entry("x")
    name = label.column
    lost = " || ".join(f"datum.kind === {json.dumps(kind)}" for kind in FAILED_KINDS)
    of_name = {"groupby": [name]}
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        valid(name, field.column),
        {"calculate": f"{json.dumps(_KIND_OF)}[datum.state]", "as": "kind"},
        {"calculate": f"datum[{json.dumps(field.column)}] / {HOUR_S}", "as": "value"},
        {"filter": "isValid(datum.kind) && datum.value > 0"},
        {
            "aggregate": [{"op": "sum", "field": each, "as": each} for each in ("value", "n_jobs")],
            "groupby": [name, "kind"],
        },
        {"calculate": f"({lost}) ? datum.value : 0", "as": "lost_part"},
        {"calculate": f"indexof({json.dumps(list(UNFINISHED_KINDS))}, datum.kind)", "as": "order"},
        {
            "joinaggregate": [
                {"op": "sum", "field": "value", "as": "all"},
                {"op": "sum", "field": "lost_part", "as": "lost"},
            ],
            **of_name,
        },
        {
            "window": [{"op": "dense_rank", "as": "place"}],
            "sort": [
                {"field": "lost", "order": "descending"},
                {"field": "all", "order": "descending"},
                {"field": name},
            ],
        },
        {"filter": f"datum.place <= {panel.most[0]}"},
        {
            "calculate": f"{text_of('datum.lost', COUNT)} + (datum.all - datum.lost >= 0.5 ? ' + ' + "
            f"{text_of('(datum.all - datum.lost)', COUNT)} + ' cancelled' : '')",
            "as": "told",
        },
    ]
    y = {**names_axis(name), "sort": {"field": "place", "op": "min", "order": "ascending"}}
    tooltips = [
        {"field": name, "type": "nominal", "title": label.title},
        {"field": "kind", "type": "nominal", "title": "Ended"},
        {"field": "value", "type": "quantitative", "title": field.title, "format": AMOUNT},
        {"field": "n_jobs", "type": "quantitative", "title": "Jobs", "format": COUNT},
        {"field": "lost", "type": "quantitative", "title": "Lost in all", "format": AMOUNT},
    ]
    scale = {"domain": list(COLOURS), "range": list(COLOURS.values())}
    legend = {"title": None, "orient": "bottom", "columns": 2, "columnPadding": 10, "symbolType": "square"}
    bar, reach = (amount(column, field.title, AMOUNT, room=130) for column in ("value", "all"))
    layers: list[Spec] = [
        {
            "name": "marks",
            "mark": {"type": "bar", "height": {"band": 0.7}},
            "encoding": {
                "x": {**bar, "stack": "zero"},
                "y": y,
                "color": {"field": "kind", "type": "nominal", "scale": scale, "legend": legend},
                "order": {"field": "order", "type": "quantitative"},
                "tooltip": tooltips,
            },
        },
        {
            "name": "numbers",
            "transform": [
                {
                    "aggregate": [
                        {"op": "max", "field": "all", "as": "all"},
                        {"op": "min", "field": "place", "as": "place"},
                    ],
                    "groupby": [name, "told"],
                }
            ],
            "mark": {"type": "text", "align": "left", "dx": 4, "color": INK, "fontSize": 10.5},
            "encoding": {"x": reach, "y": dict(y), "text": {"field": "told", "type": "nominal"}},
        },
    ]
    return assembled(source, steps, layers, paint)
