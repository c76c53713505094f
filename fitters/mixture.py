"""Tasks that hold more than one kind of work, and what to do with them.

Merge jobs beside normal ones in one task give a unit that ran only the former a factor of its own. Its
bucket is perfectly homogeneous; what gives the mixture away is the task as a whole.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.buckets import Floats
from fitters.columns import Labels, factorise, factorise_pair, read_numbers
from fitters.errors import InputError
from fitters.fixed_cost import FixedCosts
from fitters.job_sums import Rows, Scatter, group_sums
from fitters.kinds import Contrast, contrasts
from fitters.log_sums import Logs, LogSums
from fitters.mixture_results import Decider, Evidence, Mixtures, Points, nothing
from fitters.modes import (
    Grouped,
    centre,
    deepest_valley,
    gap_limit,
    least_group,
    least_points,
    least_wide_group,
    share_limit,
    sigma_limit,
    too_wide,
)
from fitters.results import Texts
from fitters.tables import texts

most_row_jobs = 20.0
least_rows = 10


def find_mixtures(
    task: object,
    unit: object,
    ln_residual: object,
    *,
    n_jobs: object = None,
    kind: object = None,
) -> Mixtures:
    """Look for mixed tasks among single jobs.

    Parameters
    ----------
    task, unit
        Labels of each job. Core classes are tasks of their own. Units may be as fine as is known (site and
        CPU model): what differs between units is no mixture.
    ln_residual
        ln of CPU time per event with the fixed cost taken out, see `fixed_cost_residuals`.
    n_jobs
        Jobs of the row, where jobs of nearly the same residual were counted together; None: one.
    kind
        Label of the kind of work (the transformation, a processing type); None or missing: unknown.

    Returns
    -------
    Mixtures

    Raises
    ------
    InputError
        No rows, different lengths, text in a number.

    Notes
    -----
    Every unit's residuals are taken relative to their mode. A task is mixed if the pooled ones have two modes
    more than a factor of two apart with 5 % of the jobs each and a valley of 3 sigma between them (units of 5
    jobs or more, 20 jobs in all), or if the robust sigma of a unit exceeds 0.5 beyond its counting error
    (`modes`). A mixed task is split if it has several kinds; kinds that are still mixed are set aside, as are
    mixed tasks of one kind. Two sorts of the rows.

    >>> rng = np.random.default_rng(1)
    >>> ln_residual = np.concatenate([rng.normal(0, 0.1, 300), rng.normal(-2, 0.1, 100)])
    >>> kind = ["simul"] * 300 + ["merge"] * 100
    >>> find_mixtures(["t"] * 400, ["A", "B"] * 200, ln_residual).tasks.decision.tolist()
    ['set aside']
    >>> find_mixtures(["t"] * 400, ["A", "B"] * 200, ln_residual, kind=kind).tasks.decision.tolist()
    ['split', 'keep', 'keep']
    """
    tasks, units, n = factorise_pair(task, unit)
    kinds = _kinds(kind, n)
    residual = read_numbers(ln_residual, "ln_residual", n)
    jobs = np.ones(n) if n_jobs is None else read_numbers(n_jobs, "n_jobs", n)
    keep, dropped = np.ones(n, bool), {}
    for why, failing in (
        ("task missing", tasks.codes < 0),
        ("unit missing", units.codes < 0),
        ("ln_residual not finite", ~(np.abs(residual) <= 1e3)),
        ("jobs not positive", ~((jobs > 0) & (jobs <= 1e15))),
    ):
        hit = failing & keep
        if hit.any():
            dropped[why] = int(hit.sum())
            keep &= ~hit
    points = Points(tasks.codes[keep], units.codes[keep], kinds.codes[keep], jobs[keep])
    decider = Decider(points, tasks.names, kinds.names)
    whole = _mode_evidence(points, np.zeros(points.task.size, np.int64), residual[keep], units.names)
    suspects = [code for code, found in whole.items() if found[0].mixed and decider.has_kinds(code)]
    suspect = np.isin(points.task, suspects)
    inside = points.take(suspect)
    parts = _mode_evidence(inside, inside.kind, residual[keep][suspect], units.names)
    for code, found in whole.items():
        decider.decide(code, found[0], parts.get(code, {}))
    return decider.result(np.flatnonzero(keep), n, dropped)


def _kinds(kind: object, n: int) -> Labels:
    if kind is None:
        return Labels(texts(1), np.zeros(n, np.int32))
    found = factorise(kind, "kind")
    if found.codes.size != n:
        msg = f"kind has {found.codes.size} rows, task has {n}; they must be equal"
        raise InputError(msg)
    names = np.append(found.names.astype(object), [None])
    return Labels(names, np.where(found.codes < 0, names.size - 1, found.codes).astype(np.int32))


def _mode_evidence(
    points: Points, part: NDArray[Any], residual: Floats, unit_names: Texts
) -> dict[int, dict[int, Evidence]]:
    """Evidence from single jobs, per task and part of it."""
    if points.task.size == 0:
        return {}
    keys, group = np.unique(np.stack([points.task, part, points.unit]), axis=1, return_inverse=True)
    group = group.ravel()
    centred, total, sigma = centre(group, residual, points.jobs)
    first = np.flatnonzero(np.any(np.diff(keys[:2], axis=1, prepend=-1) != 0, axis=0))
    ends = np.append(first[1:], keys.shape[1])
    order = np.argsort(group, kind="stable")
    ptr = np.searchsorted(group[order], np.append(first, keys.shape[1]))
    found: dict[int, dict[int, Evidence]] = {}
    for place, (begin, end) in enumerate(zip(first.tolist(), ends.tolist(), strict=True)):
        mine = order[ptr[place] : ptr[place + 1]]
        mine = mine[total[group[mine]] >= least_group]
        names = unit_names[keys[2, begin:end]]
        evidence = _modes_of(centred[mine], points.jobs[mine], total[begin:end], sigma[begin:end], names)
        found.setdefault(int(keys[0, begin]), {})[int(keys[1, begin])] = evidence
    return found


def _modes_of(value: Floats, jobs: Floats, total: Floats, sigma: Floats, names: Texts) -> Evidence:
    tested = total >= least_wide_group
    largest = float(sigma[tested].max()) if tested.any() else nothing
    if jobs.sum() < least_points:
        return Evidence(sigma=largest, remark="too few jobs to tell")
    valley = deepest_valley(value, jobs)
    columns = (nothing, nothing, nothing)
    if valley.gap > 0:
        columns = float(np.exp(valley.gap)), valley.share, valley.significance
    if valley.bimodal:
        modes = f"two modes {columns[0]:.1f}x apart, {valley.share:.0%} of the jobs in the smaller"
        return Evidence(*columns, largest, modes)
    wide = too_wide(sigma, total)
    if wide.any():
        worst = int(np.argmax(np.where(wide, sigma, 0.0)))
        return Evidence(*columns, largest, f"robust sigma {sigma[worst]:.2f} at {names[worst]}")
    return Evidence(*columns, largest)


def find_mixtures_in_buckets(
    costs: FixedCosts,
    task: object,
    unit: object,
    n_jobs: object,
    events: object,
    cpu_s: object,
    *,
    events_sq: object = None,
    cpu_s_sq: object = None,
    events_cpu_s: object = None,
    logs: LogSums | None = None,
    kind: object = None,
) -> Mixtures:
    """Look for mixed tasks among sums over jobs.

    Parameters
    ----------
    costs
        Fixed costs of the same tasks, from `estimate_fixed_cost`; rho is taken out where it is known.
    task, unit, n_jobs, events, cpu_s, events_sq, cpu_s_sq, events_cpu_s
        Sums over jobs as there. Several rows per (task, unit), one per day or CPU model, are welcome.
    logs
        Sums of ln(events) and ln(CPU time) of the same rows.
    kind
        Label of the kind of work; each row holds one kind.

    Returns
    -------
    Mixtures

    Raises
    ------
    InputError
        As in `estimate_fixed_cost`.

    Notes
    -----
    With kinds: each kind is compared with the one of most jobs inside the units that ran both (`kinds`). A
    task is mixed if one takes more than twice as much CPU time per event as the other, significantly, and
    holds 5 % of the jobs of the task or of a unit. It is then split.

    Without them, and inside each kind, there is only the width of the scatter inside the rows:

    - With `logs`: the standard deviation of ln(CPU time) about its regression on ln(events), one slope per
      task, which also takes the fixed cost out. Mixed if its median over the jobs and the pooled one exceed
      0.5, or more for less than 500 jobs (`log_sums`).
    - With sums of squares only: a row's relative variance v of single jobs about L (n + rho), sigma =
      sqrt(ln(1 + v)). One stuck job in a hundred widens that as much as another kind, so that only rows of 5
      to 20 jobs are looked at, and at least ten are needed. Mixed if the median over their jobs exceeds 0.5.

    Both see less than `find_mixtures` does. Sums of CPU time per event and of its square would not help: they
    contain the fixed cost, which cannot be taken out of them.

    >>> from fitters import estimate_fixed_cost
    >>> unit, kind = ["A", "A", "B", "B"], ["simul", "merge"] * 2
    >>> sums = {"n_jobs": [60, 20, 80, 10], "events": [600, 200, 800, 100], "cpu_s": [1200, 40, 2400, 30]}
    >>> costs = estimate_fixed_cost(["t"] * 4, unit, **sums)
    >>> found = find_mixtures_in_buckets(costs, ["t"] * 4, unit, **sums, kind=kind)
    >>> found.tasks.decision.tolist(), found.tasks.reason[0]
    (['split', 'keep', 'keep'], 'mixed task: merge takes 0.10x the CPU time per event of simul, ...')
    """
    rows = Rows.read(task, unit, n_jobs, events, cpu_s, (events_sq, cpu_s_sq, events_cpu_s))
    kinds = _kinds(kind, rows.n_rows)
    points = Points(rows.task, rows.unit, kinds.codes[rows.place], rows.jobs)
    decider = Decider(points, rows.task_names, kinds.names)
    known = dict(zip(costs.tasks.name.tolist(), costs.tasks.rho.tolist(), strict=True))
    per_task = np.array([known.get(name, nothing) for name in rows.task_names.tolist()], np.float64)
    rho = np.nan_to_num(per_task, nan=0.0)[rows.task]
    variance = _variance_of_rows(rows, rho)
    mean = np.log(rows.cpu_s) - np.log(rows.events + rho * rows.jobs)
    scatter = Logs.read(logs, rows) if logs is not None else None

    def widths(part: NDArray[Any], mine: NDArray[Any], n: int) -> list[Evidence]:
        if scatter is not None:
            return scatter.take(mine).evidence(part, rows.unit[mine], rows.jobs[mine], n)
        return _width_evidence(part, variance[mine], rows.jobs[mine], n)

    whole = widths(rows.task, np.arange(rows.task.size), rows.task_names.size)
    for code, mine in decider.members.items():
        evidence, parts = whole[code], {}
        if decider.has_kinds(code):
            inside = points.take(mine)
            clear = _clearest(inside, mean[mine], variance[mine])
            if clear is not None:
                evidence = replace(
                    evidence,
                    ratio=float(np.exp(clear.ln_ratio)),
                    share=clear.share,
                    significance=abs(clear.ln_ratio) / clear.error,
                    mixed=_sentence(clear, kinds.names),
                )
            if evidence.mixed:
                names, number = np.unique(inside.kind, return_inverse=True)
                found = widths(number, mine, names.size)
                parts = dict(zip(names.tolist(), found, strict=True))
        decider.decide(code, evidence, parts)
    return decider.result(rows.place, rows.n_rows, rows.dropped)


def _variance_of_rows(rows: Rows, rho: Floats) -> Floats:
    """Relative variance of a job in every row, none merged."""
    each = np.arange(rows.task.size, dtype=np.int32)
    scatter = Scatter.of(replace(rows, unit=each, unit_names=each))
    sorted_rho = np.empty(rho.size)
    sorted_rho[scatter.row] = rho
    return np.asarray(scatter.relative_variance(sorted_rho)[scatter.row])


def _width_evidence(group: NDArray[Any], variance: Floats, jobs: Floats, n: int) -> list[Evidence]:
    """Evidence from second moments, per group of rows."""
    tested = np.isfinite(variance) & (jobs >= least_group) & (jobs <= most_row_jobs)
    rows = np.bincount(group[tested], minlength=n)
    sigma = np.full(n, nothing)
    if tested.any():
        names, place = np.unique(group[tested], return_inverse=True)
        spread = np.sqrt(np.log1p(variance[tested]))
        sigma[names] = Grouped.of(place, spread, jobs[tested]).medians()
    found = []
    for width, number in zip(sigma.tolist(), rows.tolist(), strict=True):
        if number < least_rows:
            found.append(Evidence(sigma=width, remark="too few rows of 5 to 20 jobs to tell"))
        elif width > sigma_limit:
            mixed = f"half of the jobs are in rows of sigma {width:.2f} or more"
            found.append(Evidence(sigma=width, mixed=mixed))
        else:
            found.append(Evidence(sigma=width))
    return found


def _clearest(points: Points, mean: Floats, variance: Floats) -> Contrast | None:
    """The kind that differs most clearly from the main one, if any does."""
    keys, row = np.unique(np.stack([points.unit, points.kind]), axis=1, return_inverse=True)
    row, size = row.ravel(), keys.shape[1]
    jobs = group_sums(row, points.jobs, size)
    average = group_sums(row, points.jobs * mean, size) / jobs
    seen = np.isfinite(variance)
    number = group_sums(row, points.jobs * seen, size)
    inside = group_sums(row, points.jobs * np.where(seen, variance, 0.0), size)
    spread = np.divide(inside, number, out=np.full(size, nothing), where=number > 0)
    _, unit = np.unique(keys[0], return_inverse=True)
    found = contrasts(unit, keys[1].astype(np.intp), jobs, average, spread)
    clear = [contrast for contrast in found if contrast.differs(gap_limit, share_limit)]
    return max(clear, key=lambda contrast: abs(contrast.ln_ratio) / contrast.error, default=None)


def _sentence(contrast: Contrast, names: Texts) -> str:
    kind, main = names[contrast.kind], names[contrast.main]
    where = "" if contrast.paired else ", though no unit ran both"
    return (
        f"{kind} takes {np.exp(contrast.ln_ratio):.2f}x the CPU time per event of {main}, "
        f"up to {contrast.share:.0%} of the jobs of a unit{where}"
    )
