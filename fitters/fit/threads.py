"""How many threads the linear algebra takes.

NumPy and SciPy wheels carry an OpenBLAS each, with a thread per core. For matrices of a few hundred rows
that gains nothing, and where other work keeps a core busy the threads wait for each other: a fit of 331 000
buckets then took 3 to 6 s instead of 0.35 s (two cores, one busy).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

THREADED_FROM = 1000
"""From so many rows on, threads are left as they are."""


@cache
def _blas() -> ThreadpoolController:
    """The loaded BLAS libraries; to look for them takes milliseconds, to switch them microseconds."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def modest_blas(rows: int, most: int | None = None) -> Iterator[None]:
    """Let the linear algebra take one thread inside, for matrices of fewer than 1000 rows.

    Larger ones get `most` threads, or keep the setting if that is None. It is restored at the end.

    The setting belongs to the whole process; other threads that compute at the same time are slower, not
    wrong.

    >>> import numpy as np
    >>> with modest_blas(100):
    ...     float(np.ones(3) @ np.ones(3))
    3.0
    """
    wanted = 1 if rows < THREADED_FROM else most
    if wanted is None:
        yield
        return
    with _blas().limit(limits=wanted):
        yield
