"""Changes in series of daily factors: days aligned, noise estimated, steps and slopes searched."""

import math
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fitters
from esjobs.flags.drift.settings import DriftSettings
from fitters import Series, Step
from fitters.layout.arrays import Floats

LEAST_DAYS = 8  # Days with a factor that a name needs to be looked at
_EPOCH = date(1970, 1, 1).toordinal()  # Arrow counts days from there


@dataclass(frozen=True)
class Change:
    """A step or slope of one name; ``n_days``: length of its series."""

    level: str
    name: str
    step: Step
    n_days: int


@dataclass(frozen=True)
class Search:
    """Changes, and the number of searched names.

    ``n_short``: names with too few days; ``n_small``: significant changes that may be too small to matter.
    """

    changes: tuple[Change, ...]
    n_names: int
    n_short: int
    n_small: int


def find_changes(rows: pa.Table, level: str, settings: DriftSettings) -> Search:
    """Return the changes in the daily factors of a level; ``rows``: of ``daily_factors``, in any order."""
    mine = rows.filter(pc.equal(rows["level"], level)).sort_by([("name", "ascending"), ("day", "ascending")])
    if not mine.num_rows:
        return Search((), 0, 0, 0)
    numbers = np.asarray(mine["day"].cast(pa.int32()), np.int64) + _EPOCH
    days, day_codes = np.unique(numbers, return_inverse=True)
    names, start, name_codes = np.unique(mine["name"].to_pylist(), return_index=True, return_inverse=True)
    cells = day_codes, name_codes
    k, stat, interaction = (
        np.asarray(mine[column], np.float64) for column in ("k", "k_err_stat", "k_err_int")
    )
    value, white, lasting = (np.full((len(days), len(names)), np.nan) for _ in range(3))
    # errors of ln k: ``white`` is new every day, ``lasting`` stays while the tasks do
    value[cells], white[cells], lasting[cells] = np.log(k), stat / k, interaction / k
    aligned = fitters.align_days(value, np.hypot(white, lasting))
    tasks, parts = _lists(mine["tasks"]), _lists(mine["task_parts"])
    changes = []
    n_short = n_small = 0
    smallest = math.log1p(settings.smallest)
    for at, name in enumerate(names.tolist()):
        valid = np.isfinite(aligned[:, at]) & np.isfinite(white[:, at])
        if valid.sum() < LEAST_DAYS:
            n_short += 1
            continue
        # the rows of a name are in the order of their days
        shown = [int(start[at]) + row for row in np.flatnonzero(valid[np.isfinite(value[:, at])]).tolist()]
        correlation = fitters.shared([tasks[row] for row in shown], [parts[row] for row in shown])
        series = Series(days[valid], aligned[valid, at], white[valid, at], lasting[valid, at], correlation)
        steps = _changes(series, settings.significance)
        large = [step for step in steps if step.exceeds(smallest)]
        n_small += len(steps) - len(large)
        changes += [Change(level, name, step, len(series.day)) for step in large]
    return Search(tuple(changes), len(names) - n_short, n_short, n_small)


def _changes(series: Series, significance: float) -> tuple[Step, ...]:
    # steps after the first day of a slope are the stairs that it looks like
    scale = series.scale
    steps = fitters.find_steps(series, scale, significance)
    slope = fitters.find_slope(series, scale, significance)
    if slope is None:
        return steps
    return (*(step for step in steps if step.day < slope.day_low), slope)


def _lists(column: pa.ChunkedArray) -> list[Floats]:
    lists = column.combine_chunks()
    values, ends = np.asarray(lists.values, np.float64), lists.offsets.to_pylist()
    return [values[begin:end] for begin, end in pairwise(ends)]


def day_of(number: int) -> date:
    """Return the day of a day number."""
    return date.fromordinal(number)
