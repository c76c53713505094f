"""Days brought to one scale: factors of a day are known up to a common factor of that day."""

import numpy as np

from fitters.layout.arrays import Floats

_SWEEPS = 20


def align_days(values: Floats, errors: Floats) -> Floats:
    """Values in ln, each day shifted so that most names stay where they are.

    Weighted medians of days and of names in turn: a name that changes, or some, move nobody else. Where half
    of the weight moves together, the others seem to move: only ratios were measured.

    Parameters
    ----------
    values, errors
        Shape (n_days, n_names); NaN where a name has no value on a day. A day without any stays NaN.

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
    return aligned + (np.nanmean(values) - np.nanmean(aligned))


def _medians(values: Floats, weights: Floats) -> Floats:
    """Weighted median of each row; NaN for one without weight."""
    known = np.isfinite(values) & (weights > 0)
    value, weight = np.where(known, values, np.inf), np.where(known, weights, 0.0)
    order = np.argsort(value, axis=1, kind="stable")
    value = np.take_along_axis(value, order, axis=1)
    total = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
    half = total[:, -1:] / 2
    some = known.any(axis=1)
    last = np.maximum(known.sum(axis=1) - 1, 0)
    low, high = (np.minimum((total >= half * near).argmax(axis=1), last) for near in (1 - 1e-12, 1 + 1e-12))
    rows = np.arange(len(value))
    medians: Floats = np.where(some, (value[rows, low] + value[rows, high]) / 2, np.nan)
    return medians
