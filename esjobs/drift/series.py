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
    mine = [row for row in rows if row["level"] == level]
    if not mine:
        return Search((), 0, 0, 0)
    days, day_codes = np.unique([row["day"].toordinal() for row in mine], return_inverse=True)
    names = sorted({row["name"] for row in mine})
    code_of = {name: at for at, name in enumerate(names)}
    cells = day_codes, np.array([code_of[row["name"]] for row in mine])
    k, stat, interaction = (
        np.array([row[column] for row in mine], np.float64) for column in ("k", "k_err_stat", "k_err_int")
    )
    value, white, lasting = (np.full((len(days), len(names)), np.nan) for _ in range(3))
    value[cells], white[cells], lasting[cells] = np.log(k), stat / k, interaction / k
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
