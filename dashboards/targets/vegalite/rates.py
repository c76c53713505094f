"""Charts of rates per name: each with its interval, and the names marked that differ from the rest."""

import json
from dataclasses import dataclass

from dashboards.spec import NEUTRAL, STOP, Panel
from dashboards.targets.vegalite.against_rest import DIFFERS, LIKE_REST, SENTENCE, Rate, against_rest
from dashboards.targets.vegalite.forms import COUNT, NUMBER, PERCENT, SCORE, text_of
from dashboards.targets.vegalite.marks import INK, LINE, MUTED, Paint, Spec, assembled, columns_of
from dashboards.targets.vegalite.sources import Source, Step
from dashboards.targets.vegalite.sums import (
    HOUR_S,
    amount,
    cut,
    drawn_of,
    largest,
    named_bars,
    names_axis,
)
from esjobs.core.states import FAILED


@dataclass(frozen=True)
class _Manner:
    """Style of rates: number format, column of the order, axis with or without 0.

    ``also``: steps that extend a row. ``label_text``: the column with the text behind a
    mark; empty: its value. ``more``: further lines of a tooltip.
    """

    form: str
    by: str = "low"
    zero: bool = True
    label_text: str = ""
    also: tuple[Step, ...] = ()
    more: tuple[Spec, ...] = ()


