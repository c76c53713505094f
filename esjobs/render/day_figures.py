"""Figures of the judged days of a site: a number by day with the range that was expected."""

from collections.abc import Collection, Iterator, Sequence
from datetime import date

from dashboards.targets.html.profile import DayByDay, Dot, Tick
from esjobs.core.numbers import percent
from esjobs.core.text import visible
from esjobs.render.profile.days import Row, days_within
from esjobs.render.scale import round_values, spread
from esjobs.schema.today import EFFICIENCY, FAILED

_WIDTH, _HEIGHT, _LEFT = 860, 230, 66
_TITLES = ((EFFICIENCY, "CPU efficiency"), (FAILED, "Jobs that failed"))
_ABOUT = (
    "Band: expected by the site's own past; shaded: incident; hollow: few jobs; dotted: a declared value "
    "changed or an incident was acknowledged."
)


def day_figures(days: Sequence[Row], incidents: Sequence[Row]) -> Iterator[DayByDay]:
    """Yield a figure of efficiency and one of failures, of those with two days or more."""
    incident = days_within(incidents, days[-1]["day"]) if days else set()
    for metric, title in _TITLES:
        rows = [row for row in days if row["metric"] == metric and row["observed"] is not None]
        if len(rows) > 1:
            yield _figure(title, rows, incident)


def _figure(title: str, rows: Sequence[Row], incident: Collection[date]) -> DayByDay:
    ranged = [row for row in rows if row["low"] is not None and row["high"] is not None]
    values = [row["observed"] for row in rows]
    values += [row[name] for row in ranged for name in ("low", "high")]
    low, high = min(values), max(values)
    margin = 0.06 * (high - low or high or 1.0)
    low, high = max(0.0, low - margin), high + margin
    bottom = _HEIGHT - 24
    first, last = rows[0]["day"], rows[-1]["day"]
    step = (_WIDTH - _LEFT - 80) / ((last - first).days or 1)

    def x(day: date) -> float:
        return float(round(_LEFT + 20 + (day - first).days * step, 1))

    def y(value: float) -> float:
        return float(round(bottom - (value - low) / (high - low) * (bottom - 8), 1))

    def line(name: str) -> list[str]:
        return [f"{x(row['day'])},{y(row[name])}" for row in ranged]

    return DayByDay(
        title,
        _ABOUT,
        _WIDTH,
        _HEIGHT,
        _LEFT,
        bottom,
        [Tick(y(value), f"{100 * value:g} %") for value in round_values(low, high)],
        [Tick(x(day), str(day)) for day in spread([row["day"] for row in rows], 5)],
        [(round(x(row["day"]) - step / 2, 1), round(step, 1)) for row in rows if row["day"] in incident],
        _path([*line("low"), *reversed(line("high"))], closed=True),
        _path([f"{x(row['day'])},{y(row['expected'])}" for row in ranged if row["expected"] is not None]),
        _path([f"{x(row['day'])},{y(row['observed'])}" for row in rows]),
        [Dot(x(row["day"]), y(row["observed"]), _label(row), row["partial"] is True) for row in rows],
        [Tick(x(row["day"]), f"{row['day']}: {visible(row['mark'])}") for row in rows if row["mark"]],
    )


def _label(row: Row) -> str:
    said = f"{row['day']}: {percent(row['observed'])}"
    if row["low"] is None or row["high"] is None:
        return said
    return f"{said}, expected {percent(row['low'])} to {percent(row['high'])}"


def _path(points: Sequence[str], *, closed: bool = False) -> str:
    return f"M{'L'.join(points)}{'Z' * closed}" if points else ""
