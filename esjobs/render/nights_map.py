"""Deviations of flagged queues by night, as a map of colours."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from dashboards.targets.html.profile import Cell, NightsMap
from esjobs.core.conditions import written
from esjobs.core.numbers import many, signed_percent
from esjobs.core.query import Days, In
from esjobs.core.text import visible
from esjobs.core.words import ALL_TYPES, DEVIATION_LIMIT, status_shown
from esjobs.publish.publication import read_table
from esjobs.schema.flags import FLAG_HISTORY, STANDING_OPEN
from esjobs.store.base import JobStore

NIGHTS = 30  # Nights of the map
MOST_ROWS = 25  # Queues of the map on a page
_STEPS = (-DEVIATION_LIMIT, -DEVIATION_LIMIT / 2, DEVIATION_LIMIT / 2, DEVIATION_LIMIT)
_COLUMNS = ("night", "name", "state", "deviation", "verdict", "confirmed", "compared_on")

Row = Mapping[str, Any]


def _flagged(rows: Sequence[Row]) -> dict[str, dict[date, Row]]:
    """Return the nights of names that were more than candidates in one of them."""
    flagged = {row["name"] for row in rows if row["state"] != "new"}
    by_name: dict[str, dict[date, Row]] = {}
    for row in rows:
        if row["name"] in flagged:
            by_name.setdefault(row["name"], {})[row["night"]] = row
    return by_name


def nights_map(store: JobStore, last: date, most: int = MOST_ROWS) -> NightsMap | None:
    """Return the map of queues that were ever flagged in the nights up to ``last``, the worst now first.

    ``most``: queues. None with fewer than two nights, or without a flag. Cost: flags of 30 nights.
    """
    where = [
        Days("night", last - timedelta(days=NIGHTS - 1), last),
        *(In("level", ("queue",)), In("processing_type", (ALL_TYPES,))),
    ]
    rows = read_table(store, FLAG_HISTORY, where, _COLUMNS).to_pylist()
    by_name = _flagged(rows)
    seen = sorted({row["night"] for row in rows})
    if len(seen) < 2 or not by_name:
        return None
    # nights that did not run have a column, too: a gap is seen as one
    days = [seen[0] + timedelta(days=number) for number in range((seen[-1] - seen[0]).days + 1)]
    names = sorted(by_name, key=lambda name: _rank(name, by_name[name].get(days[-1])))
    left_out = len(names) - most
    return NightsMap(
        f"Nights {days[0]} to {days[-1]}",
        f"{many(left_out, 'more queue')} not shown." if left_out > 0 else "",
        [f"{day:%d}" for day in days],
        [
            (
                visible(name),
                f"/queue/{quote(name, safe='')}",
                [_cell(name, day, by_name[name]) for day in days],
            )
            for name in names[:most]
        ],
    )


def _rank(name: str, row: Row | None) -> tuple[bool, float, str]:
    """Open flags by size, then the others."""
    if row is None:
        return True, 0.0, name
    return row["state"] not in STANDING_OPEN, -abs(row["deviation"] or 0.0), name


def _cell(name: str, day: date, rows: Mapping[date, Row]) -> Cell:
    row = rows.get(day)
    when = f"{visible(name)}, {day}"
    # a flag keeps its last deviation through nights without a verdict
    value = None if row is None or row["compared_on"] != day else row["deviation"]
    if row is None or value is None:
        return Cell("none", f"{when}: not compared", "")
    step = sum(value > limit for limit in _STEPS)
    marks = [f"step-{step}"]
    if status_shown(str(row["verdict"]), row["confirmed"]) == "candidate":
        marks.append("candidate")
    if row["state"] == "acknowledged":
        marks.append("acknowledged")
    said = ", ".join(each.replace("candidate", "not confirmed") for each in marks[1:])
    query = urlencode({"where": written("queue", "=", [name]), "window": str(day)})
    return Cell(
        " ".join(marks), f"{when}: {signed_percent(value)}{f', {said}' * bool(said)}", f"/jobs?{query}"
    )