def rates(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A rate per name with its interval, the surely highest first.

    A share of jobs that failed, where ``x`` is their state; else a mean of seconds, in hours, for which the
    view has the sum of squares (``x`` and ``_sq``).
    """
    column = panel.entry("x").column
    value = _datum(column)
    if column == "state":
        failed = f"indexof({json.dumps(list(FAILED))}, {value}) >= 0 ? datum.n_jobs : 0"
        return _drawn(panel, source, Rate("share", {"over": failed}), _Manner(PERCENT), paint)
    # squares of seconds are divided twice
    sums = {"over": f"{value} / {HOUR_S}", "squares": f"{_datum(f'{column}_sq')} / {HOUR_S**2}"}
    return _drawn(panel, source, Rate("ratio", sums), _Manner(NUMBER), paint)


def _ratios(panel: Panel, source: Source, paint: Paint) -> Spec:
    """A sum over another one per name, with its interval, in the order of the lower sum."""
    field = panel.entry("x")
    over, under = field.column, field.per
    sums = {
        "over": _datum(over),
        "under": _datum(under),
        "squares": _datum(f"{over}_sq"),
        "products": _datum(f"{over}_x_{under}"),
        "under_squares": _datum(f"{under}_sq"),
    }
    return _drawn(panel, source, Rate("ratio", sums), _Manner(PERCENT, by="under", zero=False), paint)


def shares(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """One sum over another per name in the order of the groups, and a rule at that of all together.

    With its interval where the view has the sums of squares, else a bar.
    """
    if any(metric.name == f"{panel.entry('x').column}_sq" for metric in panel.view.metrics):
        return _ratios(panel, source, paint)
    field = panel.entry("x")
    value: Step = {"calculate": f"{_datum(field.column)} / {_datum(field.per)}", "as": "value"}
    steps = [
        *source.lifted([*columns_of(panel), field.per]),
        {"filter": f"{_datum(field.per)} > 0"},
        {
            "joinaggregate": [
                {"op": "sum", "field": field.column, "as": "over"},
                {"op": "sum", "field": field.per, "as": "under"},
            ]
        },
        {"calculate": "datum.over / datum.under", "as": "mean"},
        value,
        *largest(field.per or "", panel.most[0]),
    ]
    mean: Spec = {
        "name": "mean",
        "transform": [{"aggregate": [{"op": "max", "field": "mean", "as": "mean"}]}],
        "mark": {"type": "rule", "color": LINE, "strokeWidth": 1.2, "strokeDash": [5, 4]},
        "encoding": {"x": amount("mean", field.title, PERCENT)},
    }
    bars, numbers = named_bars(panel, field.title, PERCENT, by=field.per)
    return assembled(source, steps, [bars, mean, numbers, cut(panel)], paint)


def weighted(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A weighted mean per name with its interval, the surely highest first, and of how much of its hours."""
    field = panel.entry("x")
    detail = next(entry for entry in panel.fields if entry.role == "detail")
    over, under = field.column, field.per
    sums = {
        "over": _datum(over),
        "under": _datum(under),
        "squares": _datum(f"{over}_sq"),
        "under_squares": _datum(f"{under}_sq"),
        "n_jobs": _datum(f"{over}_jobs"),
        "hours": _datum(detail.column),
    }
    manner = _Manner(
        SCORE,
        label_text=f"{text_of('datum.value', SCORE)} + ' (' + {text_of('datum.known', PERCENT)} + ')'",
        also=({"calculate": "datum.under / datum.hours", "as": "known"},),
        more=(
            {"field": "known", "type": "quantitative", "title": "of its hours known", "format": PERCENT},
            {"field": "hours", "type": "quantitative", "title": detail.title, "format": COUNT},
        ),
    )
    return _drawn(panel, source, Rate("weighted", sums), manner, paint)


def _drawn(panel: Panel, source: Source, rate: Rate, manner: _Manner, paint: Paint) -> Spec:
    """Points with their intervals from top to bottom; who differs from the rest stands out."""
    field, names = panel.entry("x"), panel.entry("label").column
    needed = [*columns_of(panel), *(metric.name for metric in panel.view.metrics)]
    label_text = manner.label_text or text_of("datum.value", manner.form)
    steps: list[Step] = [
        *source.lifted(dict.fromkeys(needed)),
        *against_rest(rate, names),
        *manner.also,
        {"calculate": label_text, "as": "told"},
        *largest(manner.by, panel.most[0]),
    ]
    room = 66 if manner.label_text else 44
    value, mean, low, high = (
        amount(column, field.title, manner.form, room, zero=manner.zero)
        for column in ("value", "mean", "low", "high")
    )
    y = {**names_axis(names), "sort": {"field": manner.by, "op": "max", "order": "descending"}}
    colour = {
        # a name alone neither differs from the rest nor is like it
        "condition": {"test": "datum.names < 2", "value": LINE},
        "field": "status_shown",
        "type": "nominal",
        "scale": {"domain": [DIFFERS, LIKE_REST], "range": [STOP, NEUTRAL]},
        "legend": {
            "title": None,
            "orient": "bottom",
            "columns": 2,
            "labelLimit": 260,
            "symbolType": "circle",
        },
    }
    lines = [
        {"field": names, "type": "nominal", "title": panel.entry("label").title},
        *(
            {"field": each, "type": "quantitative", "title": title, "format": manner.form}
            for each, title in (
                ("value", field.title),
                ("low", "from"),
                ("high", "to (95 %)"),
                ("rest", "the rest"),
            )
        ),
        *manner.more,
        {"field": "n_jobs", "type": "quantitative", "title": "Jobs", "format": COUNT},
        {"field": "status_shown", "type": "nominal", "title": "Against the rest"},
    ]
    layers: list[Spec] = [
        {
            "name": "mean",
            "transform": [{"aggregate": [{"op": "max", "field": "mean", "as": "mean"}]}],
            "mark": {"type": "rule", "color": LINE, "strokeWidth": 1.2, "strokeDash": [5, 4]},
            "encoding": {"x": mean},
        },
        {
            "name": "bars",
            "mark": {"type": "rule", "strokeWidth": 1.6},
            "encoding": {"x": low, "x2": {"field": "high"}, "y": dict(y), "color": colour},
        },
        {
            "name": "marks",
            "mark": {"type": "point", "filled": True, "size": 44, "opacity": 1},
            "encoding": {"x": value, "y": dict(y), "color": colour, "tooltip": lines},
        },
        {
            "name": "numbers",
            "mark": {"type": "text", "align": "left", "dx": 6, "color": INK, "fontSize": 10.5},
            "encoding": {"x": high, "y": dict(y), "text": {"field": "told", "type": "nominal"}},
        },
        _sentence(panel),
    ]
    return assembled(source, steps, layers, paint)


# An expression: what takes a text apart into lines as long as the chart is wide
_LINES = "regexp('(.{1,' + max(24, floor(width / 5.6)) + '})( +|$)', 'g')"


def _sentence(panel: Panel) -> Spec:
    """Return the caption: number of names that differ, and of those drawn."""
    label_text = f"({SENTENCE}) + (datum.names > {panel.most[0]} ? ' ' + {drawn_of(panel)} + '.' : '')"
    return {
        "name": "sentence",
        "transform": [
            {"aggregate": [{"op": "max", "field": each, "as": each} for each in ("n", "names", "most_jobs")]},
            {"calculate": f"replace(({label_text}), {_LINES}, '$1\\n')", "as": "told"},
        ],
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "top",
            "color": MUTED,
            "fontSize": 11,
            "lineBreak": "\n",
        },
        "encoding": {
            "x": {"value": 0},
            "y": {"value": {"expr": "height + 30"}},
            "text": {"field": "told", "type": "nominal"},
        },
    }


def _datum(column: str | None) -> str:
    return f"datum[{json.dumps(column)}]"
