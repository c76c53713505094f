"""Compilation by Numba; nothing else in the package imports it.

Only loops that NumPy cannot do in one pass are compiled (`layout.kernels`, `fit.kernels`), since every line
of them costs time to compile, some 2 s together, once per machine. One set of types throughout, so that each
is compiled once: codes int32, positions int64, everything else float64, contiguous and writeable; what is not
there is an array of length 0. Output comes from outside, zeroed where it is added to: allocating inside costs
compile time.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile a function at its first call and cache the code on disk."""
    try:
        return numba.njit(cache=True, error_model="numpy", nogil=True)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder to keep compiled code in: compile in every process instead
        return numba.njit(error_model="numpy", nogil=True)(function)  # type: ignore[no-any-return]
