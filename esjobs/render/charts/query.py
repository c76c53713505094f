"""Pictures of answers to questions: in a terminal, as files, as a chart for a notebook.

One dimension is drawn as bars, one of time as a line, two as a heat map; each metric by itself. The total has
no mark; ``others`` are one of the bars, and in no heat map.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.core.text import visible
from esjobs.render.rows import cell_text
from esjobs.render.text.chart import bars, heat_map, line
from esjobs.store.files.destination import writing_binary, writing_text

if TYPE_CHECKING:
    from esjobs.records.jobs.query import Answer

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MOST_CELLS = 5000
_COLOUR = "#0072b2"
_NOTHING = "(none)"
_TIMES = ("day", "week", "month", "hour")


@dataclass(frozen=True)
class _Figure:
    """One metric of an answer: the cells of its dimensions as texts, and its numbers."""

    title: str
    dimensions: tuple[str, ...]
    kind: str
    cells: tuple[list[str], ...]
    values: np.ndarray[Any, np.dtype[np.float64]]


def text_picture(answer: "Answer", width: int) -> list[str]:
    """The lines of a picture for a terminal of some width."""
    lines: list[str] = []
    for figure in _figures(answer):
        low, high = _extremes(figure.values)
        lines += [*([""] if lines else []), figure.title]
        if figure.kind == "heat map":
            rows, columns, grid = _grid(figure)
            lines += heat_map(rows, columns, grid, low, high, width, _empty(answer))
        elif figure.kind == "line":
            lines += line(figure.cells[0], figure.values, low, high, width)
        else:
            texts = [cell_text(None if value != value else value) for value in figure.values.tolist()]  # noqa: PLR0124
            lines += bars(figure.cells[0], figure.values, texts, width)
    return lines


def _empty(answer: "Answer") -> str:
    """Return the meaning of an empty cell of a heat map."""
    if answer.question.top is not None:
        return "no jobs, or part of the others"
    return "no jobs, or too few" if answer.question.min_jobs else "no jobs"


def specification(answer: "Answer") -> dict[str, Any]:
    """The picture as a Vega-Lite specification with its numbers in it."""
    return below_each_other([_drawn(figure) for figure in _figures(answer)])


def below_each_other(views: list[dict[str, Any]]) -> dict[str, Any]:
    """Views as one specification."""
    return {
        "$schema": SCHEMA,
        "background": "white",
        "config": {"view": {"stroke": None}, "font": "sans-serif"},
        "vconcat": views,
    }


def write_picture(answer: "Answer", form: str, out: str) -> None:
    """Write ``svg``, ``png`` or ``html`` to a file, or to standard output for ``-``.

    HTML needs nothing else: no server, no network. SVG and PNG need the package vl-convert-python;
    :class:`UsageError` without it.
    """
    facts = [visible(text) for text in (answer.title, *answer.notes) if text]
    metrics, by = (", ".join(one.name for one in each) for each in (answer.metrics, answer.by))
    write_drawing(specification(answer), visible(f"{metrics} by {by}"), facts, form, out)


def write_drawing(drawn: dict[str, Any], heading: str, facts: Sequence[str], form: str, out: str) -> None:
    """Write a specification as ``svg``, ``png`` or ``html``; ``heading``, ``facts``: texts of the page.

    Raises :class:`UsageError` for what needs a package that is not installed.
    """
    if form == "html":
        from dashboards.targets.html.question import render_question

        with writing_text(out) as text:
            text.write(render_question(heading, facts, drawn))
        return
    try:
        import vl_convert
    except ImportError:
        raise UsageError(
            f"{form} requires the package vl-convert-python (pip install vl-convert-python); html does not, "
            "and --plot draws in the terminal"
        ) from None
    if form == "svg":
        with writing_text(out) as text:
            # no addresses: a picture fetches nothing
            text.write(vl_convert.vegalite_to_svg(drawn, allowed_base_urls=[]))
        return
    with writing_binary(out, form) as stream:
        stream.write(vl_convert.vegalite_to_png(drawn, scale=2, allowed_base_urls=[]))


def _extremes(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[str, str]:
    finite = values[~np.isnan(values)].tolist()
    return cell_text(min(finite, default=None)), cell_text(max(finite, default=None))


def _kind(answer: "Answer") -> str:
    if len(answer.by) == 2:
        return "heat map"
    return "line" if answer.by[0].calendar else "bars"


def _figures(answer: "Answer") -> list[_Figure]:
    """The figures of an answer, one a metric."""
    if not 1 <= len(answer.by) <= 2:
        raise UsageError(
            f"a picture requires one or two dimensions, but this answer has {len(answer.by)}; set them with "
            "--by, such as --by week,site"
        )
    rows = _drawable(answer.read, without=("total",) if len(answer.by) == 1 else ("total", "others"))
    if not rows.num_rows:
        raise UsageError("no groups to draw; request more groups")
    cells = tuple([_text(value) for value in rows.column(one.name).to_pylist()] for one in answer.by)
    kind = _kind(answer)
    names = tuple(dimension.name for dimension in answer.by)
    figures = []
    for one in answer.metrics:
        values = rows.column(one.name).cast(pa.float64()).to_numpy(zero_copy_only=False)
        title = f"{one.name} [{one.unit}]" if one.unit else one.name
        figures.append(_Figure(visible(f"{title} by {', '.join(names)}"), names, kind, cells, values))
    return figures


def _drawable(table: pa.Table, without: Sequence[str]) -> pa.Table:
    """The rows that have a place in a picture."""
    if "row" not in table.column_names:
        return table
    kinds = table.column("row").to_pylist()
    return table.take([place for place, kind in enumerate(kinds) if kind not in without])


def _text(value: object) -> str:
    if isinstance(value, date | datetime):
        return value.isoformat()
    return _NOTHING if value is None else visible(str(value))


def _grid(figure: _Figure) -> tuple[list[str], list[str], np.ndarray[Any, np.dtype[np.float64]]]:
    """Rows, columns and values of a heat map; time, if there is any, runs to the right."""
    first, second = figure.cells
    if figure.dimensions[0] in _TIMES and figure.dimensions[1] not in _TIMES:
        first, second = second, first
    # rows stay in the order of the answer, in which the question put them
    rows, columns = list(dict.fromkeys(first)), sorted(dict.fromkeys(second))
    # hours of the day: 10 comes after 9
    if all(name.isdecimal() for name in columns):
        columns.sort(key=int)
    if len(rows) * len(columns) > MOST_CELLS:
        raise UsageError(
            f"{len(rows)} x {len(columns)} cells are too many for a picture; reduce them with --top or "
            "--where"
        )
    grid = np.full((len(rows), len(columns)), np.nan)
    row_of, column_of = ({name: place for place, name in enumerate(names)} for names in (rows, columns))
    for row, column, value in zip(first, second, figure.values, strict=True):
        grid[row_of[row], column_of[column]] = value
    return rows, columns, grid


def _drawn(figure: _Figure) -> dict[str, Any]:
    """A figure as a view of Vega-Lite; texts are data, never names of fields."""
    value = {"field": "value", "type": "quantitative", "title": figure.title.split(" by ", maxsplit=1)[0]}
    # only NaN differs from itself, and JSON has none
    values = [None if number != number else float(number) for number in figure.values.tolist()]  # noqa: PLR0124
    if figure.kind == "heat map":
        rows, columns, grid = _grid(figure)
        data = [
            {"y": row, "x": column, "value": None if cell != cell else float(cell)}  # noqa: PLR0124
            for row, of_row in zip(rows, grid.tolist(), strict=True)
            for column, cell in zip(columns, of_row, strict=True)
        ]
        is_time = figure.dimensions[0] in _TIMES
        across, down = figure.dimensions if is_time else reversed(figure.dimensions)
        encoding = {
            "x": {"field": "x", "type": "ordinal", "sort": columns, "title": across},
            "y": {"field": "y", "type": "nominal", "sort": rows, "title": down},
            "color": {**value, "scale": {"scheme": "blues"}},
        }
        return _view(figure, data, "rect", encoding)
    names = figure.cells[0]
    data = [{"x": name, "value": number} for name, number in zip(names, values, strict=True)]
    axis = {"field": "x", "type": "ordinal", "sort": names, "title": figure.dimensions[0]}
    if figure.kind == "line":
        mark: Any = {"type": "line", "point": True, "color": _COLOUR}
        return _view(figure, data, mark, {"x": axis, "y": {**value, "scale": {"zero": False}}})
    return _view(figure, data, {"type": "bar", "color": _COLOUR}, {"y": axis, "x": value})


def _view(
    figure: _Figure, data: Sequence[dict[str, Any]], mark: Any, encoding: dict[str, Any]
) -> dict[str, Any]:
    named = [name for name in ("x", "y") if encoding[name]["field"] == name]
    tooltip = [{"field": name, "type": encoding[name]["type"]} for name in named]
    tooltip.append({"field": "value", "type": "quantitative"})
    return {
        "title": figure.title,
        "width": 480 if figure.kind == "bars" else 640,
        "data": {"values": list(data)},
        "mark": mark,
        "encoding": {**encoding, "tooltip": tooltip},
    }
