"""Made-up jobs whose fixed cost, kinds and speeds are known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sums:
    """Sums over the jobs of each (task, unit)."""

    task: Ints
    unit: Ints
    n_jobs: Floats
    events: Floats
    cpu_s: Floats
    events_sq: Floats
    cpu_s_sq: Floats
    events_cpu_s: Floats

    def columns(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class ToyJobs:
    """Columns of jobs, and the speeds of the units they were made with."""

    task: Ints
    unit: Ints
    events: Floats
    cpu_s: Floats
    k: Floats

    @property
    def ln_k(self) -> Floats:
        """Truth in the scale sum k = n."""
        return np.asarray(np.log(self.k / self.k.mean()))

    def sums(self) -> Sums:
        units = self.k.size
        keys, row = np.unique(self.task * units + self.unit, return_inverse=True)

        def total(column: Floats) -> Floats:
            return np.bincount(row, column, keys.size).astype(np.float64)

        n, c = self.events, self.cpu_s
        columns = (np.ones(n.size), n, c, n * n, c * c, n * c)
        return Sums(keys // units, keys % units, *(total(column) for column in columns))


def make_jobs(
    rng: np.random.Generator,
    units: int,
    tasks: int,
    per_bucket: int,
    rho: float | Floats,
    *,
    mean_events: float = 20.0,
    spread_events: float = 0.5,
    law: str = "log-normal",
    lengths: float = 2.0,
    sigma: float = 0.2,
    speeds: float = 0.3,
) -> ToyJobs:
    """Make jobs of CPU time A (n + rho) / k with a relative scatter `sigma`.

    Mean events per job rise from mean / lengths at the first unit to mean x lengths at the last; inside a
    unit they follow `law`: ``log-normal``, ``gamma`` or ``uniform`` (0.2 to 1.8 of the mean).
    """
    number = rng.integers(per_bucket // 2, per_bucket * 3 // 2 + 1, (tasks, units))
    task = np.repeat(np.arange(tasks), number.sum(axis=1))
    unit = np.repeat(np.tile(np.arange(units), tasks), number.ravel())
    mean = mean_events * lengths ** np.linspace(-1.0, 1.0, units)[unit]
    n = task.size
    if law == "log-normal":
        shape = np.exp(spread_events * rng.normal(size=n) - spread_events**2 / 2)
    elif law == "gamma":
        shape = rng.gamma(spread_events**-2, spread_events**2, n)
    else:
        shape = rng.uniform(0.2, 1.8, n)
    events = np.maximum(np.rint(mean * shape), 1.0)
    k = np.exp(rng.normal(0, speeds, units))
    level = np.exp(rng.normal(3, 1, tasks))
    fixed = np.broadcast_to(np.asarray(rho, np.float64), (tasks,))
    noise = np.exp(sigma * rng.normal(size=n) - sigma**2 / 2)
    return ToyJobs(task, unit, events, level[task] * (events + fixed[task]) / k[unit] * noise, k)
