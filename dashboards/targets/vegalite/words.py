"""Sentences drawn: what is concluded, and whether the numbers may be used."""

import json

from dashboards.spec import CARE, GO, STOP, Panel
from dashboards.targets.vegalite.forms import COUNT, PERCENT, text_of
from dashboards.targets.vegalite.marks import INK, MUTED, Paint, Spec, assembled, columns_of
from dashboards.targets.vegalite.sources import Source, Step
from esjobs.core.freshness import FRESH_DAYS, STALE_DAYS

WIDTHS = {16: 9.6, 13: 7.4}  # Pixels that a letter of a size takes on average, rather too many than too few


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
        {"calculate": "(now() - toDate(datum.window_end)) / 86400000", "as": "age"},
        {
            "calculate": wrapped(" + ' ' + ".join([*(f"({each} || '')" for each in others), _STALE]), 13),
            "as": "small",
        },
    ]
    layers: list[Spec] = [
        _lines("large", 16, INK, {"value": 4}),
        _lines("small", 13, MUTED, {"field": "below", "type": "quantitative", "scale": None, "axis": None}),
    ]
    return assembled(source, steps, layers, paint)


# Sentence about a conclusion with an old window
_STALE = (
    f"(datum.age > {STALE_DAYS} ? 'Data as of ' + utcFormat(toDate(datum.window_end) - 1, '%Y-%m-%d') + "
    f"' (' + {text_of('datum.age', COUNT)} + ' days ago). Too old to send.' : '')"
)


def _lines(column: str, size: int, colour: str, y: Spec) -> Spec:
    mark = {"type": "text", "align": "left", "baseline": "top", "fontSize": size, "color": colour}
    return {
        "name": column,
        "mark": {**mark, "lineBreak": "\n", "lineHeight": round(1.3 * size)},
        "encoding": {"x": {"value": 8}, "y": y, "text": {"field": column, "type": "nominal"}},
    }


def caption(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """Caption with the number of rows of another panel; its sentence for none."""
    (tile,) = panel.tiles
    none = json.dumps(panel.empty)
    one, many = json.dumps(f"1 {tile.one}"), json.dumps(f" {tile.label}")
    number = "datum.doc_count"
    said = f"{number} === 0 ? {none} : {number} === 1 ? {one} : format({number}, ',d') + {many}"
    steps: list[Step] = [*source.lifted(()), {"calculate": wrapped(f"({said})", 13), "as": "said"}]
    layer = _lines("said", 13, INK, {"value": 4})
    return assembled(source, steps, [{**layer, "name": "marks"}], paint)


# A night that failed counts as long as no later day is in the numbers
_FAILED = "(datum.failed_night !== null && toDate(datum.failed_night) >= toDate(datum.data_end))"
_NEWEST = "(datum.data_end ? utcFormat(toDate(datum.data_end) - 1, '%Y-%m-%d') : 'unknown')"
_AGO = (
    "(!isValid(datum.age) ? '' : datum.age >= 0.5 && datum.age < 1.5 ? ' (1 day ago)' : "
    "' (' + format(max(datum.age, 0), ',.0f') + ' days ago)')"
)


def _judged(panel: Panel, source: Source, joins: dict[str, Source]) -> list[Step]:
    """Rows with the age of the newest day with jobs, the word of the light and its colour."""
    runs, nights = panel.joins
    red = f"datum.status !== 'ok' || !(datum.age <= {STALE_DAYS})"
    yellow = f"datum.age > {FRESH_DAYS} || datum.minuit_valid === false || {_FAILED}"
    return [
        *source.lifted(columns_of(panel)),
        *joins[runs.name].lookup(runs.on, runs.columns),
        {"calculate": "'failed'", "as": nights.on},
        *joins[nights.name].lookup(nights.on, nights.columns),
        {"calculate": "datum.data_end ? (now() - toDate(datum.data_end)) / 86400000 : null", "as": "age"},
        {
            "calculate": f"{red} ? 'No' : {yellow} ? 'With care' : 'Yes'",
            "as": "word",
        },
        {"calculate": f"{red} ? '{STOP}' : {yellow} ? '{CARE}' : '{GO}'", "as": "colour"},
    ]


_SHAPE: Spec = {
    "field": "word",
    "type": "nominal",
    "legend": None,
    "scale": {"domain": ["Yes", "With care", "No"], "range": ["circle", "triangle-up", "diamond"]},
}
_FILL: Spec = {"field": "colour", "type": "nominal", "scale": None, "legend": None}


def as_of(panel: Panel, source: Source, joins: dict[str, Source], paint: Paint) -> Spec:
    """One line about a run: may its numbers be used, its window, its id, its newest day with jobs."""
    window = " + ' to ' + ".join(
        f"utcFormat(toDate(datum.{end}) - {less}, '%Y-%m-%d')"
        for end, less in (("window_start", 0), ("window_end", 1))
    )
    said = (
        "'May these numbers be used? ' + datum.word + '. Newest day with jobs: ' + "
        f"{_NEWEST} + {_AGO} + '. Window: ' + {window} + '. Run: ' + datum.run + '.'"
    )
    steps = [*_judged(panel, source, joins), {"calculate": wrapped(f"({said})", 13), "as": "said"}]
    line = _lines("said", 13, INK, {"value": 4})
    line["encoding"]["x"] = {"value": 26}
    mark: Spec = {
        "name": "marks",
        "mark": {"type": "point", "filled": True, "size": 130, "opacity": 1},
        "encoding": {"x": {"value": 12}, "y": {"value": 11}, "shape": _SHAPE, "color": _FILL},
    }
    return assembled(source, steps, [mark, line], paint)


def light(panel: Panel, source: Source, joins: dict[str, Source], paint: Paint) -> Spec:
    """Green, yellow or red, in words as well: the age of the newest day with jobs, the fit, failed nights."""
    why = (
        "datum.status !== 'ok' ? 'The fit is ' + datum.status + ': ' + (datum.reason || 'no reason given') : "
        f"'The newest day with jobs is ' + {_NEWEST} + {_AGO}"
    )
    rest = (
        "'. The fit of all queues: ' + datum.status + "
        "(datum.minuit_valid === false ? ', but Minuit does not accept its minimum' : '') + "
        f"', ' + {text_of('datum.n_jobs', COUNT)} + ' jobs, ' + {text_of('datum.jobs_share', PERCENT)} + "
        "' of those in buckets, ' + datum.n_names + ' queues.' + "
        f"({_FAILED} ? ' The night of ' + "
        "utcFormat(toDate(datum.failed_night), '%Y-%m-%d') + ' failed.' : '')"
    )
    steps: list[Step] = [
        *_judged(panel, source, joins),
        {
            "calculate": wrapped(f"({why} + (datum.status !== 'ok' ? '.' : {rest}))", 13),
            "as": "small",
        },
    ]
    layers: list[Spec] = [
        {
            "name": "marks",
            "mark": {"type": "point", "filled": True, "size": 420, "opacity": 1},
            "encoding": {"x": {"value": 24}, "y": {"value": 24}, "shape": _SHAPE, "color": _FILL},
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
                "color": _FILL,
            },
        },
        _lines("small", 13, INK, {"value": 48}),
    ]
    return assembled(source, steps, layers, paint)
