"""Expected sums of a day by site, task and kind of work, and the surprise of what was observed. Pure.

The expectation is the site's own base per kind of work, times a factor of the task learned from all other
sites, those of the same day included: it is blind to the mix of work, and a fault of a task is no fault of
the sites that run it.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from esjobs.core.arrays import Floats, Ints, Mask

HALF_LIFE = 14.0  # Days after which a day counts half in a base
MEMORY = 0.9  # Weight of a day in the factor of a task, per day of age
FACTOR = (0.1, 10.0)  # Limits of the factor of a task
LAG = 3  # Last days of a site that say nothing about itself, so that what lasts is not learned at once
CELL_SD = 0.05  # Scatter of the ratio of a task at a site from day to day
PAIR_SD = 0.04  # Of it the part that lasts as long as the task lives
TASK_FAILURES = 0.15  # Overdispersion of the failures of one task from day to day
PASSES = 3  # Bases of sites and factors of tasks are fitted in turn
STEADY_DAYS = 5  # Weight of the last two, in days, as those of a task everywhere, beside the task's own past
STEADY = (0.015**2, 0.1**2)  # Limits of the variance of a task's ratio, and of its failures
STEADY_FAILURES = (0.01, 0.6)
OWN_SD = 0.15  # Scatter of sites around the base of their peers, in ln
DAY_SD = 0.03  # Scatter of one day of a site, in ln
NIGHTS = (1, 2, 3, 5)  # Lengths of windows in nights
LEAST_SURPRISE = -2.0  # A day without a failure says no more than this
MOST_OF_NIGHT = 8.0  # Of one night among several
MOST_SURPRISE = 38.0  # Beyond it the tail of a normal distribution is 0


@dataclass(frozen=True)
class Cells:
    """Sums of several days by site and task, one row per site, task and day.

    ``age``: days before the judged one, which has 0. ``kind``: of the task. ``over``, ``under``: the terms of
    the watched share: CPU s and core s, or failed and ended jobs. ``n``: jobs. ``level``: of the queues over
    that of the site.
    """

    age: Ints
    site: Ints
    task: Ints
    kind: Ints
    over: Floats
    under: Floats
    n: Floats
    level: Floats | float = 1.0

    @property
    def leveled(self) -> Floats:
        """Denominator at the level of the site."""
        return self.under * self.level

    @property
    def now(self) -> Mask:
        """Rows of the judged day."""
        rows: Mask = self.age == 0
        return rows


@dataclass(frozen=True)
class Prior:
    """Weights of the peers before a site or task has a past, by kind, and spreads.

    ``base``: of the peers' ratio, in units of ``under``. ``task``: of the factor 1, in units of ``over``.
    ``spread``: of the factors of tasks of a kind, in ln. ``job``: relative variance of one job. ``counts``:
    True of failures. ``own``: weight of what a site did with a kind of work before; 0 if its tasks say all.
    """

    base: Floats
    task: Floats
    spread: Floats
    job: Floats
    counts: bool = False
    own: float = 1.0


@dataclass(frozen=True)
class Expected:
    """Expectation of the rows of the judged day.

    ``value``: by the factor of other sites; ``past``: without that day. Relative variances: ``cell``: of a
    row around ``value``; ``leaf``: of it the part of its own; ``new``: of the factor of its task by the past;
    ``steady``: of its task everywhere from day to day.
    """

    value: Floats
    past: Floats
    cell: Floats
    leaf: Floats
    new: Floats
    steady: Floats


def efficiency_prior(cells: Cells, kinds: int) -> Prior:
    """Return the prior of efficiency: 20 jobs of a kind for a site, 30 for a task."""
    jobs = sum_by(cells.kind, cells.n, kinds)
    core = divided(sum_by(cells.kind, cells.under, kinds), jobs)
    cpu = divided(sum_by(cells.kind, cells.over, kinds), jobs)
    return Prior(20 * core, 30 * cpu, spreads(cells, kinds), np.full(kinds, 0.25))


def failure_prior(kinds: int) -> Prior:
    """Return the prior of failures: 300 jobs for a site, 3 failures for a task."""
    return Prior(
        np.full(kinds, 300.0), np.full(kinds, 3.0), np.full(kinds, 0.8), np.zeros(kinds), counts=True
    )


def spreads(cells: Cells, kinds: int) -> Floats:
    """Return the scatter of the ratios of tasks inside each kind, in ln; 0.1 for a kind with few tasks."""
    past = ~cells.now & (cells.over > 0) & (cells.under > 0)
    tasks, first, code = np.unique(cells.task[past], return_index=True, return_inverse=True)
    over, under, n = (sum_by(code, values[past], len(tasks)) for values in (cells.over, cells.under, cells.n))
    kind = cells.kind[past][first]
    ratio = np.log(over / under)
    weight = np.minimum(n, 300.0)
    total = sum_by(kind, weight, kinds)
    mean = divided(sum_by(kind, weight * ratio, kinds), total)
    square = sum_by(kind, weight * (ratio - mean[kind]) ** 2, kinds)
    return np.clip(np.sqrt((square + 300 * 3 * 0.1**2) / (total + 300 * 3)), 0.03, 0.5)


def expect(cells: Cells, prior: Prior, shape: tuple[int, int, int], skip: Floats, suspects: Mask) -> Expected:
    """Return the expectation of the judged day.

    ``shape``: numbers of sites, tasks and kinds. ``skip``: per row, 0 for a day that is not learned from,
    else 1. ``suspects``: sites whose own judged day says nothing about tasks.
    """
    n_sites, n_tasks, n_kinds = shape
    now = cells.now
    late = (cells.age <= LAG) & _has_past(cells, n_sites)[cells.site]
    learned = np.where(now | late, 0.0, skip * decay(cells.age))
    weight = np.ones(n_tasks)
    weight[cells.task] = prior.task[cells.kind]
    # what tasks differ by is none of the sites that run them, and the other way round
    base, level = np.ones(n_sites * n_kinds), np.ones(n_tasks)
    site_kind = cells.site * n_kinds + cells.kind
    for _ in range(PASSES):
        base = _bases(cells, prior, learned, cells.leveled * level[cells.task], n_sites, n_kinds)
        of_tasks = sum_by(cells.task, learned * cells.leveled * base[site_kind], n_tasks)
        level = np.clip(
            (sum_by(cells.task, learned * cells.over, n_tasks) + weight) / (of_tasks + weight), *FACTOR
        )
    due = cells.leveled * base[site_kind]
    memory = np.where(now, 0.0, skip * MEMORY**cells.age)
    past_over, past_due = (sum_by(cells.task, memory * values, n_tasks) for values in (cells.over, due))
    others = now & ~suspects[cells.site]
    all_over, all_due = (
        past + sum_by(cells.task[others], values[others], n_tasks)
        for past, values in ((past_over, cells.over), (past_due, due))
    )
    pair = cells.site * n_tasks + cells.task
    latest = np.where(now, others * 1.0, np.where(late, memory, 0.0))
    own_over, own_due = (_of_pairs(pair, latest * values)[now] for values in (cells.over, due))
    of_task = np.clip((past_over + weight) / (past_due + weight), *FACTOR)
    task, prior_task = cells.task[now], prior.task[cells.kind[now]]
    support = all_due[task] - own_due
    factor = np.clip((all_over[task] - own_over + prior_task) / (support + prior_task), *FACTOR)
    kind = cells.kind[now]
    unknown, new = (
        prior.spread[kind] ** 2 * prior_task / (by + prior_task) for by in (support, past_due[task])
    )
    leaf, own = _cell_variance(cells, prior)[now], np.ones(len(kind))
    if not prior.counts:
        lasting = _lasting(cells, due * of_task[cells.task], prior, learned > 0, pair)
        own, settled = (values[now] for values in lasting)
        leaf = leaf - PAIR_SD**2 * settled
    steady = _steady(cells, due, prior, skip, n_tasks)[task]
    value, past = (due[now] * own * each for each in (factor, of_task[task]))
    return Expected(value, past, unknown + leaf, leaf, new, steady)


def _cell_variance(cells: Cells, prior: Prior) -> Floats:
    """Return the relative variance of each row: of a task at a site on a day, and of its jobs."""
    variance: Floats = CELL_SD**2 + prior.job[cells.kind] / np.maximum(cells.n, 1.0)
    return variance


def _lasting(
    cells: Cells, expected: Floats, prior: Prior, learned: Mask, pair: Ints
) -> tuple[Floats, Floats]:
    """Return by row the lasting factor of its task at its site, and how much of it the past settles.

    Its logarithm is drawn to 0: a task that is new at a site has none.
    """
    rows = learned & (expected > 0) & (cells.over > 0)
    _, code = np.unique(pair, return_inverse=True)
    size = int(code.max(initial=-1)) + 1
    over, due = (sum_by(code[rows], values[rows], size) for values in (cells.over, expected))
    of_day = _cell_variance(cells, prior)[rows] - PAIR_SD**2
    noise = divided(sum_by(code[rows], expected[rows] ** 2 * of_day, size), due**2)
    settled = np.where(due > 0, PAIR_SD**2 / (PAIR_SD**2 + noise), 0.0)
    ratio = np.log(np.where(due > 0, over, 1.0) / np.where(due > 0, due, 1.0))
    factor = np.exp(np.clip(settled * ratio, -3 * PAIR_SD, 3 * PAIR_SD))
    return factor[code], settled[code]


def _steady(cells: Cells, due: Floats, prior: Prior, skip: Floats, n_tasks: int) -> Floats:
    """Return the variance of the ratio of each task everywhere from day to day, by its own past.

    What jobs and cells scatter is taken off. A young task has that of a cell, or the usual overdispersion.
    """
    past = ~cells.now & (skip > 0) & (due > 0)
    key, code = np.unique(cells.task[past] * 64 + cells.age[past], return_inverse=True)
    over, expected = (sum_by(code, values[past], len(key)) for values in (cells.over, due))
    task, days = key // 64, sum_by(key // 64, np.ones(len(key)), n_tasks)
    usual, limits = (TASK_FAILURES, STEADY_FAILURES) if prior.counts else (CELL_SD**2, STEADY)
    if prior.counts:
        level = divided(sum_by(task, over, n_tasks), sum_by(task, expected, n_tasks))
        mean = np.maximum(expected * level[task], 0.5)
        noise = 1 / mean
        change = (over - mean) / mean
    else:
        leaf = _cell_variance(cells, prior)[past]
        noise = divided(sum_by(code, due[past] ** 2 * leaf, len(key)), expected**2)
        ratio = np.log(np.maximum(over, 1e-9) / expected)
        weight = 1 / (noise + usual)
        level = divided(sum_by(task, weight * ratio, n_tasks), sum_by(task, weight, n_tasks))
        change = ratio - level[task]
    # a day of few jobs tells little, and the first day of a task nothing
    weight = 1 / (1 + noise / usual) ** 2
    unbiased = days[task] / np.maximum(days[task] - 1, 1)
    excess = np.minimum(unbiased * change**2 - noise, 9 * (noise + usual))
    own = np.where(days > 1, sum_by(task, weight, n_tasks), 0.0)
    found = np.where(days > 1, sum_by(task, weight * excess, n_tasks), 0.0) + STEADY_DAYS * usual
    steady: Floats = np.clip(found / (own + STEADY_DAYS), *limits)
    return steady


def decay(age: Ints) -> Floats:
    """Return the weights of days in a base."""
    return np.power(0.5, age / HALF_LIFE)


def _bases(
    cells: Cells, prior: Prior, learned: Floats, leveled: Floats, n_sites: int, n_kinds: int
) -> Floats:
    code, size = cells.site * n_kinds + cells.kind, n_sites * n_kinds
    over, under = (sum_by(code, learned * values, size) for values in (cells.over, leveled))
    of_kind = np.tile(np.arange(n_kinds), n_sites)
    of_site = np.repeat(np.arange(n_sites), n_kinds)
    grid_under = sum_by(of_kind, under, n_kinds)
    grid_over = sum_by(of_kind, over, n_kinds)
    # a kind without a past has the ratio of all; before any past, that of the judged day
    all_over, all_under = float(grid_over.sum()), float(grid_under.sum())
    if all_over <= 0 or all_under <= 0:
        all_over, all_under = float(cells.over.sum()), float(cells.under.sum())
    ratio = all_over / all_under if all_under > 0 else 0.0
    grid = (grid_over + prior.base * ratio) / (grid_under + prior.base + 1e-300)
    softening = float(np.mean(prior.base * grid)) if n_kinds else 1.0
    level = (sum_by(of_site, over, n_sites) + softening) / (
        sum_by(of_site, under * grid[of_kind], n_sites) + softening + 1e-300
    )
    weight = prior.base[of_kind]
    due = weight * grid[of_kind] * level[of_site]
    return (prior.own * over + due) / (prior.own * under + weight + 1e-300)


def _has_past(cells: Cells, n_sites: int) -> Mask:
    """True if sites have a week of days before the last ones."""
    days = np.unique(cells.site[cells.age > LAG] * 64 + cells.age[cells.age > LAG])
    enough: Mask = np.bincount(days // 64, minlength=n_sites) >= 7
    return enough


def _of_pairs(pair: Ints, values: Floats) -> Floats:
    _, code = np.unique(pair, return_inverse=True)
    return sum_by(code, values, 0)[code] if len(pair) else values


def sum_by(code: Ints, values: Floats, size: int) -> Floats:
    """Return the sum of values by code."""
    return np.bincount(code, values, minlength=size).astype(np.float64)


def divided(over: Floats, under: Floats) -> Floats:
    """Return a ratio; 0 without a denominator."""
    return np.divide(over, under, out=np.zeros(len(over)), where=under > 0)


def site_variance(site: Ints, value: Floats, cell: Floats, n_sites: int) -> Floats:
    """Return the relative variance of the sums of sites, whose rows are independent."""
    total = sum_by(site, value, n_sites)
    return divided(sum_by(site, value**2 * cell, n_sites), total**2)


@dataclass(frozen=True)
class Past:
    """Earlier days of streams, one row a stream, NaN where a day is not learned from."""

    observed: Floats
    expected: Floats
    variance: Floats


@dataclass(frozen=True)
class Surprise:
    """Standard deviations to the bad side, and the interval of two of them around the expectation.

    ``mean``: expected sum after the stream's own past; ``sd``: standard deviation of its logarithm.
    """

    z: Floats
    mean: Floats
    sd: Floats


def ratio_surprise(
    observed: Floats, expected: Floats, variance: Floats, past: Past, *, bad: int = -1
) -> Surprise:
    """Return the surprise of low sums: a Student-t on the log ratio with the stream's own scatter.

    ``bad``: 1 for that of high ones.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        residual = bad * np.log(past.observed / past.expected)
    residual = np.where(np.isfinite(residual), residual, np.nan)
    spread = np.where(np.isfinite(residual), past.variance, np.nan)
    scale = 2.2 * _median(residual**2 / spread, 1.0)
    limit = 3 * np.sqrt(scale * spread)
    n = np.isfinite(residual).sum(axis=1)
    centre = np.nansum(np.clip(residual, -limit, limit), axis=1) / (n + 3)
    square = np.minimum((residual - centre[:, None]) ** 2 / spread, 9 * scale)
    own = (np.nansum(square, axis=1) + 7 * scale) / (n + 7)
    young = OWN_SD**2 / (1 + n * (OWN_SD / DAY_SD) ** 2)
    sd = np.sqrt(own * variance + young)
    mean = expected * np.exp(bad * centre)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = bad * np.log(observed / mean)
    usable = (expected > 0) & (variance > 0)
    tail = special.stdtr(4 + n / 2, -np.where(usable, low, 0.0) / np.where(usable, sd, 1.0))
    return Surprise(_z(tail), mean, sd)


