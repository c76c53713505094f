"""Alignment of days: factors of one day share an unknown common scale."""

import numpy as np

from fitters.layout.arrays import Floats

_SWEEPS = 20


def align_days(values: Floats, errors: Floats) -> Floats:
    """Return the ln values, shape (n_days, n_names), with each day shifted so that most names keep theirs.

    Weighted medians of days and of names in turn: some changing names move no others. If half of the weight
    moves together, the others seem to move: only ratios were measured.

    >>> align_days(np.log([[1.0, 2.0, 4.0], [2.0, 4.0, 8.0]]), np.full((2, 3), 0.1)).round(6).tolist()[0]
    [0.346574, 1.039721, 1.732868]
    """
    aligned = values.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(np.isfinite(values), 1.0 / errors, 0.0)
    for _ in range(_SWEEPS):
        level = _medians(aligned.T, weights.T)
        shift = _medians(aligned - level, weights)
        aligned -= shift[:, None]
        if np.nanmax(np.abs(shift), initial=0.0) < 1e-9:
            break
    # alternating medians leave a common constant open: the mean of all values stays
    return aligned + (np.nanmean(values) - np.nanmean(aligned))


def _medians(values: Floats, weights: Floats) -> Floats:
    valid = np.isfinite(values) & (weights > 0)
    value, weight = np.where(valid, values, np.inf), np.where(valid, weights, 0.0)
    order = np.argsort(value, axis=1, kind="stable")
    value = np.take_along_axis(value, order, axis=1)
    total = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
    half = total[:, -1:] / 2
    some = valid.any(axis=1)
    last = np.maximum(valid.sum(axis=1) - 1, 0)
    # the middle of two values where exactly half of the weight lies on either side, but for round-off
    low, high = (np.minimum((total >= half * near).argmax(axis=1), last) for near in (1 - 1e-12, 1 + 1e-12))
    rows = np.arange(len(value))
    return np.where(some, (value[rows, low] + value[rows, high]) / 2, np.nan)
