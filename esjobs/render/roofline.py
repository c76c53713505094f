"""Roofline of a job, laid out for the template: both axes logarithmic."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from dashboards.targets.html.job import Label, Line, RooflineDrawing
from esjobs.core.text import visible
from esjobs.issues.roofline import Roofline
from esjobs.issues.rules.hints import formatted
from esjobs.render.text.roofline import peak_labels, roofline_headline, roofline_notes

_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 478, 6, 280
# Operations per byte, powers of ten; lower and upper edge over the peak
_LOW, _HIGH, _LEAST, _MOST = -2, 3, 1e-3, 2.0
# Colours of points from the start of the job to its end
_AGES = 5
_SHAPES = (("●", "m-2,0a2,2 0 1 1 0,.1z"), ("■", "m-2,-2h4v4h-4z"), ("▲", "m0,-2.5l2.5,4.5h-5z"))


def roofline_drawing(roof: Roofline) -> RooflineDrawing:
    """Lay out a roofline; without any operations it has words only."""
    words = roofline_headline(roof), roofline_notes(roof)
    peak = roof.part.peak_flops_s or 0.0
    largest = float(np.fmax.reduce(roof.flops_s, axis=None, initial=peak))
    if not largest or roof.intensity is None:
        return RooflineDrawing(*words)
    axis = np.log10([_LEAST * (peak or largest), _MOST * largest])
    x, y = _at(roof.mean_flops_s, roof.mean_mem_bw_b_s, axis)
    job = Line("", "job", f"M{x:g},{y:g}m0,-6l6,6l-6,6l-6,-6z")
    grid, roofs = list(_grid(axis)), list(_roofs(roof, axis))
    lines = [*(line for line, _ in grid), *_points(roof, axis), *(line for line, _ in roofs), job]
    few = zip(_SHAPES, roof.nodes, strict=False) if 1 < len(roof.nodes) <= len(_SHAPES) else ()
    nodes = [f"{mark} {visible(node)}" for (mark, _), node in few]
    return RooflineDrawing(*words, lines, [label for _, label in (*grid, *roofs)], _AGES, nodes)


def _at(rate: Any, traffic: Any, axis: Any) -> Any:
    """Return positions, whole so that points of a steady job coincide; outside the axes on their edge."""
    # below the axis a point slides down its bandwidth
    rate = np.maximum(rate, 10 ** axis[0])
    x = np.clip((np.log10(rate / traffic) - _LOW) / (_HIGH - _LOW), 0, 1)
    y = np.clip((np.log10(rate) - axis[0]) / (axis[1] - axis[0]), 0, 1)
    return np.rint(_LEFT + (_RIGHT - _LEFT) * x), np.rint(_BOTTOM - (_BOTTOM - _TOP) * y)


def _grid(axis: Any) -> Iterator[tuple[Line, Label]]:
    for power in range(_LOW, _HIGH + 1):
        x, last = _LEFT + (_RIGHT - _LEFT) * (power - _LOW) / (_HIGH - _LOW), power == _HIGH
        text, anchor = f"{10.0**power:g}{' FLOP/B' * last}", "end" if last else "middle"
        yield Line("", "axis", f"M{x:g},{_TOP}V{_BOTTOM}"), (x, _BOTTOM + 13, text, anchor)
    for power in np.arange(np.ceil(axis[0]), axis[1]):
        y = _at(10**power, 1.0, axis)[1]
        label = _LEFT - 4, y + 3, formatted(float(10**power), "flops"), "end"
        yield Line("", "axis", f"M{_LEFT},{y:g}H{_RIGHT}"), label


def _roofs(roof: Roofline, axis: Any) -> Iterator[tuple[Line, Label]]:
    """Yield the sloped roof up to the peak and level ones from there, each with a label at its right end."""
    part, labels, slope = roof.part, peak_labels(roof), roof.part.peak_mem_bw_b_s
    if slope:
        rates = [10.0**_LOW * slope, min(part.peak_flops_s or 10 ** axis[1], 10.0**_HIGH * slope)]
        (left, right), (low, high) = _at(rates, slope, axis)
        path = f"M{left:g},{low:g}L{right:g},{high:g}"
        yield Line("", "roof", path), (right - 8, high + 4, labels[0], "end")
    level = (part.peak_flops_s, "roof", labels[1]), (part.peak_scalar_flops_s, "roof scalar", labels[2])
    for peak, style, label in level:
        if peak:
            x, y = _at(peak, slope or peak / 10.0**_LOW, axis)
            yield Line("", style, f"M{x:g},{y:g}H{_RIGHT}"), (_RIGHT, y - 4, label, "end")


def _points(roof: Roofline, axis: Any) -> Iterator[Line]:
    """Yield a line per colour, and one of ticks for points below the axis."""
    node, time = np.nonzero(np.isfinite(roof.flops_s))
    rate = roof.flops_s[node, time]
    age = np.where(rate < 10 ** axis[0], _AGES, time * _AGES // roof.flops_s.shape[1])
    shape = node * (len(roof.nodes) <= len(_SHAPES))
    positions = _at(rate, roof.mem_bw_b_s[node, time], axis)
    paths = [""] * (_AGES + 1)
    for kind, mark, x, y in np.unique(np.column_stack([age, shape, *positions]).astype(int), axis=0):
        paths[kind] += f"M{x},{y}{'v-6' if kind == _AGES else _SHAPES[mark][1]}"
    for kind, path in enumerate(paths):
        yield Line("", "rug" if kind == _AGES else f"time time-{kind}", path)
