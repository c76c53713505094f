"""Made-up jobs whose start-up time, kinds and speeds are known."""

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


def sums_of(task: Ints, unit: Ints, n: Floats, c: Floats) -> Sums:
    """Sum jobs of n events and c seconds over each (task, unit)."""
    units = int(unit.max()) + 1
    keys, row = np.unique(task * units + unit, return_inverse=True)

    def total(column: Floats) -> Floats:
        return np.bincount(row, column, keys.size).astype(np.float64)

    columns = (np.ones(n.size), n, c, n * n, c * c, n * c)
    return Sums(keys // units, keys % units, *(total(column) for column in columns))


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
        return sums_of(self.task, self.unit, self.events, self.cpu_s)


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


SHAPES = ("normal", "skewed", "heavy tails", "two CPUs", "stuck jobs")


@dataclass(frozen=True)
class MixedJobs:
    """Columns of jobs of many tasks; `kind` is 1 for the second kind of work."""

    task: Ints
    unit: Ints
    kind: Ints
    events: Floats
    cpu_s: Floats

    def sums(self) -> dict[str, Any]:
        """Columns of sums over the jobs of each (task, unit)."""
        return sums_of(self.task, self.unit, self.events, self.cpu_s).columns()


def make_mixed(
    rng: np.random.Generator,
    tasks: int,
    units: int,
    jobs: int,
    share: float,
    ratio: float,
    *,
    shape: str = "normal",
    sigma: float = 0.2,
    rho: float = 20.0,
) -> MixedJobs:
    """Make tasks of `jobs` jobs in which a share takes `ratio` times less CPU time.

    Units differ in size by a factor of about five and in speed by 0.3; mean events per job by a factor of
    four, log-normal inside a unit. The scatter of ln CPU time has the given shape and about the width
    `sigma`: ``skewed`` is exponential, ``heavy tails`` is Student's t of 3 degrees, ``two CPUs`` differ by
    1.6x, ``stuck jobs`` are 1 % that take 3 to 30 times as long.
    """
    n = tasks * jobs
    task = np.repeat(np.arange(tasks), jobs)
    size = np.exp(rng.normal(0, 0.8, (tasks, units)))
    edges = np.cumsum(size, axis=1) / size.sum(axis=1, keepdims=True)
    unit = (rng.random(n)[:, None] > edges[task]).sum(axis=1)
    events = 20 * 2.0 ** np.linspace(-1, 1, units)[unit] * np.exp(rng.normal(-0.125, 0.5, n))
    events = np.maximum(np.rint(events), 1.0)
    normal = rng.normal(0, 1, n)
    if shape == "skewed":
        noise = sigma * (rng.exponential(1, n) - 1)
    elif shape == "heavy tails":
        noise = sigma * rng.standard_t(3, n) / 1.2
    elif shape == "two CPUs":
        slow = rng.random(n) < rng.random((tasks, units))[task, unit]
        noise = 0.5 * sigma * normal + np.log(1.6) * slow
    else:
        noise = sigma * normal
    if shape == "stuck jobs":
        noise += np.where(rng.random(n) < 0.01, np.log(rng.uniform(3, 30, n)), 0.0)
    kind = (rng.random(n) < share).astype(np.int64)
    speed = rng.normal(0, 0.3, (tasks, units))[task, unit]
    ln_cpu = np.log(events + rho) + noise + speed - np.log(ratio) * kind
    return MixedJobs(task, unit, kind, events, np.exp(ln_cpu))
