"""Cause of a loss: a penalised likelihood scan over parts of the jobs. Pure.

An expectation-based scan statistic (Kulldorff 1997, Neill and Moore 2004) with a penalty per literal: the
part whose leaves moved alike wins; its expectation is corrected and the scan repeated. Alike: by one ratio,
or, of failures, by one share of the jobs, which fail beside the usual ones, however few these are.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.schema.today import OWNERS
from esjobs.today.expected import divided, sum_by

LEAST_SCORE = 8.0  # Of a term
LEAST_PART = 0.02  # Of the excess, that a term explains
MOST_WIDE = 5.0  # Variance of a leaf's failures over their expectation, at most
TIE = 3.0  # Difference of scores that decides nothing
ORDER = ("site", "queue", "kind", "category", "task", "release", "project", "user")
"""Dimensions; among parts that explain alike the first wins, and fewer literals win."""


@dataclass(frozen=True)
class Leaves:
    """Leaves of one metric. ``value``, ``expected``, ``variance``: per leaf; ``codes``: by dimension.

    Relative variances: ``new`` of the factor of its task, ``steady`` of the task from day to day. ``jobs``:
    of failures, of which more is worse, all jobs behind the leaf, and ``usual`` the usual share of its
    category; None of CPU time, of which less is worse.
    """

    value: Floats
    expected: Floats
    variance: Floats
    codes: Mapping[str, Ints]
    new: Floats
    steady: Floats
    jobs: Floats | None = None
    usual: Floats | None = None

    @property
    def counts(self) -> bool:
        """True for failures."""
        return self.jobs is not None

    def part(self, rows: Mask) -> "Leaves":
        """Return some of the leaves."""
        codes = {name: code[rows] for name, code in self.codes.items()}
        value, expected, variance = self.value[rows], self.expected[rows], self.variance[rows]
        jobs, usual = (None if each is None else each[rows] for each in (self.jobs, self.usual))
        return Leaves(value, expected, variance, codes, self.new[rows], self.steady[rows], jobs, usual)

    def exposed(self, cut: Collection[str]) -> Floats:
        """Return the jobs that a fault in a part with these dimensions can add to each leaf.

        A fault without a category of its own has the usual ones.
        """
        if self.jobs is None or self.usual is None:
            return np.zeros(len(self.value))
        return self.jobs if "category" in cut else self.jobs * self.usual

    @property
    def excess(self) -> Floats:
        """Loss of each leaf: failures beyond the expected, or CPU time below it."""
        return (self.value - self.expected) * (1 if self.counts else -1)


@dataclass(frozen=True)
class Term:
    """Part of the jobs: ``literals`` (dimension and code), leaves, ratio to the expected, excess, score.

    ``share``: of the excess of all leaves. ``added``: share of its jobs that fail beside the usual ones; 0 if
    they grew by a ratio.
    """

    literals: tuple[tuple[str, int], ...]
    rows: Mask
    ratio: float
    excess: float
    score: float
    share: float
    added: float = 0.0

    def expect(self, leaves: Leaves, expected: Floats) -> Floats:
        """Return the expectation of leaves once the part is taken into account."""
        more = self.added * leaves.exposed(dict(self.literals))
        return np.where(self.rows, expected + more if self.added else expected * self.ratio, expected)


def scan(
    leaves: Leaves, partitions: Sequence[tuple[str, ...]], most: int = 5, least: float = LEAST_SCORE
) -> list[Term]:
    """Return the terms of a loss, best first.

    ``partitions``: dimensions that are tried together. ``most``: terms; ``least``: score of one.
    """
    expected = leaves.expected.copy()
    total = float(leaves.excess.sum())
    # of a grid where others gained, what is lost is lost all the same
    basis = max(total, float(np.maximum(leaves.excess, 0.0).sum()) * LEAST_PART * 5)
    terms: list[Term] = []
    while len(terms) < most:
        best = _best(replace(leaves, expected=expected), partitions, basis, total, least)
        if best is None:
            break
        terms.append(best)
        expected = best.expect(leaves, expected)
    return terms


def term_of(leaves: Leaves, literals: tuple[tuple[str, int], ...], rows: Mask) -> Term:
    """Return a part that somebody else named; it has no score."""
    ratio, added, _ = (float(each[1]) for each in _gain(leaves, rows * 1, leaves.exposed(dict(literals)), 2))
    return Term(literals, rows, ratio, float(leaves.excess[rows].sum()), 0.0, 1.0, added)


def main_code(leaves: Leaves, dimension: str, least: float) -> tuple[int, float] | None:
    """Return the code that lost most, and its share of the losses; None if that is less than ``least``."""
    lost = np.maximum(sum_by(leaves.codes[dimension], leaves.excess, 1), 0.0)
    code = int(np.argmax(lost))
    return (code, float(lost[code] / lost.sum())) if lost[code] >= least * lost.sum() > 0 else None


def _best(
    leaves: Leaves, partitions: Sequence[tuple[str, ...]], basis: float, total: float, least: float
) -> Term | None:
    found = [each for cut in partitions for each in _candidates(leaves, cut, basis, least)]
    if not found:
        return None
    top = max(score for score, *_ in found)
    near = [each for each in found if each[0] >= top - TIE]
    score, cut, key, ratio, added, excess = min(near, key=lambda each: (*_rank(each[1]), -each[0]))
    rows = np.ones(len(leaves.value), np.bool_)
    for name, code in zip(cut, key, strict=True):
        rows &= leaves.codes[name] == code
    share = excess / total if total > 0 else 1.0
    return Term(tuple(zip(cut, key, strict=True)), rows, ratio, excess, score, min(share, 1.0), added)


def _rank(cut: tuple[str, ...]) -> tuple[int, tuple[int, ...]]:
    return len(cut), tuple(ORDER.index(name) for name in cut)


_Candidate = tuple[float, tuple[str, ...], tuple[int, ...], float, float, float]


def _candidates(leaves: Leaves, cut: tuple[str, ...], basis: float, least: float) -> Iterator[_Candidate]:
    """Yield score, cut, codes, ratio, added share and excess of the parts of a cut that are near its best."""
    code = np.zeros(len(leaves.value), np.int64)
    for name in cut:
        code = code * (int(leaves.codes[name].max(initial=0)) + 1) + leaves.codes[name]
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    if not len(first):
        return
    ratio, added, gain = _gain(leaves, group, leaves.exposed(cut), len(first))
    excess = np.bincount(group, leaves.excess)
    score = gain - (np.log(len(first)) + 2 * len(cut) if cut else 0.0)
    good = (excess >= LEAST_PART * basis) & (excess > 0) & (score >= least)
    for name in OWNERS:
        # jobs whose owner nobody recorded have nothing in common
        good &= leaves.codes[name][first] > 0 if name in cut else True
    for index in np.flatnonzero(good & (score >= np.max(score[good], initial=0.0) - TIE)):
        row = first[index]
        codes = tuple(int(leaves.codes[name][row]) for name in cut)
        yield float(score[index]), cut, codes, float(ratio[index]), float(added[index]), float(excess[index])


def _gain(leaves: Leaves, group: Ints, exposed: Floats, size: int) -> tuple[Floats, Floats, Floats]:
    """Return ratio, added share and gain of each group; the share is 0 where a ratio gains more.

    Both give a group the sum that it has; what tells them apart is how that sum is spread over its leaves.
    """
    value, expected, variance = leaves.value, np.maximum(leaves.expected, 1e-9), leaves.variance
    if leaves.counts:
        # without a limit failures of a category never seen before would say nothing
        wide = np.clip(variance / expected, 1.0, MOST_WIDE)
        seen, due = sum_by(group, value, size), np.maximum(sum_by(group, expected, size), 1e-9)
        jobs = sum_by(group, exposed, size)
        ratio, added = seen / due, np.maximum(divided(seen - due, jobs), 0.0)
        more = added[group] * exposed
        by_ratio = sum_by(group, value / wide, size) * np.log(np.maximum(ratio, 1e-9)) - sum_by(
            group, expected / wide, size
        ) * (ratio - 1)
        by_share = sum_by(group, (value * np.log1p(more / expected) - more) / wide, size)
        gain = np.maximum(by_ratio, by_share)
        return ratio, np.where(by_share > by_ratio, added, 0.0), np.where(ratio > 1, gain, 0.0)
    squares = np.bincount(group, expected**2 / variance, size)
    ratio = np.bincount(group, value * expected / variance, size) / np.maximum(squares, 1e-300)
    return ratio, np.zeros(size), np.where(ratio < 1, squares * (ratio - 1) ** 2 / 2, 0.0)


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
