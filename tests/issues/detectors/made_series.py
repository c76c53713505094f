"""Series of jobs whose truth is known: periodic phases with noise and jitter, and what only looks like
them."""

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]

STEP_S = 30.0
_IO = 5e7


def periodic(
    rng: np.random.Generator,
    jobs: int,
    n: int,
    *,
    period: float = 10.0,
    duty: float = 0.3,
    noise: float = 0.05,
    jitter: float = 0.0,
    lag: int = 0,
    inverse: bool = True,
    cores: int = 16,
) -> tuple[Singles, Singles]:
    """Loads (jobs, cores, n) and I/O rates (jobs, 1, n) that take turns.

    ``period`` in samples; ``jitter``: standard deviation of each period, relative; ``noise``: of each core's
    load. Rates of I/O scatter by a part that differs between jobs (exponential, mean 0.2, at most 0.6).
    ``lag``: the load follows so many samples later.
    """
    number = int(n / period * 1.6) + 20
    lengths = np.maximum(period * (1 + jitter * rng.standard_normal((jobs, number))), 1.0)
    starts = np.cumsum(lengths, axis=1) - period * rng.uniform(1, 2, (jobs, 1))
    edges = np.zeros((jobs, n + 1), int)
    row = np.repeat(np.arange(jobs), number)
    np.add.at(edges, (row, np.clip(np.ceil(starts), 0, n).astype(int).ravel()), 1)
    np.add.at(edges, (row, np.clip(np.ceil(starts + duty * period), 0, n).astype(int).ravel()), -1)
    writing = np.cumsum(edges, axis=1)[:, :n] > 0
    waiting = np.roll(writing, lag, axis=1)
    level = np.where(waiting == inverse, 0.05, 0.9)
    load = level[:, None, :] + noise * rng.standard_normal((jobs, cores, n))
    scatter = np.minimum(rng.exponential(0.2, (jobs, 1)), 0.6)
    rates = np.where(writing, _IO * (1 + scatter * rng.standard_normal((jobs, n))), 0.0)
    return _singles(load, 1.0), _singles(rates[:, None, :])


def white(rng: np.random.Generator, jobs: int, n: int) -> tuple[Singles, Singles]:
    """Loads and rates that have nothing to do with each other, nor with their past."""
    return _singles(rng.random((jobs, 1, n))), _singles(_IO * rng.random((jobs, 1, n)))


def bursts(rng: np.random.Generator, jobs: int, n: int) -> tuple[Singles, Singles]:
    """I/O of one sample at random times, at which the cores wait."""
    writing = rng.random((jobs, 1, n)) < 0.1
    return _taking_turns(rng, writing)


def telegraph(rng: np.random.Generator, jobs: int, n: int) -> tuple[Singles, Singles]:
    """Phases of random length, 10 samples in the mean."""
    writing = np.cumsum(rng.random((jobs, 1, n)) < 0.1, axis=2) % 2 == 1
    return _taking_turns(rng, writing)


def step(rng: np.random.Generator, jobs: int, n: int) -> tuple[Singles, Singles]:
    """Work first, then I/O until the end."""
    writing = np.arange(n) >= rng.integers(n // 10, n - n // 10, (jobs, 1, 1))
    return _taking_turns(rng, writing)


def _taking_turns(rng: np.random.Generator, writing: NDArray[np.bool_]) -> tuple[Singles, Singles]:
    load = np.where(writing, 0.05, 0.9) + 0.0125 * rng.standard_normal(writing.shape)
    rates = np.where(writing, _IO * (1 + 0.2 * rng.standard_normal(writing.shape)), 0.0)
    return _singles(load, 1.0), _singles(rates)


def _singles(values: NDArray[np.float64], most: float = np.inf) -> Singles:
    return np.clip(values, 0.0, most).astype(np.float32)
