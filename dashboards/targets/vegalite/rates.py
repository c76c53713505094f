"""Charts of rates per name: each with its interval, and the names marked that differ from the rest.

The same rules as :mod:`esjobs.core.rates`, in the language of a chart: Wilson's interval of a share, that of
the standard error of a mean, a name held against all others, without those that stand out themselves. Names
come by the lower end of their intervals, so that no name leads because of one job of eleven.
"""

import json

from dashboards.spec import Panel
from dashboards.targets.vegalite.marks import INK, LINE, MUTED, Paint, Spec, assembled, columns_of
from dashboards.targets.vegalite.sources import Source, Step
from dashboards.targets.vegalite.sums import BAR, HOUR_S, amount, largest, names_axis
from esjobs.core.rates import FEW_JOBS, INTERVAL_SIGMAS, LEAST_ALIKE, NOISE_SIGMAS
from esjobs.core.states import FAILED

DIFFERS, LIKE_REST = "differs from the rest", "does not"
_ENOUGH = f"datum.alike_n_jobs - datum.like_n_jobs >= {LEAST_ALIKE!r} * (datum.all_n_jobs - datum.n_jobs)"
"""True where enough jobs are left when the names that lie apart are left out of the rest."""
_REST = "datum.enough ? datum.alike_{0} - datum.like_{0} : datum.all_{0} - datum.{0}"


