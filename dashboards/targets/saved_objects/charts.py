"""Panels that Vega-Lite draws, as a dashboard server wants them.

The server sets width and height, and the colours of axes and legends, for it knows whether its ground is
light or dark; what we colour ourselves has to be seen on both. Without rows the sentence of the panel stands
in the place of the chart.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dashboards.spec import GROUPS, JOBS, LOOKS, OWN, JobsIndex, Panel
from dashboards.targets.saved_objects.objects import PREFIX, text_of
from dashboards.targets.saved_objects.reasons import REASONS
from dashboards.targets.vegalite.charts import from_index
from dashboards.targets.vegalite.index import hits, index_of
from dashboards.targets.vegalite.marks import (
    BAND,
    GRID,
    INK,
    LINE,
    MUTED,
    PAPER,
    Paint,
    Spec,
    category_of,
)
from dashboards.targets.vegalite.sources import ANSWER, ROWS, groups_in, named_by

# Styles whose colour a server sets by its theme: no colour is read on light and dark ground alike (4.5 to 1)
_OF_TEXT = {INK: "group-subtitle", MUTED: "guide-label"}
# Vega-Lite writes no colour into such a mark, which Vega then takes from its style
_UNCOLOURED = {"filled": False, "stroke": "transparent"}

# Colours of the page by those that are seen on light and dark ground alike
_ON_BOTH = {
    PAPER: "transparent",
    INK: "#7a828f",
    MUTED: "#7a828f",
    LINE: "#7a828f",
    BAND: "rgba(105,125,150,0.16)",
    GRID: "rgba(105,125,150,0.22)",
    # of marks: 3 to 1 against both
    "#1f6699": "#3a86bd",
    "#4d545d": "#7b838e",
    "#4d545e": "#7b838f",
    "#77579a": "#9573b8",
    "#77579b": "#9573b9",
    "#77579c": "#9573ba",
    "#5b4b8a": "#7f6cb8",
    "#d9c583": "#a38f45",
}

_NAMED = re.compile(r"#[0-9a-f]{6}\b")

# Colours of axes and legends that a server sets
_GUIDES = frozenset({"labelColor", "titleColor", "gridColor", "domainColor", "tickColor"})

_OF_AXES = ("labelOpacity", "titleOpacity", "domainOpacity", "gridOpacity", "tickOpacity")
_OF_LEGENDS = ("labelOpacity", "symbolOpacity")

_SIZED = ("width", "height", "autosize")


@dataclass(frozen=True)
class Clicks:
    """Of marks: ``product`` begins the functions of a server, ``columns`` are those that can be chosen."""

    product: str
    columns: Collection[str]


def chart(
    panel: Panel, method: str, prefix: str = PREFIX, jobs: JobsIndex = OWN, clicks: Clicks | None = None
) -> Spec:
    """The specification of a chart that asks for its rows itself."""
    spec = from_index(panel, Paint(size=52), method=method, prefix=prefix, jobs=jobs)
    # the server sizes a chart by its panel, and warns of other sizes
    kept = {name: value for name, value in spec.items() if name not in _SIZED}
    config = {**kept["config"], "kibana": {"hideWarnings": True}}
    config = {name: value for name, value in config.items() if name not in ("font", "background")}
    grouped = kept["data"]["format"] == ANSWER
    weight = ""
    if panel.kind == "weighted":
        weight = hits(panel.view, (), prefix=prefix).path(panel.entry("x").per)
    seen = _any_rows(grouped=grouped, weight=weight)
    # no axis or legend of nothing
    shown = {"expr": f"{seen}{_compared(panel)} ? 1 : 0"}
    config["axis"] = {**config["axis"], **dict.fromkeys(_OF_AXES, shown)}
    config["legend"] = {
        **config["legend"],
        **dict.fromkeys(_OF_LEGENDS, shown),
        # a number that follows the width cuts rows off: the height is taken before it is known
        "columns": 2,
        "columnPadding": 14,
        "labelFontSize": 11,
    }
    layers = [
        *(_with_entries(_under_rows(layer, seen)) for layer in kept["layer"]),
        nothing(panel.empty, seen),
    ]
    if looks := _looks_in_rows(panel):
        layers = [_legend_of(looks, layer) for layer in layers]
    why = {"usermeta": {"lacking": REASONS[panel.kind]}}
    coloured: Spec = _coloured({**kept, **why, "layer": layers, "config": config})
    return coloured if clicks is None else clicked(coloured, panel, clicks, prefix, jobs)


def _looks_in_rows(panel: Panel) -> str:
    """An expression: labels of the looks of the rows of a chart; empty where it tells none apart."""
    column = category_of(panel)
    rows = f"data('{ROWS}')"
    if panel.most and panel.kind == "dots-with-errors":
        rows = f"slice({rows}, 0, {panel.most[0]})"
    values = f"pluck({rows}, '_source.{_STATUS if column == 'verdict' else column}')"
    if column == "component":
        cases = [(f"indexof({values}, 0) >= 0", "largest"), (f"extent({values})[1] > 0", "other")]
        looks = GROUPS
    elif column == "verdict":
        # the longest first: an alternative of a pattern stops at the first that fits
        words = sorted((word for word in LOOKS if word not in ("default", "other")), key=len, reverse=True)
        listed_words = "^(" + "|".join([*words, ""]) + "[|])*$"
        by_default = f"indexof(pluck({rows}, '_source.origin'), 'default') >= 0"
        special = {
            "default": f"indexof({values}, 'undeclared') >= 0 && {by_default}",
            "other": f"!test(regexp({text_of(listed_words)}), join({values}, '|') + '|')",
        }
        cases = [(special.get(word, f"indexof({values}, '{word}') >= 0"), word) for word in LOOKS]
        looks = LOOKS
    else:
        return ""
    listed = " + ".join(f"({test} ? {text_of(looks[word].label + '|')} : '')" for test, word in cases)
    # Vega has no list that grows: a text is joined and taken apart
    return f"length(data('{ROWS}')) ? split(replace({listed}, regexp('[|]$'), ''), '|') : {_ENTRY}"


_STATUS = "status_shown"

# A legend without any has no size, and leaves the whole panel blank
_ENTRY = "['']"


def _under_rows(layer: Spec, seen: str) -> Spec:
    """A layer that is seen under rows alone, where it has data of its own: limits, bands."""
    if "data" not in layer:
        return layer
    return {**layer, "transform": [*layer.get("transform", ()), {"filter": seen}]}


def _with_entries(layer: Spec) -> Spec:
    """A layer whose legend has an entry, if an unseen one, without rows."""
    colour = layer.get("encoding", {}).get("color", {})
    if not colour.get("legend") or "domain" in (colour.get("scale") or {}):
        return layer
    values = {"expr": f"length(domain('color')) ? domain('color') : {_ENTRY}"}
    shown = {**colour, "legend": {**colour["legend"], "values": values}}
    return {**layer, "encoding": {**layer["encoding"], "color": shown}}


def _legend_of(labels: str, layer: Spec) -> Spec:
    """A layer whose legend lists no look that no row has."""
    encoding = layer.get("encoding", {})
    if layer.get("name") != "marks" or not encoding.get("stroke", {}).get("legend"):
        return layer
    changed = {
        channel: {**encoding[channel], "legend": {**encoding[channel]["legend"], "values": {"expr": labels}}}
        for channel in ("stroke", "fill", "shape")
    }
    return {**layer, "encoding": {**encoding, **changed}}


def _compared(panel: Panel) -> str:
    """A further condition of an expression: there are scores with which a chart compares its rows."""
    if panel.kind != "against-scores":
        return ""
    (join,) = panel.joins
    scores = groups_in(f"data('{named_by(join.on, join.columns)}')[0]")
    return f" && length({scores})"


# Columns of names by which a click chooses
NAMES = ("name", "site", "queue", "user", "project", "application")
_DAY_MS = 86_400_000


def clicked(spec: Spec, panel: Panel, clicks: Clicks, prefix: str, jobs: JobsIndex) -> Spec:
    """A chart whose marks choose their name on the dashboard, or their day as its range of time.

    Vega-Lite has no signals; a parameter that calls a function of the server is evaluated at every click.
    Of two calls in one a server heeds the first, so each is a parameter; both hear a click on any layer, and
    heed a mark that has their column.
    """
    answers = _answers(panel, clicks, prefix, jobs)
    layers, params = list(spec["layer"]), list(spec.get("params", ()))
    places = {layer.get("name"): place for place, layer in enumerate(layers)}
    for name, (field, call) in answers.items():
        if name in places:
            layers[places[name]] = _pickable(layers[places[name]], field)
            value = f"pick_{name}[{text_of(field)}]"
            said = f"{value} && isValid({value}[0]) ? {call.replace('VALUE', f'{value}[0]')} : null"
            params.append({"name": f"sent_{name}", "expr": said})
    return {**spec, "layer": layers, **({"params": params} if params else {})}


def _answers(panel: Panel, clicks: Clicks, prefix: str, jobs: JobsIndex) -> dict[str, tuple[str, str]]:
    """By layer, the field that a click on it takes, and the call with its ``VALUE``."""
    of_time = ("at", f"{clicks.product}SetTimeFilter(VALUE, VALUE + {_DAY_MS})")
    if panel.kind == "days":
        return {"marks": of_time}
    name, field, index = _clickable(panel, clicks), "", index_of(panel.view, prefix)
    if panel.view.table != JOBS.name:
        field = name
    # an archive of others may lack the field
    elif name in jobs.columns:
        field, index = jobs.columns[name].names[0], jobs.name(prefix)
    if not field:
        return {"when": of_time}
    query = f"{{match_phrase: {{{text_of(field)}: VALUE}}}}"
    return {"when": of_time, "marks": (name, f"{clicks.product}AddFilter({query}, {text_of(index)})")}


def _pickable(layer: Spec, field: str) -> Spec:
    """A layer whose marks a click picks by a field."""
    select = {"type": "point", "on": "click", "fields": [field], "toggle": False, "clear": False}
    return {
        **layer,
        "mark": {**layer["mark"], "cursor": "pointer"},
        "params": [*layer.get("params", ()), {"name": f"pick_{layer['name']}", "select": select}],
    }


def _clickable(panel: Panel, clicks: Clicks) -> str:
    """The column by which a mark chooses: a name that the page has a choice of, else its own; none: empty."""
    label = next((each.column for each in panel.fields if each.role == "label"), "")
    named = [label, *(each.column for each in panel.fields if not each.table)]
    return next(
        (each for each in named if each in NAMES and each in clicks.columns), label * (label in NAMES)
    )


def _any_rows(*, grouped: bool, weight: str) -> str:
    """An expression: true if there is something to draw.

    ``grouped``: the data is an answer with groups in it. ``weight``: where in a group its weight stands;
    of one without, nothing is drawn.
    """
    rows = groups_in(f"data('{ROWS}')[0]") if grouped else f"data('{ROWS}')"
    return f"extent(pluck({rows}, {json.dumps(weight)}))[1] > 0" if weight else f"length({rows})"


def nothing(sentence: str, seen: str) -> Spec:
    """A layer that says why there is nothing to see; ``seen``: an expression, true if there is."""
    words = sentence or "No rows in this period and selection."
    said = f"{seen} ? '' : {text_of(words)}"
    return {
        "name": "nothing",
        "data": {"values": [{}]},
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "top",
            "fontSize": 13,
            "color": INK,
            "lineBreak": "\n",
            "text": {"expr": wrapped_expression(said)},
        },
        "encoding": {"x": {"value": 8}, "y": {"value": 8}},
    }


def wrapped_expression(text: str) -> str:
    """An expression: a text in lines that fit into the panel."""
    # pixels of a letter of this size, on average; SVG texts do not wrap themselves
    letters = "max(20, floor((width - 16) / 6.8))"
    return f"replace({text}, regexp('(.{{1,' + {letters} + '}})( +|$)', 'g'), '$1\\n')"


def on_both(text: str) -> str:
    """A colour, or an expression that names colours, as it is seen on light and dark ground alike."""
    return _ON_BOTH.get(text) or _NAMED.sub(lambda match: _ON_BOTH.get(match[0], match[0]), text)


def _coloured(found: Any) -> Any:
    if isinstance(found, str):
        return on_both(found)
    if isinstance(found, Mapping):
        if found.get("type") == "text" and found.get("color") in _OF_TEXT:
            kept = {name: value for name, value in found.items() if name != "color"}
            return kept | _UNCOLOURED | {"style": _OF_TEXT[found["color"]]}
        return {name: _coloured(value) for name, value in found.items() if name not in _GUIDES}
    if isinstance(found, list | tuple):
        return [_coloured(each) for each in found]
    return found


def drawn(
    panel: Panel, method: str, prefix: str = PREFIX, jobs: JobsIndex = OWN, clicks: Clicks | None = None
) -> dict[str, Any]:
    """A visualization by value, for a panel of a dashboard."""
    return by_value("vega", panel.title, {"spec": text_of(chart(panel, method, prefix, jobs, clicks))})


def by_value(kind: str, title: str, params: dict[str, Any]) -> dict[str, Any]:
    """A visualization that stands in its dashboard alone and so needs no reference."""
    source = {"filter": [], "query": {"language": "kuery", "query": ""}}
    return {
        "savedVis": {
            "data": {"aggs": [], "searchSource": source},
            "description": "",
            "params": params,
            "title": title,
            "type": kind,
            "uiState": {},
        }
    }
