"""Effects of contacts against names of the same ranks in earlier months, who were not contacted. Pure.

Who is picked for a bad score improves by chance, the more the worse, and programs change: no line through
others says by how much at the end of their range. Names that stood at the same ranks in earlier months
(placebos) went through the same.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from esjobs.core.arrays import Floats, Mask
from esjobs.provisioning.matching import Effect

LEAST, ENOUGH = 40, 75
"""Placebos without which there is no interval, and with which no further ranks are taken."""
EARLIER = 5
"""Months before a score whose mean predicts beside it."""
_CONFIDENCE = 0.96
_LEAST_OTHERS = 8  # Three go to the line


@dataclass(frozen=True)
class Scored:
    """Score of a name in a month, over so many jobs."""

    score: float
    n_jobs: int


Month = Mapping[str, Scored]


@dataclass(frozen=True)
class _Pair:
    """Names with scores in two months in a row and before: residuals from the line of those not ``apart``.

    ``units``: 1, and 1/jobs before + 1/jobs after.
    """

    names: list[str]
    residuals: Floats
    units: Floats
    apart: Mask


def placebo_effects(
    months: Sequence[Month], contacted: Collection[str], touched: Sequence[Collection[str]]
) -> dict[str, Effect]:
    """Return the effects on contacted names; none with fewer than 40 placebos.

    ``months``: oldest first, the last two before and after the contact. ``touched``: by month, names with
    a contact in it or the next one: they are neither placebos nor in lines. The score after follows from the
    one before and the mean of up to five earlier ones, by least squares over names at other ranks. The
    interval has 96 % of the placebos: their residuals in units of sqrt(a + b (1/jobs before + 1/jobs
    after)), a and b by least squares of squared residuals.
    """
    at = len(months) - 2
    order = _order(months[at]) if at > 0 else []
    ranks = {rank for rank, name in enumerate(order) if name in contacted}
    last = _pair(months, at, set(contacted), set(touched[at]) - set(contacted)) if ranks else None
    earlier = _placebos(months, ranks, touched) if last is not None else []
    residuals = np.concatenate([pair.residuals[pair.apart] for pair in earlier] or [np.empty(0)])
    if last is None or len(residuals) < LEAST:
        return {}
    units = np.concatenate([pair.units[pair.apart] for pair in earlier])
    squares = np.concatenate([pair.residuals**2 for pair in earlier])
    # a variance has no negative part, which least squares of few residuals would give
    a, b = nnls(np.vstack([pair.units for pair in earlier]), squares)[0]
    scaled = np.sort(residuals / _scale(units, a, b))
    n = len(scaled)
    # order statistics of n placebos and the name itself: the interval is exact for any distribution
    reach = max(1, math.floor((1 - _CONFIDENCE) / 2 * (n + 1)))
    low, middle, high = scaled[reach - 1], scaled.mean(), scaled[n - reach]
    found = {}
    for row in np.flatnonzero(last.apart).tolist():
        name, scale = last.names[row], float(_scale(last.units[row], a, b))
        before, after = months[-2][name].score, months[-1][name].score
        rest = float(last.residuals[row])
        effect = rest - scale * float(middle)
        found[name] = Effect(
            after - before,
            after - before - effect,
            effect,
            rest - scale * float(high),
            rest - scale * float(low),
            n,
            False,
            {"placebos": scale * float(scaled.std()) / math.sqrt(n)},
        )
    return found


def _placebos(
    months: Sequence[Month], ranks: Collection[int], touched: Sequence[Collection[str]]
) -> list[_Pair]:
    """Return the earlier months with the names at some ranks apart, and at neighbouring ones until enough."""
    pairs: list[_Pair] = []
    for width in range(max(map(len, months))):
        near = {rank + by for rank in ranks for by in range(-width, width + 1)}
        found = []
        for at in range(1, len(months) - 2):
            apart = {name for rank, name in enumerate(_order(months[at])) if rank in near}
            found.append(_pair(months, at, apart, touched[at]))
        # further ranks leave too few names for a line
        if pairs and None in found:
            break
        pairs = [pair for pair in found if pair is not None]
        if sum(int(pair.apart.sum()) for pair in pairs) >= ENOUGH:
            break
    return pairs


def _order(month: Month) -> list[str]:
    # ties by name: a rank must not hang on the order of rows
    return sorted(month, key=lambda name: (month[name].score, name))


def _scale(units: Floats, a: float, b: float) -> Floats:
    scale: Floats = np.sqrt(np.maximum(units @ np.array([a, b]), 1e-12))
    return scale


def _pair(
    months: Sequence[Month], at: int, apart: Collection[str], excluded: Collection[str]
) -> _Pair | None:
    """Return a month and the next one; names ``apart`` are listed, without making the line."""
    before, after, past = months[at], months[at + 1], months[max(0, at - EARLIER) : at]
    both = (
        (name, before[name], after[name]) for name in sorted(before.keys() & after.keys() - set(excluded))
    )
    rows = {
        name: (first.score, float(np.mean(scores)), second.score, 1 / first.n_jobs + 1 / second.n_jobs)
        for name, first, second in both
        if (scores := [month[name].score for month in past if name in month])
    }
    is_apart = np.array([name in apart for name in rows], bool)
    if (~is_apart).sum() < _LEAST_OTHERS:
        return None
    score, mean, y, spread = np.array(list(rows.values())).T
    one = np.ones(len(rows))
    design = np.column_stack([one, score, mean])
    # names apart do not bend the line that they are measured against
    solved = np.linalg.lstsq(design[~is_apart], y[~is_apart])[0]
    return _Pair(list(rows), y - design @ solved, np.column_stack([one, spread]), is_apart)
