"""Which share of the jobs a fit rests on, and what became of the others."""

from collections.abc import Iterator

import numpy as np

from esjobs.core.words import noun
from esjobs.speed.factors import METHODS, Fit

_LITTLE = 0.5
"""Share of the jobs below which people are told why it is no more."""


def share_notes(fit: Fit) -> Iterator[str]:
    """A note that says why, where less than half of the jobs entered a fit."""
    unused = jobs_unused(fit)
    total = int(fit.data.n_jobs.sum()) + fit.data.n_jobs_unnamed
    used = total - sum(unused.values())
    if fit.data.n_jobs_unnamed < total and used < _LITTLE * total:
        why = ", ".join(f"{count:,} {reason}" for reason, count in unused.items() if count)
        names = noun(fit.data.level)
        yield f"{used:,} of {total:,} jobs ({used / total:.0%}) are in the fit of {names}; not in it: {why}"


def jobs_unused(fit: Fit) -> dict[str, int]:
    """Binned jobs that are not in a fit, by reason; each counts under the first that holds."""
    data = fit.data
    corrected = METHODS[fit.factors.method].corrected
    left = np.ones(len(data), np.bool_)
    counts = {f"without a {noun(data.level, 1)}": data.n_jobs_unnamed}
    shared = np.bincount(data.task.codes[fit.entered], minlength=len(data.task.names)) > 1
    for reason, rows in (
        ("of mixed tasks", data.mixed.codes >= 0),
        ("of tasks whose fixed cost is unknown", (data.unknown.codes >= 0) & corrected),
        ("in buckets of too few jobs", ~fit.entered),
        (f"of tasks of a single {noun(data.level, 1)}", ~shared[data.task.codes]),
    ):
        hit = left & rows
        counts[reason] = int(data.n_jobs[hit].sum())
        left &= ~hit
    place = np.searchsorted(fit.factors.name.astype(str), data.name.names.astype(str))
    without = (
        (fit.factors.status != "ok")[np.minimum(place, len(fit.factors.name) - 1)] if len(data) else left
    )
    hit = left & (without[data.name.codes] if len(data) else left)
    counts[f"of {noun(data.level)} without a factor"] = int(data.n_jobs[hit].sum())
    return counts
