"""Grades and intervals of ranks of the names of a fit, in place of a league table."""

from dataclasses import replace

import numpy as np

import fitters
from esjobs.core.tables import columns
from esjobs.speed.factors import Factors

RANKED = columns("grade rank_low rank_high k_likely k_likely_low k_likely_high")
"""Columns of ``factors`` and ``flags`` that this makes."""


def with_ranking(factors: Factors, min_name_jobs: int) -> Factors:
    """Add the ranking of the names that can be compared; ``min_name_jobs``: jobs of names that make grades.

    Names with fewer jobs have a likely factor with its interval, and a grade if that lies in one.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = factors.k_err / factors.k
    inside = np.flatnonzero(factors.comparable & np.isfinite(relative) & (relative > 0))
    if not len(inside):
        return factors
    found = fitters.rank_estimates(
        np.log(factors.k[inside]), relative[inside], factors.n_jobs[inside] >= min_name_jobs
    )
    rank = (found.rank_low.tolist(), found.rank_high.tolist())
    likely = (np.exp(values).tolist() for values in (found.mean, found.low, found.high))
    rows = zip(found.letters, *rank, *likely, strict=True)
    return replace(
        factors,
        ranking={
            str(name): dict(zip(RANKED, row, strict=True))
            for name, row in zip(factors.name[inside], rows, strict=True)
        },
    )


def likely_factor(factors: Factors, name: str) -> str:
    """Return the likely factor of a name as the end of a sentence; empty without one."""
    row = factors.ranking.get(name)
    if row is None:
        return ""
    likely, low, high = (row[f"k_likely{end}"] for end in ("", "_low", "_high"))
    return f"; its speed factor is likely {likely:.3g} ({low:.3g} to {high:.3g}, 90 %)"
