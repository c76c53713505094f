"""Search for tasks with more than one kind of work.

Merge jobs beside normal ones in one task give a unit that ran only the former a factor of its own. Its
bucket is perfectly homogeneous; what gives the mixture away is the task as a whole.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.errors import InputError
from fitters.layout.arrays import Floats, Ints, Texts, kept_rows, texts
from fitters.layout.columns import Labels, factorise, factorise_pair, read_numbers
from fitters.mixture.modes import (
    LEAST_JOBS_FOR_WIDTH,
    LEAST_JOBS_OF_TASK,
    LEAST_JOBS_OF_UNIT,
    centre,
    deepest_valley,
    too_wide,
)
from fitters.mixture.results import UNKNOWN, Decider, Evidence, Mixtures, Points


def find_mixtures(task: object, unit: object, ln_residual: object, *, kind: object = None) -> Mixtures:
    """Look for mixed tasks among single jobs.

    ``task``, ``unit``: labels; core classes are tasks of their own, units may be fine (site and CPU model).
    ``ln_residual``: ln of CPU time per event without start-up time, see `fixed_cost_residuals`. ``kind``:
    label of the kind of work, None or missing if unknown.

    Residuals are relative to the mode of their unit. A task is mixed if the pooled ones have two modes more
    than a factor of two apart with 5 % of the jobs each and a valley of 3 sigma between them (units of 5 jobs
    or more, 20 jobs in all), or if the robust sigma of a unit exceeds 0.5 beyond its counting error
    (`modes`). It is split by kind, and kinds still mixed are excluded, as are mixed tasks of one kind. Two
    sorts of the rows.

    Raises :class:`InputError`: no rows, different lengths, text in a number.

    >>> rng = np.random.default_rng(1)
    >>> ln_residual = np.concatenate([rng.normal(0, 0.1, 300), rng.normal(-2, 0.1, 100)])
    >>> kind = ["simul"] * 300 + ["merge"] * 100
    >>> find_mixtures(["t"] * 400, ["A", "B"] * 200, ln_residual).tasks.decision.tolist()
    ['excluded']
    >>> find_mixtures(["t"] * 400, ["A", "B"] * 200, ln_residual, kind=kind).tasks.decision.tolist()
    ['split', 'keep', 'keep']
    """
    tasks, units, n = factorise_pair(task, unit)
    kinds = _kinds(kind, n)
    residual = read_numbers(ln_residual, "ln_residual", n)
    reasons = (
        ("task missing", tasks.codes < 0),
        ("unit missing", units.codes < 0),
        ("ln_residual not finite", ~(np.abs(residual) <= 1e3)),
    )
    keep, dropped = kept_rows(n, reasons)
    points = Points(tasks.codes[keep], units.codes[keep], kinds.codes[keep])
    decider = Decider(points, tasks.names, kinds.names)
    of_tasks = _mode_evidence(points, np.zeros(points.task.size, np.int64), residual[keep], units.names)
    suspects = [code for code, parts in of_tasks.items() if parts[0].mixed and decider.has_kinds(code)]
    suspect = np.isin(points.task, suspects)
    inside = points.take(suspect)
    of_kinds = _mode_evidence(inside, inside.kind, residual[keep][suspect], units.names)
    for code, parts in of_tasks.items():
        decider.decide(code, parts[0], of_kinds.get(code, {}))
    return decider.result(np.flatnonzero(keep), n, dropped)


def _kinds(kind: object, n: int) -> Labels:
    if kind is None:
        return Labels(texts(1), np.zeros(n, np.int32))
    labels = factorise(kind, "kind")
    if labels.codes.size != n:
        raise InputError(f"kind has {labels.codes.size} rows and task has {n}; they must be equal")
    names = np.append(labels.names.astype(object), [None])
    return Labels(names, np.where(labels.codes < 0, names.size - 1, labels.codes).astype(np.int32))


def _mode_evidence(
    points: Points, part: NDArray[Any], residual: Floats, unit_names: Texts
) -> dict[int, dict[int, Evidence]]:
    if points.task.size == 0:
        return {}
    keys, group = np.unique(np.stack([points.task, part, points.unit]), axis=1, return_inverse=True)
    group = group.ravel()
    centred, n_jobs, sigma = centre(group, residual)
    first = np.flatnonzero(np.any(np.diff(keys[:2], axis=1, prepend=-1) != 0, axis=0))
    ends = np.append(first[1:], keys.shape[1])
    order = np.argsort(group, kind="stable")
    ptr = np.searchsorted(group[order], np.append(first, keys.shape[1]))
    evidence: dict[int, dict[int, Evidence]] = {}
    for index, (begin, end) in enumerate(zip(first.tolist(), ends.tolist(), strict=True)):
        rows = order[ptr[index] : ptr[index + 1]]
        rows = rows[n_jobs[group[rows]] >= LEAST_JOBS_OF_UNIT]
        names = unit_names[keys[2, begin:end]]
        evidence.setdefault(int(keys[0, begin]), {})[int(keys[1, begin])] = _modes_of(
            centred[rows], n_jobs[begin:end], sigma[begin:end], names
        )
    return evidence


def _modes_of(centred: Floats, n_jobs: Ints, sigma: Floats, names: Texts) -> Evidence:
    tested = n_jobs >= LEAST_JOBS_FOR_WIDTH
    largest = float(sigma[tested].max()) if tested.any() else UNKNOWN
    if centred.size < LEAST_JOBS_OF_TASK:
        return Evidence(sigma=largest, remark="too few jobs to decide")
    valley = deepest_valley(centred)
    columns = (UNKNOWN, UNKNOWN, UNKNOWN)
    if valley.gap > 0:
        columns = float(np.exp(valley.gap)), valley.share, valley.significance
    if valley.bimodal:
        modes = f"two modes {columns[0]:.1f}x apart, {100 * valley.share:.0f} % of the jobs in the smaller"
        return Evidence(*columns, largest, modes)
    wide = too_wide(sigma, n_jobs)
    if wide.any():
        worst = int(np.argmax(np.where(wide, sigma, 0.0)))
        return Evidence(*columns, largest, f"robust sigma {sigma[worst]:.2f} at {names[worst]}")
    return Evidence(*columns, largest)
