"""Sorting rows by code and joining units into components, compiled."""

import numpy as np
from numpy.typing import NDArray

from fitters.compiled import compiled


@compiled
def _count_sort(
    codes: NDArray[np.int32],
    order: NDArray[np.int32],
    start: NDArray[np.int64],
    next_row: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    for i in range(order.size):
        start[codes[order[i]] + 1] += 1
    for code in range(next_row.size):
        start[code + 1] += start[code]
        next_row[code] = start[code]
    for i in range(order.size):
        code = codes[order[i]]
        out[next_row[code]] = order[i]
        next_row[code] += 1


def stable_order(
    codes: NDArray[np.int32], order: NDArray[np.int32], n_codes: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Sort the rows `order` by code, equal codes as they were (counting sort); and where codes start."""
    start = np.zeros(n_codes + 1, np.int64)
    out = np.empty_like(order)
    _count_sort(codes, order, start, np.empty(n_codes, np.int64), out)
    return out, start


@compiled
def _unite(ptr: NDArray[np.int64], unit: NDArray[np.int32], root: NDArray[np.int32]) -> None:
    for t in range(ptr.size - 1):
        first = unit[ptr[t]]
        while root[first] != first:
            root[first] = root[root[first]]
            first = root[first]
        for j in range(ptr[t] + 1, ptr[t + 1]):
            other = unit[j]
            while root[other] != other:
                root[other] = root[root[other]]
                other = root[other]
            if other < first:
                root[first] = other
                first = other
            else:
                root[other] = first
    for u in range(root.size):
        root[u] = root[root[u]]  # roots are smaller than what hangs on them, so theirs are final


def unit_roots(ptr: NDArray[np.int64], unit: NDArray[np.int32], n_units: int) -> NDArray[np.int32]:
    """Return for each unit the smallest unit of its connected component (union-find with path halving)."""
    root = np.arange(n_units, dtype=np.int32)
    _unite(ptr, unit, root)
    return root
