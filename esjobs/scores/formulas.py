"""Score formulas: pure functions on columns, one number per job, NaN where a term is missing.

A score says how far something keeps a job from computing: 0 is best, 100 worst. Counts are sums over cores
and samples, so a score is a ratio of sums. Results are unclipped; :func:`clipped` limits them to 0 to 100.

Sources: Voevodin, Shaikhislamov, Nikitenko, "How to assess the quality of supercomputer resource usage"
(Supercomputing Frontiers and Innovations, 2022), formulas (1) to (4); Yasin, "A top-down method for
performance analysis and counters architecture" (ISPASS 2014).
"""

import numpy as np

from esjobs.core.arrays import Floats, Ints, Mask

OUTSIDE = 1.0
"""A score further outside 0 to 100 is flagged: its counters are inconsistent."""


def core_cycles(any_cycles: Floats, smt: Mask) -> Floats:
    """Return cycles of cores from counts of their threads: half of them with SMT.

    Valid if the counters of both threads of a core were summed, as a node monitor does.
    """
    return np.where(smt, any_cycles / 2, any_cycles)


def score_cpu(retired_slots: Floats, slots: Floats) -> Floats:
    """100 x (1 - retired slots / slots): share of pipeline slots without useful work.

    ``slots``: pipeline width x core cycles. With width 4, SMT and ``THREAD_ANY`` summed over both threads
    that is ``2 x THREAD_ANY``, formula (1) of the paper.

    >>> float(score_cpu(np.array([1.0]), np.array([4.0]))[0])
    75.0
    """
    return 100.0 * (1.0 - _ratio(retired_slots, slots))


def score_mem_cycles(cycles: Floats, load_stalls: Floats, store_stalls: Floats) -> Floats:
    """100 x (min(cycles, load stalls) + store stalls) / cycles: time waiting for memory.

    Formula (2) of the paper, in per cent. The stalls overlap, so the result can exceed 100.

    >>> float(score_mem_cycles(np.array([10.0]), np.array([3.0]), np.array([1.0]))[0])
    40.0
    """
    return 100.0 * _ratio(np.minimum(cycles, load_stalls) + store_stalls, cycles)


def score_mem_slots(memory_slots: Floats, slots: Floats) -> Floats:
    """100 x memory-bound slots / slots."""
    return 100.0 * _ratio(memory_slots, slots)


def score_mem_waiting(
    backend_slots: Floats, slots: Floats, load_not_complete: Floats, not_complete: Floats
) -> Floats:
    """100 x backend-bound slots / slots x the share of retirement stalls caused by loads."""
    share = _ratio(load_not_complete, not_complete)
    return 100.0 * _ratio(backend_slots, slots) * share


def score_gpu(eligible: Floats, theoretical: Floats) -> Floats:
    """100 x (1 - eligible warps / theoretical warps), both in warps per SM and active cycle; formula (3)."""
    return 100.0 * (1.0 - _ratio(eligible, theoretical))


def score_gpumem(dependency: Floats, throttle: Floats, active: Floats) -> Floats:
    """100 x (warps stalled by memory dependency + by throttling) / active warps; formula (4)."""
    return 100.0 * _ratio(dependency + throttle, active)


def clipped(unclipped: Floats) -> tuple[Floats, Mask]:
    """Clip a score to 0 to 100; flag those outside by more than :data:`OUTSIDE`.

    >>> [float(part[0]) for part in clipped(np.array([104.0]))]
    [100.0, 1.0]
    """
    with np.errstate(invalid="ignore"):
        outside = (unclipped < -OUTSIDE) | (unclipped > 100.0 + OUTSIDE)
    return np.clip(unclipped, 0.0, 100.0), outside


def score_issues(weights: Floats, shares: Floats, job: Ints, n_jobs: int, mode: str) -> Floats:
    """Score of issues from their criticality and their share of the job's time, both 0 to 1.

    ``job``: job of each issue. ``mode`` "product": 100 x (1 - prod(1 - weight x share)), bounded and
    independent of order; "sum": 100 x min(1, sum(weight x share)). Jobs without issues have 0.

    >>> two = np.array([1.0, 0.6]), np.array([0.5, 0.5]), np.array([0, 0])
    >>> [round(float(score_issues(*two, 1, mode)[0]), 9) for mode in ("product", "sum")]
    [65.0, 80.0]
    """
    part = np.clip(weights, 0.0, 1.0) * np.clip(shares, 0.0, 1.0)
    if mode == "sum":
        return np.asarray(100.0 * np.minimum(1.0, np.bincount(job, part, n_jobs)), np.float64)
    left = np.ones(n_jobs)
    np.multiply.at(left, job, 1.0 - part)
    return 100.0 * (1.0 - left)


def cpu_efficiency(cpu_s: Floats, wall_s: Floats, cores: Floats) -> Floats:
    """CPU time / (wall-clock time x cores); above 1 the record is wrong."""
    return _ratio(cpu_s, wall_s * cores)


def _ratio(over: Floats, under: Floats) -> Floats:
    """Return a quotient; NaN if a term is missing or the divisor is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(under == 0, np.nan, over / under)
