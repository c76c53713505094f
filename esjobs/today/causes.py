"""Cause of a loss: a penalised likelihood scan over parts of the jobs. Pure.

An expectation-based scan statistic (Kulldorff 1997, Neill and Moore 2004) with a penalty per literal: the
part whose leaves moved by one common ratio wins; its expectation is corrected and the scan repeated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from esjobs.schema.today import OWNERS
from esjobs.today.expected import Floats, Ints

LEAST_SCORE = 8.0  # Of a term
LEAST_PART = 0.02  # Of the excess, that a term explains
MOST_WIDE = 5.0  # Variance of a leaf's failures over their expectation, at most
TIE = 3.0  # Difference of scores that decides nothing
ORDER = ("site", "queue", "kind", "category", "task", "release", "project", "user")
"""Dimensions; among parts that explain alike the first wins, and fewer literals win."""


@dataclass(frozen=True)
class Leaves:
    """Leaves of one metric. ``value``, ``expected``, ``variance``: per leaf; ``codes``: by dimension.

    Relative variances: ``new`` of the factor of its task, ``steady`` of the task from day to day. ``counts``:
    True for failures, of which more is worse; of CPU time less is worse.
    """

    value: Floats
    expected: Floats
    variance: Floats
    codes: Mapping[str, Ints]
    new: Floats
    steady: Floats
    counts: bool

    def part(self, rows: npt.NDArray[np.bool_]) -> "Leaves":
        """Return some of the leaves."""
        codes = {name: code[rows] for name, code in self.codes.items()}
        value, expected, variance = self.value[rows], self.expected[rows], self.variance[rows]
        return Leaves(value, expected, variance, codes, self.new[rows], self.steady[rows], self.counts)

    @property
    def excess(self) -> Floats:
        """Loss of each leaf: failures beyond the expected, or CPU time below it."""
        return (self.value - self.expected) * (1 if self.counts else -1)


@dataclass(frozen=True)
class Term:
    """Part of the jobs: ``literals`` (dimension and code), leaves, ratio to the expected, excess, score.

    ``share``: of the excess of all leaves.
    """

    literals: tuple[tuple[str, int], ...]
    rows: npt.NDArray[np.bool_]
    ratio: float
    excess: float
    score: float
    share: float


def scan(leaves: Leaves, partitions: Sequence[tuple[str, ...]], most: int = 5) -> list[Term]:
    """Return the terms of a loss, best first. ``partitions``: dimensions that are tried together."""
    expected = leaves.expected.copy()
    total = float(leaves.excess.sum())
    # of a grid where others gained, what is lost is lost all the same
    basis = max(total, float(np.maximum(leaves.excess, 0.0).sum()) * LEAST_PART * 5)
    terms: list[Term] = []
    while len(terms) < most:
        best = _best(replace(leaves, expected=expected), partitions, basis, total)
        if best is None:
            break
        terms.append(best)
        expected[best.rows] *= best.ratio
    return terms


def _best(leaves: Leaves, partitions: Sequence[tuple[str, ...]], basis: float, total: float) -> Term | None:
    found = [each for cut in partitions for each in _candidates(leaves, cut, basis)]
    if not found:
        return None
    top = max(score for score, *_ in found)
    near = [each for each in found if each[0] >= top - TIE]
    score, cut, key, ratio, excess = min(near, key=lambda each: (*_rank(each[1]), -each[0]))
    rows = np.ones(len(leaves.value), np.bool_)
    for name, code in zip(cut, key, strict=True):
        rows &= leaves.codes[name] == code
    share = excess / total if total > 0 else 1.0
    return Term(tuple(zip(cut, key, strict=True)), rows, ratio, excess, score, min(share, 1.0))


def _rank(cut: tuple[str, ...]) -> tuple[int, tuple[int, ...]]:
    return len(cut), tuple(ORDER.index(name) for name in cut)


_Candidate = tuple[float, tuple[str, ...], tuple[int, ...], float, float]


def _candidates(leaves: Leaves, cut: tuple[str, ...], basis: float) -> Iterator[_Candidate]:
    """Yield score, cut, codes, ratio and excess of the parts of a cut that are near its best."""
    code = np.zeros(len(leaves.value), np.int64)
    for name in cut:
        code = code * (int(leaves.codes[name].max(initial=0)) + 1) + leaves.codes[name]
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    if not len(first):
        return
    ratio, gain = _gain(leaves, group)
    excess = np.bincount(group, leaves.excess)
    score = gain - (np.log(len(first)) + 2 * len(cut) if cut else 0.0)
    good = (excess >= LEAST_PART * basis) & (excess > 0) & (score >= LEAST_SCORE)
    for name in OWNERS:
        # jobs whose owner nobody recorded have nothing in common
        good &= leaves.codes[name][first] > 0 if name in cut else True
    for index in np.flatnonzero(good & (score >= np.max(score[good], initial=0.0) - TIE)):
        row = first[index]
        codes = tuple(int(leaves.codes[name][row]) for name in cut)
        yield float(score[index]), cut, codes, float(ratio[index]), float(excess[index])


def _gain(leaves: Leaves, group: Ints) -> tuple[Floats, Floats]:
    value, expected, variance = leaves.value, np.maximum(leaves.expected, 1e-9), leaves.variance
    if leaves.counts:
        # without a limit failures of a category never seen before would say nothing
        wide = np.clip(variance / expected, 1.0, MOST_WIDE)
        ratio = np.bincount(group, value) / np.bincount(group, expected)
        observed, due = np.bincount(group, value / wide), np.bincount(group, expected / wide)
        gain = observed * np.log(np.maximum(ratio, 1e-9)) - due * (ratio - 1)
        return ratio, np.where(ratio > 1, gain, 0.0)
    squares = np.bincount(group, expected**2 / variance)
    ratio = np.bincount(group, value * expected / variance) / np.maximum(squares, 1e-300)
    return ratio, np.where(ratio < 1, squares * (ratio - 1) ** 2 / 2, 0.0)


def partitions_of(
    dimensions: Sequence[str], *, everything: bool, pairs: bool = True, owned: bool = False
) -> list[tuple[str, ...]]:
    """Return the partitions of these dimensions: each, pairs of most of them, and all jobs.

    No pairs: site with queue, kind with task, and owners of jobs, which go with their tasks; ``owned``: but
    with errors.
    """
    singles = [(name,) for name in dimensions]
    both = [
        (left, right)
        for number, left in enumerate(dimensions)
        for right in dimensions[number + 1 :]
        if (left, right) not in (("site", "queue"), ("kind", "task"))
        and (right not in OWNERS or (owned and left == "category"))
    ]
    return [*([()] if everything else []), *singles, *(both if pairs else [])]
