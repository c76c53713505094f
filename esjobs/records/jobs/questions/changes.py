"""Change of a number between two windows, and its error for jobs that are alike.

Jobs of one task are alike, and so are those at one queue. Errors that take them for independent make a z of
efficiency by user or type 5 to 12 times too large. A number R = sum y / sum x changes by D = R_b - R_a, and
a cell (task x queue) has the score u = (y_b - R_b x_b) / X_b - (y_a - R_a x_a) / X_a. The variance is

    V = V_task + V_queue - V_pair,    V_c = G / (G - 1) sum over clusters of (sum of u)^2

at least V_task and V_queue (A. C. Cameron, J. B. Gelbach, D. L. Miller, J. Bus. Econ. Stat. 29 (2011) 238).
Clusters run across both windows: what a queue does to both cancels. Days have levels that all jobs share: V
of a ratio is at least 2 / (n - 2) sum of r^2 over the n days of both windows, r = sqrt(share of the day)
(ratio of the day - median of its window), cut at 2.5 x 1.48 MAD: three bad days are a change and no scatter.
D / sqrt(V) is taken for Student's t with G_eff - 1 degrees of freedom, G_eff = (sum p)^2 / sum p^2 of the
clusters' shares p (a simple form of A. V. Carter, K. T. Schnepel, D. G. Steigerwald, Rev. Econ. Stat. 99
(2017) 698), and z is the normal value of the same probability. A sum has the scores y_b - y_a.

D is also taken apart (E. M. Kitagawa, J. Am. Stat. Assoc. 50 (1955) 1168): cells of both windows with mean
shares w and ratios r give within = sum w (r_b - r_a) and mix = sum r (w_b - w_a); the rest comes from
cells that only one window has. With strata (kinds of work) these take the place of the cells: they are
fixed, and the tasks in them are a sample, so that mix has an error as well.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from esjobs.core.arrays import Floats

LEAST_CLUSTERS = 5.0
"""Effective clusters below which a change has no error."""
LEAST_WITHIN = 10.0
"""The same of the part within cells, which hangs on fewer of them."""
_ROUNDING = 1e-12
# Days of a window that have a scatter
_LEAST_DAYS = 4
# Standard deviations at which rests are cut, in median absolute deviations
_LARGEST_REST = 2.5 * 1.4826

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Terms:
    """Sums of cells before and after: ``over`` y and ``under`` x, arrays of shape (2, n); after is second.

    ``group``: number of the group of a row. ``cell``: code of its task and queue. ``clusters``: codes of the
    clusters of similar jobs, such as tasks and queues. ``stratum``: code of the kind of work of a cell; None:
    cells are compared with themselves.
    """

    group: Codes
    cell: Codes
    clusters: tuple[Codes, ...]
    over: Floats
    under: Floats
    stratum: Codes | None = None


@dataclass(frozen=True)
class Change:
    """Change by group, NaN where it is not known. ``few``: groups with too few clusters for an error."""

    z: Floats
    within: Floats
    within_z: Floats
    mix: Floats
    turnover: Floats
    few: npt.NDArray[np.bool_]
    mix_z: Floats | None = None


def change_of_ratio(
    cells: Terms, number: int, *, counted: bool = False, share: bool = False, days: Terms | None = None
) -> Change:
    """Return the change of a ratio of sums in each of ``number`` groups, and its parts.

    ``counted``: jobs over jobs, such as failed ones. Where a window has none of them its cells do not
    scatter: the error is at least that of two shares of independent jobs. ``share``: the upper sums are parts
    of the lower ones, and their clusters count. ``days``: the same sums by day.
    """
    cells = _merged(cells)
    group = cells.group
    total_over, total_under = (_by_group(values, group, number) for values in (cells.over, cells.under))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(total_under > 0, total_over / total_under, np.nan)
        parts = cells.under / total_under[:, group]
        scores = cells.over / total_under[:, group] - ratio[:, group] * parts
        pooled = total_over.sum(axis=0) / total_under.sum(axis=0)
        # binomial variance of a difference of shares: p (1 - p) (1 / n_a + 1 / n_b)
        least = pooled * (1.0 - pooled) * (1.0 / total_under).sum(axis=0) if counted else np.zeros(number)
    if days is not None:
        least = np.maximum(least, _of_days(days, number))
    change, size = ratio[1] - ratio[0], np.abs(ratio).max(axis=0)
    shares = parts.sum(axis=0) / 2
    if share:
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.nan_to_num(cells.over.sum(axis=0) / total_over.sum(axis=0)[group])
    z, effective = _judged(change, size, scores[1] - scores[0], shares, cells, number, least=least)
    few = np.isfinite(change) & ~(effective >= LEAST_CLUSTERS)
    mix_z = None
    if cells.stratum is None:
        within, within_z, mix = _parts(cells, number)
    else:
        within, within_z, mix, mix_z = _parts_of_strata(cells, cells.stratum, number)
    with np.errstate(invalid="ignore"):
        turnover = change - np.nan_to_num(within) - np.nan_to_num(mix)
        # parts that add up differ in their last digits
        turnover[np.abs(turnover) <= _ROUNDING * (np.abs(within) + np.abs(mix))] = 0.0
    return Change(np.where(few, np.nan, z), within, within_z, mix, turnover, few, mix_z)


def _of_days(days: Terms, number: int) -> Floats:
    """Return the variance of a change by the scatter of days; 0 with fewer than four in a window."""
    rests, groups, n_days = [], [], []
    for over, under in zip(days.over, days.under, strict=True):
        some = under > 0
        group, ratio = days.group[some], over[some] / under[some]
        share = under[some] / _summed(under, days.group, number)[group]
        rests.append(np.sqrt(share) * np.abs(ratio - _medians(ratio, group, number)[group]))
        groups.append(group)
        n_days.append(np.bincount(group, minlength=number))
    rest, of = np.concatenate(rests), np.concatenate(groups)
    # the median of absolute rests is their MAD: they are taken from a median
    most = _LARGEST_REST * _medians(rest, of, number)
    squares = _summed(np.minimum(rest, most[of]) ** 2, of, number)
    n, enough = np.sum(n_days, axis=0), np.min(n_days, axis=0) >= _LEAST_DAYS
    # n - 2 degrees of freedom: each window gave a median
    return np.where(enough, 2.0 * squares / np.maximum(n - 2, 1), 0.0)


def _medians(values: Floats, group: Codes, number: int) -> Floats:
    """Return the median of each group, NaN without values."""
    ordered = values[np.lexsort((values, group))]
    count = np.bincount(group, minlength=number)
    begin, some = np.cumsum(count) - count, count > 0
    found = np.full(number, np.nan)
    middle = (ordered[(begin + by)[some]] for by in ((count - 1) // 2, count // 2))
    found[some] = np.mean([*middle], axis=0)
    return found


def change_of_sum(cells: Terms, number: int) -> Change:
    """Change of a sum in each group; clusters that come and go as a whole are its noise. It has no parts."""
    cells = _merged(cells)
    totals = _by_group(cells.over, cells.group, number)
    size = np.abs(totals).max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.abs(cells.over).sum(axis=0) / np.abs(totals).sum(axis=0)[cells.group]
    scores = cells.over[1] - cells.over[0]
    z, effective = _judged(totals[1] - totals[0], size, scores, shares, cells, number)
    few = (size > 0) & ~(effective >= LEAST_CLUSTERS)
    unknown = np.full(number, np.nan)
    return Change(np.where(few, np.nan, z), unknown, unknown, unknown, unknown, few)


def _parts(cells: Terms, number: int) -> tuple[Floats, Floats, Floats]:
    both = (cells.under > 0).all(axis=0)
    group, over, under = cells.group[both], cells.over[:, both], cells.under[:, both]
    common = Terms(group, cells.cell[both], tuple(codes[both] for codes in cells.clusters), over, under)
    in_common = np.bincount(group, minlength=number) > 0
    share = under / _by_group(under, group, number)[:, group]
    ratio = over / under
    # means of both windows as weights, so that neither is the standard
    weight, step = share.mean(axis=0), ratio[1] - ratio[0]
    within = np.where(in_common, _summed(weight * step, group, number), np.nan)
    mix = _summed(ratio.mean(axis=0) * (share[1] - share[0]), group, number)
    size = _summed(weight * np.abs(ratio).max(axis=0), group, number)
    scores = weight * (step - within[group])
    z, effective = _judged(within, size, scores, weight, common, number, leverage=True)
    few = ~(effective >= LEAST_WITHIN)
    return within, np.where(few, np.nan, z), np.where(in_common, mix, np.nan)


def _parts_of_strata(cells: Terms, stratum: Codes, number: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the parts of a change by strata, and their z by linearisation over the cells."""
    width = int(stratum.max(initial=0)) + 1
    keys, at = np.unique(cells.group * width + stratum, return_inverse=True)
    group = keys // width
    over, under = (_by_group(values, at, len(keys)) for values in (cells.over, cells.under))
    both: npt.NDArray[np.bool_] = np.all(under > 0, axis=0)
    total = _by_group(np.where(both, under, 0.0), group, number)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(both, under / total[:, group], 0.0)
        ratio = np.where(both, over / under, 0.0)
        parts = np.where(both[at], cells.under / total[:, cells.group], 0.0)
        scale = np.where(both, share.mean(axis=0) / under, 0.0)
    common = np.bincount(group[both], minlength=number) > 0
    weight, level = share.mean(axis=0), ratio.mean(axis=0)
    within = _summed(weight * (ratio[1] - ratio[0]), group, number)
    mix = _summed(level * (share[1] - share[0]), group, number)
    # linearised: what each cell adds to the ratios of its stratum, and to their shares
    inner = scale[:, at] * (cells.over - ratio[:, at] * cells.under)
    outer = (level[at] - _by_group(level * share, group, number)[:, cells.group]) * parts
    size = _summed(weight * ratio.max(axis=0), group, number)
    found = []
    for change, scores in ((within, inner), (mix, outer)):
        z, effective = _judged(change, size, scores[1] - scores[0], parts.mean(axis=0), cells, number)
        found.append(np.where(effective >= LEAST_CLUSTERS, z, np.nan))
    return np.where(common, within, np.nan), found[0], np.where(common, mix, np.nan), found[1]