def rates(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A rate per name with its interval, the surely highest first; who differs from the rest stands out.

    A share of jobs that failed, where ``x`` is their state; else a mean of seconds, in hours, for which the
    view has the sum of squares (``x`` and ``_sq``).
    """
    field, label = panel.entry("x"), panel.entry("label")
    is_share = field.column == "state"
    names = label.column
    column = f"datum[{json.dumps(field.column)}]"
    failed = f"indexof({json.dumps(list(FAILED))}, {column}) >= 0 ? datum.n_jobs : 0"
    squares = json.dumps(f"{field.column}_sq")
    sums = ("over", "squares", "n_jobs")
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        {"calculate": failed if is_share else f"{column} / {HOUR_S}", "as": "over"},
        {"calculate": "datum.over" if is_share else f"datum[{squares}] / {HOUR_S**2}", "as": "squares"},
        {"aggregate": [{"op": "sum", "field": each, "as": each} for each in sums], "groupby": [names]},
        {"joinaggregate": [{"op": "sum", "field": each, "as": f"all_{each}"} for each in sums]},
        {"calculate": "datum.all_over / datum.all_n_jobs", "as": "mean"},
        {"filter": f"isValid(datum[{json.dumps(names)}]) && datum.n_jobs >= {FEW_JOBS}"},
        {"calculate": "datum.over / datum.n_jobs", "as": "value"},
        *_median(),
        {"calculate": "datum.middle", "as": "rest"},
        *(_of_shares() if is_share else _of_means()),
        *({"calculate": f"datum.apart ? 0 : datum.{each}", "as": f"like_{each}"} for each in sums),
        {"joinaggregate": [{"op": "sum", "field": f"like_{each}", "as": f"alike_{each}"} for each in sums]},
        {"calculate": _ENOUGH, "as": "enough"},
        *({"calculate": _REST.format(each), "as": f"rest_{each}"} for each in sums),
        {"calculate": "datum.rest_n_jobs > 1 ? datum.rest_over / datum.rest_n_jobs : null", "as": "rest"},
        *(_of_shares() if is_share else _of_means()),
        {"calculate": f"datum.differing ? '{DIFFERS}' : '{LIKE_REST}'", "as": "standing"},
        {"calculate": "datum.differing ? 1 : 0", "as": "one"},
        {"joinaggregate": [{"op": "sum", "field": "one", "as": "n"}, {"op": "count", "as": "names"}]},
        *largest("low", panel.most[0]),
    ]
    form = ".1~%" if is_share else ",.2~f"
    x = amount("value", field.title, form)
    y = {**names_axis(names), "sort": {"field": "low", "op": "max", "order": "descending"}}
    colour = {
        "field": "standing",
        "type": "nominal",
        "scale": {"domain": [DIFFERS, LIKE_REST], "range": ["#bf3c06", BAR]},
        "legend": {
            "title": None,
            "orient": "bottom",
            "columns": 2,
            "labelLimit": 260,
            "symbolType": "circle",
        },
    }
    number = ".2%" if is_share else ",.2f"
    told = [
        {"field": names, "type": "nominal", "title": label.title},
        *(
            {"field": each, "type": "quantitative", "title": title, "format": number}
            for each, title in (
                ("value", field.title),
                ("low", "from"),
                ("high", "to (95 %)"),
                ("rest", "the rest"),
            )
        ),
        {"field": "n_jobs", "type": "quantitative", "title": "Jobs", "format": ",d"},
        {"field": "standing", "type": "nominal", "title": "Against the rest"},
    ]
    layers: list[Spec] = [
        {
            "name": "mean",
            "transform": [{"aggregate": [{"op": "max", "field": "mean", "as": "mean"}]}],
            "mark": {"type": "rule", "color": LINE, "strokeWidth": 1.2, "strokeDash": [5, 4]},
            "encoding": {"x": amount("mean", field.title, form)},
        },
        {
            "name": "bars",
            "mark": {"type": "rule", "strokeWidth": 1.6},
            "encoding": {
                "x": amount("low", field.title, form),
                "x2": {"field": "high"},
                "y": dict(y),
                "color": colour,
            },
        },
        {
            "name": "marks",
            "mark": {"type": "point", "filled": True, "size": 44, "opacity": 1},
            "encoding": {"x": x, "y": dict(y), "color": colour, "tooltip": told},
        },
        {
            "name": "numbers",
            "mark": {"type": "text", "align": "left", "dx": 6, "color": INK, "fontSize": 10.5},
            "encoding": {
                "x": amount("high", field.title, form),
                "y": dict(y),
                "text": {"field": "value", "type": "quantitative", "format": ".1%" if is_share else ",.1f"},
            },
        },
        _sentence(),
    ]
    return assembled(source, steps, layers, paint)


def _sentence() -> Spec:
    """How many names differ, in a line below the chart."""
    told = (
        "(datum.n ? format(datum.n, ',d') : 'None') + ' of ' + format(datum.names, ',d') + ' differ' + "
        "(datum.n > 1 ? '' : 's') + ' from the rest by more than "
        f"{NOISE_SIGMAS:.0f} standard errors' + (datum.n ? '.' : ': their order says nothing.')"
    )
    return {
        "name": "sentence",
        "transform": [
            {"aggregate": [{"op": "max", "field": each, "as": each} for each in ("n", "names")]},
            {"calculate": told, "as": "told"},
        ],
        "mark": {"type": "text", "align": "left", "baseline": "top", "color": MUTED, "fontSize": 11},
        "encoding": {
            "x": {"value": 0},
            "y": {"value": {"expr": "height + 30"}},
            "text": {"field": "told", "type": "nominal"},
        },
    }


def _median() -> list[Step]:
    """The value at which half of the jobs are of names with a lower one."""
    return [
        {
            "window": [{"op": "sum", "field": "n_jobs", "as": "up_to"}],
            "sort": [{"field": "value"}],
        },
        {"joinaggregate": [{"op": "sum", "field": "n_jobs", "as": "ranked"}]},
        {"calculate": "datum.up_to >= datum.ranked / 2 ? datum.value : null", "as": "upper"},
        {"joinaggregate": [{"op": "min", "field": "upper", "as": "middle"}]},
    ]


def _of_shares() -> list[Step]:
    """Wilson's interval of 95 %, and whether Newcombe's of the difference to the rest holds 0."""
    steps: list[Step] = []
    for name, share, number, sigmas in (
        ("", "value", "n_jobs", INTERVAL_SIGMAS),
        ("own_", "value", "n_jobs", NOISE_SIGMAS),
        ("rest_", "rest", "rest_n_jobs", NOISE_SIGMAS),
    ):
        p, n, z2 = f"datum.{share}", f"datum.{number}", sigmas**2
        middle = f"({p} + {z2 / 2!r} / {n}) / (1 + {z2!r} / {n})"
        reach = f"{sigmas!r} * sqrt({p} * (1 - {p}) / {n} + {z2 / 4!r} / ({n} * {n})) / (1 + {z2!r} / {n})"
        steps += [
            {"calculate": f"{middle} - {reach}", "as": f"{name}low"},
            {"calculate": f"{middle} + {reach}", "as": f"{name}high"},
        ]
    below = "sqrt(pow(datum.value - datum.own_low, 2) + pow(datum.rest_high - datum.rest, 2))"
    above = "sqrt(pow(datum.own_high - datum.value, 2) + pow(datum.rest - datum.rest_low, 2))"
    differing = (
        f"isValid(datum.rest) && (datum.value - datum.rest > {below} || datum.rest - datum.value > {above})"
    )
    apart = "datum.rest < datum.own_low || datum.rest > datum.own_high"
    return [*steps, {"calculate": differing, "as": "differing"}, {"calculate": apart, "as": "apart"}]


def _of_means() -> list[Step]:
    """The interval of 95 % of a mean, and whether the mean differs from that of the rest."""
    steps: list[Step] = []
    for name, mean, part in (("", "value", ""), ("rest_", "rest", "rest_")):
        spread = f"datum.{part}squares / datum.{part}n_jobs - datum.{mean} * datum.{mean}"
        steps.append(
            {"calculate": f"sqrt(max({spread}, 0) / (datum.{part}n_jobs - 1))", "as": f"{name}error"}
        )
    away = "abs(datum.value - datum.rest)"
    noise = "sqrt(pow(datum.error, 2) + pow(datum.rest_error, 2))"
    return [
        *steps,
        {"calculate": f"max(datum.value - {INTERVAL_SIGMAS!r} * datum.error, 0)", "as": "low"},
        {"calculate": f"datum.value + {INTERVAL_SIGMAS!r} * datum.error", "as": "high"},
        {"calculate": f"isValid(datum.rest) && {away} > {NOISE_SIGMAS!r} * {noise}", "as": "differing"},
        {"calculate": f"{away} > {NOISE_SIGMAS!r} * datum.error", "as": "apart"},
    ]
