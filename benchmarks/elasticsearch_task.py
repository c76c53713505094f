"""What the ways of the benchmark of clusters work on, and how much of it. Imports nothing large."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """What one way works on.

    ``name``: an index, or the prefix of a store. ``rows``: of a day, or of all ``days`` for buckets that are
    only read. ``day``: counted from the first. ``servers``: the processes of the server.
    """

    url: str
    product: str
    name: str
    rows: int
    days: int = 1
    day: int = 0
    seed: int = 1
    servers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Sizes:
    """How much of what.

    ``jobs``: of the day that is aggregated. ``wide``: of one with a million buckets. ``bulk``: jobs that are
    written. ``night``: jobs of a day of the histories of ``long`` and ``short`` days. ``buckets``: that are
    read, of ``long`` days. ``quick``: a server that starts quickly and is slow afterwards.
    """

    jobs: int = 1_000_000
    wide: int = 2_000_000
    bulk: int = 300_000
    night: int = 50_000
    long: int = 60
    short: int = 2
    buckets: int = 500_000
    repeat: int = 3
    heap_mb: int = 2048
    quick: bool = False


SMOKE = Sizes(2000, 3000, 1000, 300, 4, 2, 800, repeat=1, heap_mb=512, quick=True)
"""Enough to see that everything runs."""
