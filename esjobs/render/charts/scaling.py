"""Pictures of how applications scale: efficiencies against size, in a terminal and as files.

A picture per application, of the region around everything; other regions stand in the table. Lines at 0.8 and
0.9 are the limits of the POP method: from 0.9 on an efficiency is good, from 0.8 fair, below poor.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.core.text import visible
from esjobs.core.words import FAIR, GOOD
from esjobs.render.charts.query import below_each_other, write_drawing
from esjobs.render.text.chart import marks

MOST = 12  # Applications of a picture

# Column, name, colour (told apart with every common kind of colour blindness) and shape
_SERIES: tuple[tuple[str, str, str, str], ...] = (
    ("parallel_efficiency", "parallel efficiency", "#0072b2", "circle"),
    ("mpi_load_balance", "MPI load balance", "#56b4e9", "square"),
    ("mpi_communication_efficiency", "MPI communication", "#009e73", "triangle-up"),
    ("omp_parallel_efficiency", "OpenMP", "#cc79a7", "triangle-down"),
    ("computation_scalability", "computation scalability", "#d55e00", "diamond"),
    ("global_efficiency", "global efficiency", "#000000", "cross"),
    ("speedup_efficiency", "speedup efficiency", "#8a6d00", "stroke"),
)

_Set = list[dict[str, Any]]


def text_picture(rows: pa.Table, width: int) -> list[str]:
    """The lines of a picture for a terminal of some width; :class:`UsageError` where there is nothing."""
    lines: list[str] = []
    for sizes in _sets(rows):
        names = [str(size["cpus"]) for size in sizes]
        drawn = [
            (name, np.array([np.nan if size[column] is None else size[column] for size in sizes], np.float64))
            for column, name, _, _ in _series(sizes)
        ]
        lines += [*([""] if lines else []), _title(sizes)]
        lines += marks(names, drawn, (FAIR, GOOD), width, across="CPUs")
    return lines


def specification(rows: pa.Table) -> dict[str, Any]:
    """The picture as a Vega-Lite specification with its numbers in it."""
    drawn = below_each_other([_drawn(sizes) for sizes in _sets(rows)])
    # applications have different series; a shared scale would have the names of all
    return drawn | {"resolve": {"scale": {"color": "independent", "shape": "independent"}}}


def write_picture(rows: pa.Table, form: str, out: str) -> None:
    """Write ``svg``, ``png`` or ``html`` to a file, or to standard output for ``-``."""
    facts = (
        "Medians over the runs of a size, relative to the smallest one; values above 1 are not cut.",
        f"Dashed: from {GOOD} on good, from {FAIR} fair, below poor.",
    )
    write_drawing(specification(rows), "How applications scale", facts, form, out)


def _sets(rows: pa.Table) -> list[_Set]:
    """The sizes of each application, of its main region where one is known."""
    sets: dict[tuple[str, str, str], _Set] = {}
    listed = rows.to_pylist()
    with_main = {(row["source"], row["application"]) for row in listed if row["main"]}
    for row in listed:
        if row["main"] or (row["source"], row["application"]) not in with_main:
            sets.setdefault((row["source"], row["application"], row["region"]), []).append(row)
    if not sets:
        raise UsageError("no runs to draw; list applications of TALP reports: esjobs show pop_scaling")
    if len(sets) > MOST:
        raise UsageError(
            f"{len(sets)} applications are too many for a picture; select some with --application"
        )
    return [sorted(sizes, key=lambda size: size["cpus"]) for sizes in sets.values()]


def _series(sizes: _Set) -> list[tuple[str, str, str, str]]:
    """Return the points of an application; efficiency of the speedup if instructions are unknown."""
    series = [each for each in _SERIES if any(size[each[0]] is not None for size in sizes)]
    columns = {column for column, *_ in series}
    return [each for each in series if each[0] != "speedup_efficiency" or "global_efficiency" not in columns]


def _title(sizes: _Set) -> str:
    last = sizes[-1]
    mode = {"single": "one size", "unknown": "without counters"}.get(last["mode"], f"{last['mode']} scaling")
    return f"{visible(last['application'])}, {visible(last['region'])}: {mode}"


def _drawn(sizes: _Set) -> dict[str, Any]:
    series = _series(sizes)
    data = [
        {"cpus": size["cpus"], "name": name, "value": size[column], "runs": size["n_runs"]}
        for column, name, _, _ in series
        for size in sizes
        if size[column] is not None
    ]
    names = [name for _, name, _, _ in series]
    value: dict[str, Any] = {"field": "value", "type": "quantitative", "title": "efficiency"}
    # the upper end is 1, or a little above what is more
    highest = max(1.0, *(float(row["value"]) for row in data))
    value["scale"] = {"domainMin": 0, "domainMax": 1.05 * highest, "nice": False}
    across: dict[str, Any] = {"field": "cpus", "type": "quantitative", "title": "CPUs"}
    # sizes grow by factors; a tick at each of them and nowhere else
    across |= {
        "scale": {"type": "log", "base": 2},
        "axis": {"values": [size["cpus"] for size in sizes], "format": "d"},
    }
    legend: dict[str, Any] = {"title": None, "symbolSize": 90, "orient": "bottom", "columns": 4}
    encoding = {
        "x": across,
        "y": value,
        "color": {
            "field": "name",
            "type": "nominal",
            "scale": {"domain": names, "range": [colour for *_, colour, _ in series]},
            "legend": legend,
        },
        "shape": {
            "field": "name",
            "type": "nominal",
            "scale": {"domain": names, "range": [shape for *_, shape in series]},
            "legend": legend,
        },
        "tooltip": [
            {"field": "name", "type": "nominal"},
            {"field": "cpus", "type": "quantitative"},
            {"field": "value", "type": "quantitative", "format": ".3f"},
            {"field": "runs", "type": "quantitative"},
        ],
    }
    limits = {"values": [{"limit": FAIR, "name": f"fair {FAIR}"}, {"limit": GOOD, "name": f"good {GOOD}"}]}
    place = {"field": "limit", "type": "quantitative"}
    return {
        "title": _title(sizes),
        "width": 640,
        "height": 320,
        "layer": [
            {
                "data": limits,
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#444444"},
                "encoding": {"y": place},
            },
            {
                "data": limits,
                "mark": {"type": "text", "align": "left", "dx": 4, "color": "#555555"},
                "encoding": {"y": place, "x": {"value": 640}, "text": {"field": "name", "type": "nominal"}},
            },
            {
                "data": {"values": data},
                "mark": {"type": "line"},
                "encoding": {name: encoding[name] for name in ("x", "y", "color")},
            },
            {
                "data": {"values": data},
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": encoding,
            },
        ],
    }
