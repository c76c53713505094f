"""Figures of the judged days of a site: a number by day with the range that was expected."""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date

from dashboards.targets.html.profile import DayByDay, Dot, Tick
from esjobs.core.numbers import amount, exact_percent, percent
from esjobs.core.text import visible
from esjobs.render.profile.days import Row, days_within
from esjobs.render.scale import heights, path, round_values, short_number, spread, widened
from esjobs.schema.today import EFFICIENCY, FAILED, THROUGHPUT

_WIDTH, _HEIGHT, _LEFT = 640, 200, 66
_TITLES = {EFFICIENCY: "CPU efficiency", FAILED: "Jobs that failed", THROUGHPUT: "Core-hours"}
_SHARES = (EFFICIENCY, FAILED)
Text = Callable[[float], str]


def day_figures(days: Sequence[Row], incidents: Sequence[Row]) -> Iterator[DayByDay]:
    """Yield a figure of each metric that has two days or more, in the order of people's questions."""
    incident = days_within(incidents, days[-1]["day"]) if days else set()
    for metric, title in _TITLES.items():
        rows = [row for row in days if row["metric"] == metric and row["observed"] is not None]
        if len(rows) > 1:
            yield _figure(title, rows, incident, percent if metric in _SHARES else amount)


def _axis(rows: Sequence[Row], ranged: Sequence[Row]) -> tuple[float, float]:
    values = [row["observed"] for row in rows]
    return widened(values + [row[name] for row in ranged for name in ("low", "high")], 0.06)


def _figure(title: str, rows: Sequence[Row], incident: Collection[date], text: Text) -> DayByDay:
    ranged = [row for row in rows if None not in (row["low"], row["high"])]
    low, high = _axis(rows, ranged)
    bottom = _HEIGHT - 24
    y = heights(low, high, bottom)
    shown = [row["day"] for row in rows]
    first, last = shown[0], shown[-1]
    # 80: dates are written around their day, and need room at both ends
    step = (_WIDTH - _LEFT - 80) / ((last - first).days or 1)
    on_axis = exact_percent if text is percent else short_number

    def x(day: date) -> float:
        return float(round(_LEFT + 20 + (day - first).days * step, 1))

    def line(name: str, of: Sequence[Row] = ranged) -> list[str]:
        return [f"{x(row['day'])},{y(row[name])}" for row in of if row[name] is not None]

    return DayByDay(
        title,
        _legend(rows, incident),
        _WIDTH,
        _HEIGHT,
        _LEFT,
        bottom,
        [Tick(y(value), on_axis(value)) for value in round_values(low, high)],
        [Tick(x(day), str(day)) for day in spread(shown, 4)],
        path(line("observed", rows)),
        [Dot(x(row["day"]), y(row["observed"]), _label(row, text), row["partial"] is True) for row in rows],
        [(round(x(day) - step / 2, 1), round(step, 1)) for day in shown if day in incident],
        path([*line("low"), *reversed(line("high"))], closed=True),
        path(line("expected")),
        [Tick(x(row["day"]), f"{row['day']}: {visible(row['mark'])}") for row in rows if row["mark"]],
    )


def _legend(rows: Sequence[Row], incident: Collection[date]) -> str:
    # of what occurs
    said = [
        ("Band: expected by the past.", True),
        ("Shaded: incident.", any(row["day"] in incident for row in rows)),
        ("Hollow: few jobs.", any(row["partial"] for row in rows)),
        (
            "Dotted: a declared value changed, or an incident was acknowledged.",
            any(row["mark"] for row in rows),
        ),
    ]
    return " ".join(text for text, occurs in said if occurs)


def _label(row: Row, text: Text) -> str:
    said = f"{row['day']}: {text(row['observed'])}"
    if row["low"] is None or row["high"] is None:
        return said
    return f"{said}, expected {text(row['low'])} to {text(row['high'])}"
