"""Made-up grids on which the search for drift was not tuned: other tasks, other errors."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from esjobs.records.demo.grid import Grid
from esjobs.records.demo.tasks import Births

Floats = NDArray[np.float64]
Interaction = Callable[[np.random.Generator, np.random.Generator, date, Births], Floats]
"""From numbers of the day of birth, numbers of the grid, that day and its payloads: factors on CPU time."""


@dataclass(frozen=True)
class OtherGrid(Grid):
    """A grid where queues do something else to tasks."""

    interaction: Interaction | None = None

    def _births(self, day: date) -> Births:
        made = super()._births(day)
        if self.interaction is None:
            return made
        of_day = np.random.default_rng([self.seed, 90, day.toordinal()])
        of_grid = np.random.default_rng([self.seed, 91])
        return replace(made, interaction=self.interaction(of_day, of_grid, day, made))


def _wide(of_day: np.random.Generator, _: np.random.Generator, __: date, made: Births) -> Floats:
    return np.asarray(np.exp(of_day.normal(0.0, 0.10, made.weights.shape)))


def _heavy(of_day: np.random.Generator, _: np.random.Generator, __: date, made: Births) -> Floats:
    drawn = 0.075 * of_day.standard_t(3.0, made.weights.shape) / np.sqrt(3.0)
    return np.asarray(np.exp(drawn.clip(-1.0, 1.0)))


def _weekend(_: np.random.Generator, of_grid: np.random.Generator, day: date, made: Births) -> Floats:
    of_queue = of_grid.normal(0.0, 0.05, (2, made.weights.shape[1]))
    return np.asarray(made.interaction * np.exp(of_queue[int(day.weekday() >= 5)]))


def _types(_: np.random.Generator, of_grid: np.random.Generator, __: date, made: Births) -> Floats:
    of_queue = of_grid.normal(0.0, 0.05, (20, made.weights.shape[1]))
    return np.asarray(made.interaction * np.exp(of_queue[made.kind]))


GRIDS: dict[str, Callable[[int], Grid]] = {
    "demo": lambda seed: Grid(seed=seed),
    "10 % between queues and tasks, not 5 %": lambda seed: OtherGrid(seed=seed, interaction=_wide),
    "heavy tails (Student's t, 3 degrees of freedom)": lambda seed: OtherGrid(seed=seed, interaction=_heavy),
    "4 tasks a day, not 9": lambda seed: Grid(seed=seed, tasks_per_day=4),
    "other tasks at weekends, 5 %": lambda seed: OtherGrid(seed=seed, interaction=_weekend),
    "5 % between queues and types": lambda seed: OtherGrid(seed=seed, interaction=_types),
    "3,000 jobs a day, 40 queues": lambda seed: Grid(seed=seed, jobs_per_day=3_000, n_queues=40),
}
"""By what they are."""
