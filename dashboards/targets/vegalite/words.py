"""Sentences drawn: what is concluded, and whether the numbers may be used."""

import json

from dashboards.spec import Panel
from dashboards.targets.vegalite.marks import INK, MUTED, Paint, Spec, assembled, columns_of
from dashboards.targets.vegalite.sources import Source, Step

WIDTHS = {16: 9.6, 13: 7.4}
"""Pixels that a letter of a size takes on average, rather too many than too few."""

FRESH_DAYS, STALE_DAYS = 2, 7
"""Up to the first age of the newest day with jobs the light is green, beyond the second red."""

GREEN, YELLOW, RED = "#2a7f62", "#b8860b", "#bf3c06"
"""Of the light; each comes with a word and a shape of its own."""


def wrapped(text: str, size: int) -> str:
    """An expression: a text in lines that are as long as the panel is wide."""
    letters = f"max(20, floor((width - 40) / {WIDTHS[size]}))"
    return f"replace({text}, regexp('(.{{1,' + {letters} + '}})( +|$)', 'g'), '$1\\n')"


def statement(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """The texts of the first row, the first of them larger."""
    columns = [field.column for field in panel.fields]
    first, *others = (f"datum[{json.dumps(column)}]" for column in columns)
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        {"calculate": wrapped(f"({first} || '')", 16), "as": "large"},
        {"calculate": "length(split(datum.large, '\\n')) * 21 + 8", "as": "below"},
        {
            "calculate": wrapped(" + ' ' + ".join(f"({each} || '')" for each in others) or "''", 13),
            "as": "small",
        },
    ]
    layers: list[Spec] = [
        _lines("large", 16, INK, {"value": 4}),
        _lines("small", 13, MUTED, {"field": "below", "type": "quantitative", "scale": None, "axis": None}),
    ]
    return assembled(source, steps, layers, paint)


def _lines(column: str, size: int, colour: str, y: Spec) -> Spec:
    mark = {"type": "text", "align": "left", "baseline": "top", "fontSize": size, "color": colour}
    return {
        "name": column,
        "mark": {**mark, "lineBreak": "\n", "lineHeight": round(1.3 * size)},
        "encoding": {"x": {"value": 8}, "y": y, "text": {"field": column, "type": "nominal"}},
    }


def caption(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """How many rows another panel has; of none, its sentence about nothing."""
    (tile,) = panel.tiles
    none = json.dumps(panel.empty)
    one, many = json.dumps(f"1 {tile.one}"), json.dumps(f" {tile.label}")
    number = "datum.doc_count"
    said = f"{number} === 0 ? {none} : {number} === 1 ? {one} : format({number}, ',d') + {many}"
    steps: list[Step] = [*source.lifted(()), {"calculate": wrapped(f"({said})", 13), "as": "said"}]
    layer = _lines("said", 13, INK, {"value": 4})
    return assembled(source, steps, [{**layer, "name": "marks"}], paint)


def light(panel: Panel, source: Source, joins: dict[str, Source], paint: Paint) -> Spec:
    """Green, yellow or red, in words as well: the age of the newest day with jobs, the fit, failed nights.

    A night that failed counts as long as no later day is in the numbers.
    """
    runs, nights = panel.joins
    failed = "(datum.failed_night !== null && toDate(datum.failed_night) >= toDate(datum.data_end))"
    red = f"datum.status !== 'ok' || !(datum.age <= {STALE_DAYS})"
    yellow = f"datum.age > {FRESH_DAYS} || datum.minuit_valid === false || {failed}"
    newest = "(datum.data_end ? utcFormat(toDate(datum.data_end) - 1, '%Y-%m-%d') : 'unknown')"
    why = (
        "datum.status !== 'ok' ? 'The fit is ' + datum.status + ': ' + (datum.reason || 'no reason given') : "
        f"'The newest day with jobs is ' + {newest} + "
        "(isValid(datum.age) ? ', ' + format(max(datum.age, 0), '.0f') + ' days ago' : '')"
    )
    rest = (
        "'. The fit of all queues: ' + datum.status + "
        "(datum.minuit_valid === false ? ', but Minuit does not accept its minimum' : '') + "
        "', ' + format(datum.n_jobs, ',d') + ' jobs, ' + format(datum.jobs_share, '.0%') + "
        "' of those in buckets, ' + datum.n_names + ' queues.' + "
        f"({failed} ? ' The night of ' + utcFormat(toDate(datum.failed_night), '%Y-%m-%d') + ' failed.' : '')"
    )
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        *joins[runs.name].lookup(runs.on, runs.columns),
        {"calculate": "'failed'", "as": nights.on},
        *joins[nights.name].lookup(nights.on, nights.columns),
        {"calculate": "datum.data_end ? (now() - toDate(datum.data_end)) / 86400000 : null", "as": "age"},
        {
            "calculate": f"{red} ? 'No' : {yellow} ? 'With care' : 'Yes'",
            "as": "word",
        },
        {"calculate": f"{red} ? '{RED}' : {yellow} ? '{YELLOW}' : '{GREEN}'", "as": "colour"},
        {
            "calculate": wrapped(f"({why} + (datum.status !== 'ok' ? '.' : {rest}))", 13),
            "as": "small",
        },
    ]
    shape: Spec = {"field": "word", "type": "nominal", "legend": None}
    shape["scale"] = {"domain": ["Yes", "With care", "No"], "range": ["circle", "triangle-up", "diamond"]}
    fill = {"field": "colour", "type": "nominal", "scale": None, "legend": None}
    layers: list[Spec] = [
        {
            "name": "marks",
            "mark": {"type": "point", "filled": True, "size": 420, "opacity": 1},
            "encoding": {"x": {"value": 24}, "y": {"value": 24}, "shape": shape, "color": fill},
        },
        {
            "name": "word",
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "middle",
                "fontSize": 22,
                "fontWeight": "bold",
            },
            "encoding": {
                "x": {"value": 46},
                "y": {"value": 25},
                "text": {"field": "word", "type": "nominal"},
                "color": fill,
            },
        },
        _lines("small", 13, INK, {"value": 48}),
    ]
    return assembled(source, steps, layers, paint)
