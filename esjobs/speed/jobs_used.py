"""Share of the jobs in a fit, and the reasons for excluding the others."""

import numpy as np

from esjobs.core.numbers import percent
from esjobs.core.words import noun
from esjobs.speed.factors import METHODS, Fit

_LITTLE = 0.5  # Share of the jobs, or of the tasks, below which people are told why it is no more


def why_left_out(fit: Fit) -> str:
    """Return why less than half of the jobs, or of the tasks, are in a fit; empty if more are.

    Jobs without a name on the level of the fit count only if most of the others are excluded, too.
    """
    unused = jobs_unused(fit)
    total = int(fit.data.n_jobs.sum()) + fit.data.n_jobs_unnamed
    used = total - sum(unused.values())
    if fit.data.n_jobs_unnamed < total and used < _LITTLE * total:
        why = ", ".join(f"{count:,} {reason}" for reason, count in unused.items() if count)
        names = noun(fit.data.level)
        share = percent(used / total)
        return f"the fit of {names} uses {used:,} of {total:,} jobs ({share}); excluded: {why}"
    return _tasks_left_out(fit)


def _tasks_left_out(fit: Fit) -> str:
    data = fit.data
    mixed = np.unique(data.task.codes[data.mixed.codes >= 0]).size
    unknown = np.unique(data.task.codes[(data.unknown.codes >= 0) & (data.mixed.codes < 0)]).size
    unknown *= METHODS[fit.factors.method].corrected
    total = np.unique(data.task.codes).size
    if mixed + unknown <= (1.0 - _LITTLE) * total:
        return ""
    reasons = {"mixed": mixed, "with unknown start-up time": unknown}
    why = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)
    return f"{mixed + unknown} of {total} tasks were excluded: {why}"


def jobs_unused(fit: Fit) -> dict[str, int]:
    """Return the binned jobs outside a fit, by the first reason that holds."""
    data = fit.data
    corrected = METHODS[fit.factors.method].corrected
    left = np.ones(len(data), np.bool_)
    counts = {f"without a {noun(data.level, 1)}": data.n_jobs_unnamed}
    shared = np.bincount(data.task.codes[fit.entered], minlength=len(data.task.names)) > 1
    for reason, rows in (
        ("of mixed tasks", data.mixed.codes >= 0),
        ("of tasks whose long jobs are cut off there", data.cut.codes >= 0),
        ("of tasks with unknown start-up time", (data.unknown.codes >= 0) & corrected),
        ("in buckets with too few jobs", ~fit.entered),
        (f"of tasks in a single {noun(data.level, 1)}", ~shared[data.task.codes]),
    ):
        hit = left & rows
        counts[reason] = int(data.n_jobs[hit].sum())
        left &= ~hit
    index = np.searchsorted(fit.factors.name.astype(str), data.name.names.astype(str))
    without = (
        (fit.factors.status != "ok")[np.minimum(index, len(fit.factors.name) - 1)] if len(data) else left
    )
    hit = left & (without[data.name.codes] if len(data) else left)
    counts[f"of {noun(data.level)} without a factor"] = int(data.n_jobs[hit].sum())
    return counts
