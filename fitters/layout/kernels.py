"""Compiled loops: counts and sorts by code, union of units into components."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.compiled import compiled


def _own(column: NDArray[Any]) -> NDArray[Any]:
    # Contiguous and writeable, the one kind of array the kernels are compiled for; seldom a copy.
    return np.require(column, requirements=["C", "W"])


@compiled
def _count(codes: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    for i in range(codes.size):
        if codes[i] >= 0:
            counts[codes[i]] += 1


def count(codes: NDArray[np.int32], n_codes: int) -> NDArray[np.int64]:
    """Return the number of occurrences of each code 0 .. n_codes - 1; negative codes are missing.

    >>> count(np.array([2, 0, 2, -1], np.int32), 3).tolist()
    [1, 0, 2]
    """
    counts = np.zeros(n_codes, np.int64)
    _count(_own(codes), counts)
    return counts


@compiled
def _gather(column: NDArray[np.float64], order: NDArray[np.int32], gathered: NDArray[np.float64]) -> None:
    for i in range(order.size):
        gathered[i] = column[order[i]]


def gather(column: NDArray[np.float64], order: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return ``column[order]``; NumPy would first widen the order to 8 bytes an element."""
    gathered = np.empty(order.size)
    _gather(_own(column), order, gathered)
    return gathered


@compiled
def _scatter(
    task: NDArray[np.int32],
    unit: NDArray[np.int32],
    keep: NDArray[np.bool_],
    starts: NDArray[np.int64],
    keys: NDArray[np.int64],
) -> None:
    for row in range(task.size):
        if keep.size == 0 or keep[row]:
            place = starts[task[row]]
            keys[place] = np.int64(unit[row]) << 32 | row
            starts[task[row]] = place + 1


@compiled
def _sort_inside(
    ptr: NDArray[np.int64],
    all_keys: NDArray[np.int64],
    order: NDArray[np.int32],
    sorted_unit: NDArray[np.int32],
) -> int:
    repeated = 0
    for t in range(ptr.size - 1):
        low = ptr[t]
        keys = all_keys[low : ptr[t + 1]]
        if keys.size <= 64:  # counting what is smaller: more comparisons than a sort, but no branches
            for i in range(keys.size):
                key = keys[i]
                place = low
                for j in range(keys.size):
                    place += keys[j] < key
                sorted_unit[place] = key >> 32
                order[place] = key & 0x7FFFFFFF
        else:  # Shell's sort with Knuth's steps
            step = 1
            while step < keys.size // 9:
                step = 3 * step + 1
            while step > 0:
                for i in range(step, keys.size):
                    key = keys[i]
                    j = i
                    while j >= step and keys[j - step] > key:
                        keys[j] = keys[j - step]
                        j -= step
                    keys[j] = key
                step //= 3
            for i in range(keys.size):
                sorted_unit[low + i] = keys[i] >> 32
                order[low + i] = keys[i] & 0x7FFFFFFF
        for i in range(low + 1, ptr[t + 1]):
            repeated += sorted_unit[i] == sorted_unit[i - 1]
    return repeated


def sort_rows(
    task: NDArray[np.int32],
    unit: NDArray[np.int32],
    sizes: NDArray[np.int64],
    keep: NDArray[np.bool_] | None = None,
    order_of_tasks: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], int]:
    """Sort rows by task, inside a task by unit, rows of one unit as they were.

    `sizes` are the numbers of (kept) rows of the tasks, `order_of_tasks` which comes first, second and so on
    (None: as they are numbered). Returns the order, the units in it, where tasks start, and how many rows
    have the task and unit of the row before. One counting sort by task, and a sort inside each.
    """
    ordered = sizes if order_of_tasks is None else sizes[order_of_tasks]
    ptr = np.concatenate([[0], np.cumsum(ordered)])
    starts = ptr[:-1].copy()
    if order_of_tasks is not None:
        starts[order_of_tasks] = ptr[:-1]
    keys = np.empty(int(ptr[-1]), np.int64)
    _scatter(_own(task), _own(unit), np.empty(0, np.bool_) if keep is None else keep, starts, keys)
    order, sorted_unit = np.empty(keys.size, np.int32), np.empty(keys.size, np.int32)
    repeated = _sort_inside(ptr, keys, order, sorted_unit)
    return order, sorted_unit, ptr, int(repeated)


@compiled
def _unite(ptr: NDArray[np.int64], unit: NDArray[np.int32], root: NDArray[np.int32]) -> None:
    pieces = root.size
    for t in range(ptr.size - 1):
        if pieces == 1:
            break
        first = unit[ptr[t]]
        while root[first] != first:
            root[first] = root[root[first]]
            first = root[first]
        for j in range(ptr[t] + 1, ptr[t + 1]):
            other = unit[j]
            while root[other] != other:
                root[other] = root[root[other]]
                other = root[other]
            pieces -= other != first
            if other < first:
                root[first] = other
                first = other
            else:
                root[other] = first
    for u in range(root.size):
        root[u] = root[root[u]]  # roots are smaller than what hangs on them, so theirs are final


def unit_roots(ptr: NDArray[np.int64], unit: NDArray[np.int32], n_units: int) -> NDArray[np.int32]:
    """Return for each unit the smallest unit of its connected component (union-find with path halving).

    Ends as soon as all units are connected.
    """
    root = np.arange(n_units, dtype=np.int32)
    _unite(ptr, unit, root)
    return root
