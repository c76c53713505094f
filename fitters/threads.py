"""How many threads the linear algebra takes.

NumPy and SciPy wheels carry an OpenBLAS each, with a thread per core. For matrices of a few hundred rows
that gains nothing, and where other work keeps a core busy the threads wait for each other: a fit of 331 000
buckets then took 3 to 6 s instead of 0.35 s (two cores, one busy).
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy

threaded_from = 1000
"""From so many rows on, threads are left as they are."""


@cache
def _switches() -> tuple[tuple[Any, Any], ...]:
    """Find getter and setter of each OpenBLAS that came with a wheel; none where another BLAS is used."""
    found = []
    for module in (np, scipy):
        package = Path(module.__file__ or "").parent
        folders = (package.parent / f"{package.name}.libs", package / ".dylibs")
        for path in sorted(path for folder in folders for path in folder.glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for suffix in ("64_", ""):
                getter = getattr(library, f"scipy_openblas_get_num_threads{suffix}", None)
                setter = getattr(library, f"scipy_openblas_set_num_threads{suffix}", None)
                if getter is not None and setter is not None:
                    found.append((getter, setter))
                    break
    return tuple(found)


@contextmanager
def modest_blas(rows: int, most: int | None = None) -> Iterator[None]:
    """Let OpenBLAS take one thread inside, for matrices of fewer than 1000 rows; restored at the end.

    Larger ones get `most` threads, or keep the setting if that is None.

    The setting belongs to the whole process; other threads that compute at the same time are slower, not
    wrong.

    >>> with modest_blas(100):
    ...     float(np.ones(3) @ np.ones(3))
    3.0
    """
    wanted = 1 if rows < threaded_from else most
    switches = _switches() if wanted is not None else ()
    before = [getter() for getter, _ in switches]
    for _, setter in switches:
        setter(wanted)
    try:
        yield
    finally:
        for (_, setter), number in zip(switches, before, strict=True):
            setter(number)