def count_surprise(observed: Floats, expected: Floats, variance: Floats, past: Past) -> Surprise:
    """Return the surprise of high counts: a negative-binomial tail with the stream's own overdispersion."""
    level = (np.nansum(past.observed, axis=1) + 5) / (np.nansum(past.expected, axis=1) + 5)
    due = np.maximum(past.expected * level[:, None], 1e-9)
    excess = ((past.observed - due) ** 2 - due) / due**2
    weight = np.where(np.isfinite(excess), 1 / (1 / due + 0.15) ** 2, 0.0)
    total_weight = float(weight.sum())
    grid = (
        max(float(np.nansum(weight * np.clip(excess, -4, 9))) / total_weight, 0.0) if total_weight else 0.15
    )
    grid = max(grid, 0.02)
    capped = np.where(np.isfinite(excess), np.minimum(excess, 9 * (1 / due + grid)), 0.0)
    usual = total_weight / max(int((weight > 0).sum()), 1)
    of_grid = 10 * (usual or 1.0)
    own = ((weight * capped).sum(axis=1) + of_grid * grid) / (weight.sum(axis=1) + of_grid)
    size = np.maximum(own, 0.3 * grid) * 1.15 + 0.03 + variance
    mean = np.maximum(expected * level, 1e-9)
    return Surprise(count_z(observed, mean, size), mean, np.sqrt(size + 1 / mean))


