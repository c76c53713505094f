"""Reasons why Vega-Lite draws a kind of chart, and not the server: what Lens and aggregations lack."""

from collections.abc import Mapping

from dashboards.spec import Kind

_ERRORS = "errors, intervals or bands"
_PLANE = "axes of two numbers, a line or a curve through them"
_ORDER = "an order by a difference or a ratio of sums"
_TEXT = "a sentence made of counts, times and texts"

REASONS: Mapping[Kind, str] = {
    **dict.fromkeys(("dots-with-errors", "siblings", "rates", "weighted", "trend", "days"), _ERRORS),
    **dict.fromkeys(("scatter-line", "scatter", "against-scores", "sizes", "of-jobs"), _PLANE),
    **dict.fromkeys(("busy", "pulls", "task-curves"), _PLANE),
    **dict.fromkeys(("shares", "waste", "ends"), _ORDER),
    **dict.fromkeys(("statement", "light", "as-of", "caption"), _TEXT),
    "ranked": "an order by magnitude",
    "matrix": "a colour and a number in a cell",
    "nights": "two marks of a cell, and a click that sets the time",
    "distribution": "sums over the numbers of a column as shares",
    "tenths": "sums over the numbers of two columns as areas",
    "worst": "dots on bars",
    "amounts": "hours of sums of seconds, with thousands",
    "beside": "rows that the filters of the page leave out",
}
"""By kind of chart; those that servers draw have none."""
