"""Series of daily factors to changes: days brought to one scale, their noise measured, steps looked for."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

import fitters
from esjobs.drift.settings import DriftSettings
from esjobs.speed.task_sums import FloatArray
from fitters import Series, Step

LEAST_DAYS = 8
"""Days with a factor that a name needs to be looked at."""


@dataclass(frozen=True)
class Change:
    """A step of one name; ``n_days``: how many days of it were looked at."""

    level: str
    name: str
    step: Step
    n_days: int


@dataclass(frozen=True)
class Search:
    """What a search gave: the changes, how many names were looked at, how many had too few days.

    ``n_small``: sure changes that are too small to matter.
    """

    changes: tuple[Change, ...]
    n_names: int
    n_short: int
    n_small: int


def find_changes(rows: Iterable[Mapping[str, Any]], level: str, settings: DriftSettings) -> Search:
    """The changes in the daily factors of a level; ``rows``: those of ``daily_factors``, in any order."""
    mine = sorted((row for row in rows if row["level"] == level), key=lambda row: (row["day"], row["name"]))
    days = np.array(sorted({row["day"].toordinal() for row in mine}), np.int64)
    names = sorted({row["name"] for row in mine})
    if not len(days):
        return Search((), 0, 0, 0)
    place_of = {number: at for at, number in enumerate(days.tolist())}
    name_of = {name: at for at, name in enumerate(names)}
    value, white, lasting = (np.full((len(days), len(names)), np.nan) for _ in range(3))
    for row in mine:
        cell = place_of[row["day"].toordinal()], name_of[row["name"]]
        value[cell] = np.log(row["k"])
        white[cell], lasting[cell] = row["k_err_stat"] / row["k"], row["k_err_int"] / row["k"]
    aligned = fitters.align_days(value, np.hypot(white, lasting))
    noise = fitters.measure_noise(days, aligned, white, lasting)
    changes = []
    n_short = n_small = 0
    smallest = math.log1p(settings.smallest)
    for at, name in enumerate(names):
        series = _series(days, aligned[:, at], white[:, at], lasting[:, at])
        if len(series.day) < LEAST_DAYS:
            n_short += 1
            continue
        steps = fitters.find_steps(series, noise.memory, float(noise.scale[at]), settings.significance)
        large = [step for step in steps if abs(step.size) >= smallest]
        n_small += len(steps) - len(large)
        changes += [Change(level, name, step, len(series.day)) for step in large]
    return Search(tuple(changes), len(names) - n_short, n_short, n_small)


def _series(days: Any, value: FloatArray, white: FloatArray, lasting: FloatArray) -> Series:
    return Series(days, value, white, lasting).keep(np.isfinite(value) & np.isfinite(white))


def day_of(number: int) -> date:
    """The day behind a day number of a step."""
    return date.fromordinal(number)
