"""Made-up measurements whose truth is known."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fitters import Buckets

Floats = NDArray[np.float64]
Objective = Literal["paper", "gamma"]
Weights = Literal["none", "jobs", "floor"]
Robust = Literal["none", "reject"]


@dataclass(frozen=True)
class Toy:
    """Columns of buckets, and what they were made from."""

    task: NDArray[np.int64]
    unit: NDArray[np.int64]
    value: Floats
    k: Floats
    A: Floats
    jobs: Floats | None = None
    rel_var: Floats | None = None

    def buckets(self) -> Buckets:
        return Buckets.from_columns(self.task, self.unit, self.value, jobs=self.jobs, rel_var=self.rel_var)

    @property
    def ln_k(self) -> Floats:
        """Truth in the scale sum k = n."""
        return np.asarray(np.log(self.k / self.k.mean()), np.float64)


def shape(
    rng: np.random.Generator, units: int, tasks: int, per_task: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw which units each task runs on: at least two, distinct."""
    sizes = np.clip(rng.poisson(per_task, tasks), 2, units)
    task = np.repeat(np.arange(tasks), sizes)
    unit = np.concatenate([rng.choice(units, size, replace=False) for size in sizes])
    return task, unit.astype(np.int64)


def make(
    rng: np.random.Generator,
    units: int = 30,
    tasks: int = 300,
    per_task: float = 8.0,
    *,
    spread: float = 0.3,
    sigma: float | Floats = 0.1,
    law: str = "gauss",
    layout: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> Toy:
    """Make values A / k with independent relative errors of size `sigma` (one, or one per bucket)."""
    task, unit = layout if layout is not None else shape(rng, units, tasks, per_task)
    k = np.exp(rng.normal(0, spread, units))
    level = np.exp(rng.normal(3, 1, tasks))
    if law == "gauss":
        error = np.maximum(1 + sigma * rng.normal(size=task.size), 0.02)
    else:
        error = rng.gamma(1 / np.square(sigma), np.square(sigma), task.size)
    return Toy(task, unit, level[task] / k[unit] * error, k, level)