def _judged(
    change: Floats,
    size: Floats,
    scores: Floats,
    shares: Floats,
    cells: Terms,
    number: int,
    *,
    leverage: bool = False,
    least: Floats | float = 0.0,
) -> tuple[Floats, Floats]:
    # ``leverage``: scores are against a mean without their own cluster; ``least``: smallest variance
    # a query that compares nothing does not wait for it
    from scipy import special

    ways = cells.clusters
    found = [_clustered(scores, shares, cells.group, codes, number, leverage) for codes in ways]
    if not found:
        return np.full(number, np.nan), np.zeros(number)
    variance = np.max([one for one, _ in found], axis=0)
    if len(ways) == 2:
        of_pair, _ = _clustered(scores, shares, cells.group, cells.cell, number, leverage)
        variance = np.maximum(variance, found[0][0] + found[1][0] - of_pair)
    effective: Floats = np.min([clusters for _, clusters in found], axis=0)
    variance = np.maximum(variance, least)
    # what rounding leaves of cells that are all equal is no noise
    seen = variance > (_ROUNDING * size) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(seen, change / np.sqrt(variance), np.nan)
        # the lower tail, which keeps digits where 1 less the upper one would lose them
        tail = special.stdtr(np.maximum(effective - 1.0, 1.0), -np.abs(t))
    # a tail of 0 is an infinite z; that of the smallest double is 37.5
    z: Floats = np.copysign(special.ndtri(np.maximum(tail, np.finfo(np.float64).tiny)), t)
    return z, effective


