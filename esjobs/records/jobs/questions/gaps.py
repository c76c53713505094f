"""Periods and bins in which no job lies: rows where they are the only dimension, else a note."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from esjobs.core.keys import Bins, TimePart
from esjobs.core.query import Moment
from esjobs.core.window import Window
from esjobs.records.jobs.questions.asking import Groups
from esjobs.records.jobs.questions.dimensions import Dimension
from esjobs.records.jobs.questions.formulas import Floats, Part

MOST_ROWS = 10_000
"""A job with a wrong year would make a row of every day since."""

_MONTHS = 12


def filled(groups: Groups, dimension: Dimension) -> Groups:
    """The groups, and those between them that have no job: periods, hours of the day, bins.

    Of no jobs sums and numbers are 0; what else there is of jobs is not known. More than 10 000 rows are not
    added, and other dimensions are left as they are.
    """
    there = {_number(dimension, place) for place in groups.keys[dimension.name] if place is not None}
    if not there or None in there:
        return groups
    numbers = [number for number in there if number is not None]
    match dimension.made:
        case Bins(edges=edges):
            between = range(1, len(edges))
        case TimePart(part="hour"):
            between = range(24)
        case _:
            between = range(min(numbers), max(numbers))
    if len(between) > MOST_ROWS:
        return groups
    missing = [_place(dimension, number) for number in between if number not in there]
    return replace(
        groups,
        keys={dimension.name: [*groups.keys[dimension.name], *missing]},
        parts={
            part: np.append(values, _of_none(part, len(missing))) for part, values in groups.parts.items()
        },
    )


def gaps(groups: Groups, by: Sequence[Dimension], window: Window | None) -> Iterator[str]:
    """How many periods of the window, or between the first and the last job, have no row; a sentence each."""
    for dimension in by:
        numbers = {_number(dimension, place) for place in groups.keys[dimension.name] if place is not None}
        known = [number for number in numbers if number is not None]
        if not dimension.calendar or not known:
            continue
        days = (None, None) if window is None else (window.first_day, window.last_day)
        first, last = (None if day is None else _number(dimension, day) for day in days)
        first, last = min(known) if first is None else first, max(known) if last is None else last
        missing = last - first + 1 - len(known)
        if missing > 0:
            what, have = (dimension.name, "has") if missing == 1 else (f"{dimension.name}s", "have")
            where = "between the first job and the last" if window is None else f"of {window}"
            yield f"{missing:,} {what} {where} {have} no jobs, and no rows"


def _of_none(part: Part, number: int) -> Floats:
    return np.full(number, 0.0 if isinstance(part, Moment) else np.nan, np.float64)


def _number(dimension: Dimension, place: date | int) -> int | None:
    """Which of its kind a period or a bin is, so that the next one has the next number; None for others."""
    if isinstance(place, int):
        return place if isinstance(dimension.made, TimePart | Bins) else None
    if type(place) is not date:
        return None
    part = dimension.made.part if isinstance(dimension.made, TimePart) else "day"
    if part == "month":
        return place.year * _MONTHS + place.month - 1
    # the first day that there is was a Monday
    return (place.toordinal() - 1) // 7 if part == "week" else place.toordinal()


def _place(dimension: Dimension, number: int) -> date | int:
    """The period, by its first day, or the bin of a number."""
    if isinstance(dimension.made, Bins) or (
        isinstance(dimension.made, TimePart) and dimension.made.part == "hour"
    ):
        return number
    part = dimension.made.part if isinstance(dimension.made, TimePart) else "day"
    if part == "month":
        return date(number // _MONTHS, number % _MONTHS + 1, 1)
    return date.fromordinal(number * 7 + 1 if part == "week" else number)
