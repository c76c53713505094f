"""Kinds of arrays that all fits use, and sums over groups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Texts = NDArray[Any]
"""Labels or Python strings."""

EMPTY: Floats = np.empty(0)
"""Stands for a column that was not given."""


def texts(n: int, text: str = "") -> Texts:
    """Array of n Python strings."""
    column = np.empty(n, object)
    column[:] = text
    return column


def group_sums(code: NDArray[Any], column: Floats, n: int) -> Floats:
    """Sum of a column by group code, shape (n,).

    >>> group_sums(np.array([0, 2, 0]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [4.0, 0.0, 2.0]
    """
    return np.bincount(code, column, n).astype(np.float64, copy=False)
