"""Nodes on which more jobs fail than on the other nodes of their site, task by task.

The expected failures of a node are those of the same tasks on the other nodes, so that a node with difficult
tasks is not accused. Failures of a node come in bursts: their variance is scaled by what the nodes show.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from esjobs.core.words import HALF_WIDTH_90, INTERVAL_LEVEL
from fitters.layout.arrays import Floats, Ints, Mask

FALSE_DISCOVERIES = 0.05
"""Accepted share of false nodes among those that are found (Benjamini and Hochberg)."""
LEAST_FAILURES = 5
"""Failed jobs of a node that is found."""
LEAST_RATIO = 2.0
"""Failures over the expected ones of a node that is found, by the lower bound."""
_WITHOUT_TASK_P, _WITHOUT_TASK_FAILURES = 0.01, 3  # Of the check without the worst task
_OUTLYING = 4.0  # Standard deviations
_TRIMMED = 0.9
_OF_TRIMMED = 0.623  # Mean of the lower 90 % of squared standard normals
_OF_MEDIAN = 0.455  # Median of squared standard normals
_NOTHING = 1e-9  # Keeps divisions finite; of failures, far below what one job contributes


@dataclass(frozen=True)
class Parts:
    """Jobs of cells by what they have in common: index of the cell, number of the culprit, jobs, failed ones.

    ``culprit``: a task, or the user or name of jobs without one; -1: nothing in common is known.
    """

    cell: Ints
    culprit: Ints
    jobs: Floats
    failed: Floats

    def at(self, chosen: Mask) -> "Parts":
        """Return the chosen ones."""
        return Parts(self.cell[chosen], self.culprit[chosen], self.jobs[chosen], self.failed[chosen])


@dataclass(frozen=True)
class Cells:
    """Jobs by node and task: indices of both from 0, jobs that finished or failed, and failed ones.

    ``parts``: of cells that hold jobs of several tasks; None: each cell is of one task.
    """

    node: Ints
    task: Ints
    jobs: Floats
    failed: Floats
    parts: Parts | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.node.max(initial=-1)) + 1

    def by_node(self, values: Floats) -> Floats:
        """Return the sums of values over the cells of each node."""
        return np.bincount(self.node, weights=values, minlength=self.n_nodes).astype(np.float64)

    def by_task(self, values: Floats) -> Floats:
        """Return, for each cell, the sum of values over all cells of its task."""
        return np.bincount(self.task, weights=values).astype(np.float64)[self.task]


@dataclass(frozen=True)
class Judged:
    """Nodes compared with the other nodes of their site; one entry per node.

    ``observed`` and ``expected`` failures, ``low`` and ``high``: interval of their ratio (90 %), ``q``: the
    chance of so many failures, corrected for the number of nodes (Benjamini and Hochberg), ``found``: by all
    rules, ``scale``: variance over that of independent jobs.
    """

    jobs: Floats
    observed: Floats
    expected: Floats
    low: Floats
    high: Floats
    q: Floats
    found: Mask
    scale: float


def judge(cells: Cells) -> Judged:
    """Compare the failures of each node with those of the same tasks on the other nodes.

    1. Expected: the rate of the task on the other nodes, shrunk by half a job at the rate of the site.
    2. Variance: binomial, scaled by the trimmed mean of z^2 over nodes; nodes beyond 4, by the median of z^2,
    leave it and the expectation of the others. 3. Upper tail of a gamma distribution, 5 % false discoveries,
    at least 5 failures, twice the expected ones by a lower bound. 4. Less strictly the same without the task
    (of jobs without one the user, else the name) that adds most: one broken task is not a broken node.
    Measured: benchmarks/results/black_holes.md.
    """
    observed, jobs = cells.by_node(cells.failed), cells.by_node(cells.jobs)
    kept = _usual(observed, jobs)[cells.node]
    # twice: outlying nodes are known only after a first expectation, and distort it
    for _ in range(2):
        rate, variance = _expectation(cells, kept)
        expected, total = cells.by_node(cells.jobs * rate), cells.by_node(variance)
        z = (observed - expected) / np.sqrt(np.maximum(total, _NOTHING))
        # the median holds while fewer than half of the nodes are ill
        scale = max(1.0, float(np.median(z**2)) / _OF_MEDIAN) if len(z) else 1.0
        outlying = z / np.sqrt(scale) > _OUTLYING
        kept = ~outlying[cells.node]
    rate, variance = _expectation(cells, kept)
    expected, total = cells.by_node(cells.jobs * rate), cells.by_node(variance)
    z = (observed - expected) / np.sqrt(np.maximum(total, _NOTHING))
    scale = _scale(z[~outlying])
    p = _tail(observed, expected, scale * total)
    q = false_discovery_rates(p)
    share = observed / np.maximum(jobs, 1)
    # lower end of the 90 % interval of the failures, binomial
    bound = observed - HALF_WIDTH_90 * np.sqrt(scale * observed * (1 - share))
    found = (q < FALSE_DISCOVERIES) & (observed >= LEAST_FAILURES) & (bound > LEAST_RATIO * expected)
    # costly, and without effect where nothing is found
    if found.any():
        found = _without_its_worst_task(cells, found, rate, variance, scale)
    spread = scale * cells.by_node(cells.jobs * rate * (1 - rate)) / np.maximum(expected, _NOTHING)
    low, high = _interval(observed, expected, np.maximum(spread, _NOTHING))
    return Judged(jobs, observed, expected, low, high, q, found, scale)


def _usual(observed: Floats, jobs: Floats) -> Mask:
    """Return true for nodes that fail less than three times as often as usual, beyond its noise.

    Usual is the median node, at least half the rate of all. Only these make the first expectation: several
    ill nodes would excuse each other.
    """
    share = observed / np.maximum(jobs, 1)
    if not len(share):
        return np.zeros(0, np.bool_)
    middle = max(float(np.median(share)), 0.5 * float(observed.sum() / max(jobs.sum(), 1.0)))
    return np.asarray(share <= 3 * middle + 3 * np.sqrt(middle / np.maximum(jobs, 1)) + 1e-9, np.bool_)


def false_discovery_rates(p: Floats) -> Floats:
    """Return for each p-value the share of false ones among those at most as large.

    Benjamini and Hochberg 1995; ``scipy.stats`` has it, and takes a second to load.
    """
    order = np.argsort(p)[::-1]
    rates = np.empty(len(p))
    rates[order] = np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1))
    return np.minimum(rates, 1.0)


def _expectation(cells: Cells, kept: Mask) -> tuple[Floats, Floats]:
    """Return the expected failure rate of each cell, and the variance of its failures."""
    jobs, failed = np.where(kept, cells.jobs, 0.0), np.where(kept, cells.failed, 0.0)
    site = failed.sum() / max(jobs.sum(), 1.0)
    # a cell does not count for its own expectation
    others = cells.by_task(jobs) - jobs
    rate = np.clip((cells.by_task(failed) - failed + 0.5 * site) / (others + 0.5), 0.0, 1.0)
    # the second factor: the rate itself is known from finitely many jobs of the others
    variance = cells.jobs * rate * (1 - rate) * (1 + cells.jobs / np.maximum(others, 0.5))
    return rate, variance


def _scale(z: Floats) -> float:
    """Return the variance of z over the expected one, at least 1; the largest tenth does not count."""
    squares = np.sort(z**2)
    lower = squares[: max(1, int(np.ceil(_TRIMMED * len(squares))))]
    return max(1.0, float(lower.mean()) / _OF_TRIMMED) if len(squares) else 1.0


def _tail(observed: Floats, expected: Floats, variance: Floats) -> Floats:
    """Return the chance of at least so many failures, by a gamma distribution of that mean and variance."""
    mean, spread = np.maximum(expected, _NOTHING), np.maximum(variance, _NOTHING)
    # half a failure less: a continuous distribution in place of counts
    tail = special.gammaincc(mean**2 / spread, np.maximum(observed - 0.5, 0.0) * mean / spread)
    return np.where(observed > 0, tail, 1.0)


def _without_its_worst_task(cells: Cells, found: Mask, rate: Floats, variance: Floats, scale: float) -> Mask:
    """Return true for found nodes that still fail without the culprit that adds most failures."""
    parts = cells.parts or Parts(np.arange(len(cells.node)), cells.task, cells.jobs, cells.failed)
    parts = parts.at(found[cells.node[parts.cell]])
    node, share = cells.node[parts.cell], parts.jobs / np.maximum(cells.jobs[parts.cell], _NOTHING)
    expected, spread = parts.jobs * rate[parts.cell], variance[parts.cell] * share
    # the culprit of each node with the largest excess; -1, in common with nobody, is never one
    n_culprits = int(parts.culprit.max(initial=0)) + 2
    key = node * n_culprits + parts.culprit + 1
    keys, group = np.unique(key, return_inverse=True)
    excess = np.bincount(group, parts.failed - expected, len(keys))
    excess = np.where(keys % n_culprits == 0, -np.inf, excess)
    order = np.lexsort((excess, keys // n_culprits))
    of_node = keys[order] // n_culprits
    last = np.append(of_node[1:] != of_node[:-1], True)[: len(order)]
    worst = np.zeros(len(keys), np.bool_)
    worst[order[last]] = keys[order[last]] % n_culprits != 0
    rest = ~worst[group]
    observed, mean, total = (
        np.bincount(node[rest], values[rest], cells.n_nodes).astype(np.float64)
        for values in (parts.failed, expected, spread)
    )
    p = _tail(observed, mean, scale * total)
    enough = (observed > LEAST_RATIO * mean) & (observed >= _WITHOUT_TASK_FAILURES)
    return np.asarray(found & (p < _WITHOUT_TASK_P) & enough, np.bool_)


def _interval(observed: Floats, expected: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Return the interval of observed over expected; ``spread``: variance over mean of the failures."""
    tail = (1 - INTERVAL_LEVEL) / 2
    # bounds of a Poisson mean by gamma quantiles (Garwood 1936), for counts in units of the spread
    factor = spread / np.maximum(expected, _NOTHING)
    counts = observed / spread
    low = np.where(observed > 0, special.gammaincinv(np.maximum(counts, _NOTHING), tail), 0.0)
    high = special.gammaincinv(counts + 1, 1 - tail)
    return low * factor, high * factor
