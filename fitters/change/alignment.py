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
        level = np.array(
            [_median(column, weight) for column, weight in zip(aligned.T, weights.T, strict=True)]
        )
        shift = np.array([_median(row - level, weight) for row, weight in zip(aligned, weights, strict=True)])
        aligned -= shift[:, None]
        if np.nanmax(np.abs(shift), initial=0.0) < 1e-9:
            break
    return aligned + (np.nanmean(values) - np.nanmean(aligned))


def _median(values: Floats, weights: Floats) -> float:
    """Weighted median; NaN without weight."""
    known = np.isfinite(values) & (weights > 0)
    if not known.any():
        return float("nan")
    order = np.argsort(values[known], kind="stable")
    value, weight = values[known][order], weights[known][order]
    total = np.cumsum(weight)
    half = total[-1] / 2
    low, high = np.searchsorted(total, [half * (1 - 1e-12), half * (1 + 1e-12)])
    return float((value[low] + value[min(high, len(value) - 1)]) / 2)