def _clustered(
    scores: Floats, shares: Floats, group: Codes, codes: Codes, number: int, leverage: bool
) -> tuple[Floats, Floats]:
    width = int(codes.max(initial=0)) + 1
    keys, index = np.unique(group * width + codes, return_inverse=True)
    of = keys // width
    score = _summed(scores, index, len(keys))
    share = _summed(shares, index, len(keys))
    count = np.bincount(of, minlength=number)
    if leverage:
        # at most doubled: against a mean that is nearly its own, a cluster tells little
        score = score / np.maximum(1.0 - share, 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        spare = np.where(count > 1, count / (count - 1), 0.0)
        effective = _summed(share, of, number) ** 2 / _summed(share**2, of, number)
    return spare * _summed(score**2, of, number), np.where(np.isfinite(effective), effective, 0.0)


def _merged(cells: Terms) -> Terms:
    # cells without a denominator in both windows carry nothing
    counts = (cells.under != 0).any(axis=0)
    cells = Terms(
        cells.group[counts],
        cells.cell[counts],
        tuple(codes[counts] for codes in cells.clusters),
        cells.over[:, counts],
        cells.under[:, counts],
        None if cells.stratum is None else cells.stratum[counts],
    )
    width = int(cells.cell.max(initial=0)) + 1
    _, first, index = np.unique(cells.group * width + cells.cell, return_index=True, return_inverse=True)
    over, under = (_by_group(values, index, len(first)) for values in (cells.over, cells.under))
    clusters = tuple(codes[first] for codes in cells.clusters)
    stratum = None if cells.stratum is None else cells.stratum[first]
    return Terms(cells.group[first], cells.cell[first], clusters, over, under, stratum)


def _by_group(values: Floats, group: Codes, number: int) -> Floats:
    return np.stack([_summed(side, group, number) for side in values])


def _summed(values: Floats, index: Codes, number: int) -> Floats:
    return np.asarray(np.bincount(index, values, number), np.float64)
