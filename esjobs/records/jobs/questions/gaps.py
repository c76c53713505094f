"""Periods and bins in which no job lies: rows where they are the only dimension, else a note."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa

from esjobs.core.keys import Bins, TimePart
from esjobs.core.query import Moment
from esjobs.core.window import Window
from esjobs.records.jobs.questions.asking import Groups
from esjobs.records.jobs.questions.dimensions import Dimension

MOST_ROWS = 10_000
"""A job with a wrong year would make a row of every day since."""

_MONTHS = 12


def filled(groups: Groups, dimension: Dimension) -> Groups:
    """Return the groups, and those between them without jobs: periods, hours of the day, bins.

    Of no jobs sums and numbers are 0, other parts unknown. At most 10 000 rows are added.
    """
    present = _numbers(groups, dimension)
    if not present:
        return groups
    match dimension.made:
        case Bins(edges=edges):
            between = range(1, len(edges))
        case TimePart(part="hour"):
            between = range(24)
        case _:
            between = range(min(present), max(present))
    if len(between) > MOST_ROWS:
        return groups
    missing = [_period(dimension, number) for number in between if number not in present]
    stored = groups.keys[dimension.name]
    keys = {dimension.name: pa.chunked_array([*stored.chunks, pa.array(missing, stored.type)])}
    parts = {
        part: np.append(values, [0.0 if isinstance(part, Moment) else np.nan] * len(missing))
        for part, values in groups.parts.items()
    }
    return replace(groups, keys=keys, parts=parts)


def gaps(groups: Groups, by: Sequence[Dimension], window: Window | None) -> Iterator[str]:
    """Yield one sentence per dimension with periods that have no row."""
    for dimension in by:
        numbers = _numbers(groups, dimension) if dimension.calendar else set()
        if not numbers:
            continue
        first, last = min(numbers), max(numbers)
        if window is not None:
            first = _number(dimension, window.first_day)
            last = _number(dimension, window.last_day)
        missing = last - first + 1 - len(numbers)
        if missing > 0:
            what, have = (dimension.name, "has") if missing == 1 else (f"{dimension.name}s", "have")
            where = "between the first job and the last" if window is None else f"of {window}"
            yield f"{missing:,} {what} {where} {have} no jobs and no rows"


def _numbers(groups: Groups, dimension: Dimension) -> set[int]:
    # empty where some period or bin has no next one
    periods = groups.keys[dimension.name].drop_null().unique().to_pylist()
    if not all(_counts(dimension, period) for period in periods):
        return set()
    return {_number(dimension, period) for period in periods}


def _counts(dimension: Dimension, period: date | int) -> bool:
    if isinstance(period, int):
        return isinstance(dimension.made, TimePart | Bins)
    return type(period) is date


def _number(dimension: Dimension, period: date | int) -> int:
    # consecutive periods and bins have consecutive numbers
    if isinstance(period, int):
        return period
    part = _part(dimension)
    if part == "month":
        return period.year * _MONTHS + period.month - 1
    # the first day that there is was a Monday
    return (period.toordinal() - 1) // 7 if part == "week" else period.toordinal()


def _period(dimension: Dimension, number: int) -> date | int:
    part = _part(dimension)
    if isinstance(dimension.made, Bins) or part == "hour":
        return number
    if part == "month":
        return date(number // _MONTHS, number % _MONTHS + 1, 1)
    return date.fromordinal(number * 7 + 1 if part == "week" else number)


def _part(dimension: Dimension) -> str:
    return dimension.made.part if isinstance(dimension.made, TimePart) else "day"