def count_z(observed: Floats, mean: Floats, size: Floats) -> Floats:
    """Return the surprise of counts as high for a mean and an overdispersion: a negative-binomial tail."""
    grows = size * mean
    return _z(np.asarray(special.betainc(observed, 1 / size, grows / (1 + grows)), np.float64))


def _median(values: Floats, default: float) -> float:
    finite = values[np.isfinite(values)]
    return max(float(np.median(finite)), 0.05) if len(finite) else default


def _z(tail: Floats) -> Floats:
    return np.clip(-special.ndtri(tail), LEAST_SURPRISE, MOST_SURPRISE)


def combined(total: Floats, categories: Floats) -> Floats:
    """Return the surprise of failures from that of their number and of each category (a column each)."""
    tails = [2 * special.ndtr(-total)]
    if categories.shape[1]:
        tails.append(2 * categories.shape[1] * special.ndtr(-categories).min(axis=1))
    return _z(np.minimum(np.minimum.reduce(tails), 1.0))


def of_nights(z: Floats) -> Floats:
    """Return the surprise of the last nights, by ``NIGHTS``; ``z``: a row a stream, last night last.

    Nights are independent.
    """
    limited = np.minimum(np.where(np.isfinite(z), z, 0.0), MOST_OF_NIGHT)
    sums = np.stack([limited[:, -w:].sum(axis=1) for w in NIGHTS], axis=1)
    found: Floats = sums / np.sqrt(np.array(NIGHTS))
    return found


def onset(z: Floats) -> int:
    """Return how many nights before the last one a lasting change began, by likelihood; last night last.

    >>> onset(np.array([0.2, -0.5, 8.0, 8.0])), onset(np.array([0.2, 8.0])), onset(np.array([5.0, 6.0, 8.0]))
    (1, 0, 2)
    """
    limited = np.clip(np.where(np.isfinite(z), z, -np.inf), -8.0, 8.0)[::-1]
    number = np.arange(1, len(limited) + 1)
    total = np.cumsum(limited)
    gain = np.where(total > 0, total**2 / (2 * number), 0.0)
    # a part that did not differ ends it
    open_until = int(np.argmax(limited < 1.0)) if (limited < 1.0).any() else len(limited)
    return int(np.argmax(gain[: max(open_until, 1)]))
