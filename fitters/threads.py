"""Linear algebra in one thread.

NumPy and SciPy wheels carry an OpenBLAS each, with a thread per core. For matrices of a few hundred rows
that gains nothing, and where other work keeps a core busy the threads wait for each other: a fit of 331 000
buckets then took 3 to 6 s instead of 0.35 s, and one Cholesky factorisation of 1000 rows 0.5 s instead of
0.02 s (two cores, both busy).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _blas() -> ThreadpoolController:
    # To find the BLAS libraries takes milliseconds, to switch them microseconds.
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run the linear algebra inside in one thread, of the whole process: others are slower, not wrong.

    >>> import numpy as np
    >>> with one_blas_thread():
    ...     float(np.ones(3) @ np.ones(3))
    3.0
    """
    with _blas().limit(limits=1):
        yield
