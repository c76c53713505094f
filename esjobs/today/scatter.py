"""Lasting scatter inside a site: levels of its queues, and what nights with the same tasks share. Pure."""

import numpy as np

from esjobs.core.arrays import Floats, Ints
from esjobs.today.expected import FACTOR, MOST_OF_NIGHT, NIGHTS, Cells, divided, sum_by

PASSES = 3  # Levels of queues and of tasks are fitted in turn
LATEST = 7  # Nights whose surprises are seen together
SHARED = 0.3  # Correlation of nights with the same tasks, before there is a past
PAIRS = 100.0  # Pairs of nights that it weighs
PAIRS_OF_SITE = 50.0  # Pairs of a site's own nights that all sites weigh
MOST_SHARED = 0.95
MOST_Z = 2.0  # Larger surprises say no more
FORETOLD = 0.5  # Nights before may be those of an incident: what they foretell counts half


def queue_levels(queue: Ints, site: Ints, task: Ints, over: Floats, under: Floats, soft: float) -> Floats:
    """Return by queue its level over that of its site, in tasks that other queues run too.

    ``over``, ``under``: terms of the watched share, 0 where a row is not learned from. ``soft``: weight of
    the level 1, in units of ``over``.
    """
    n = int(queue.max(initial=-1)) + 1
    of_site = np.zeros(n, np.int64)
    of_site[queue] = site
    level = absolute = np.ones(n)
    soft = max(soft, 1e-9)
    for _ in range(PASSES):
        of_task = divided(sum_by(task, over, 0), sum_by(task, under * absolute[queue], 0))
        seen, due = (sum_by(queue, values, n) for values in (over, under * of_task[task]))
        of_all = divided(sum_by(of_site, seen, 0), sum_by(of_site, due, 0))[of_site]
        level = np.clip((seen + soft) / (due * of_all + soft), *FACTOR)
        absolute = level * of_all
    return level


def overlaps(cells: Cells, n_sites: int, n_tasks: int, n_days: int) -> Floats:
    """Return by site, age of a day and number of days before it how alike their tasks are, from 0 to 1.

    The cosine of the shares of tasks in the jobs of both days; 0 if one has none.
    """
    key = (cells.age * n_sites + cells.site) * n_tasks + cells.task
    day = cells.age * n_sites + cells.site
    size = sum_by(day, cells.under**2, n_sites * n_days)
    found = np.zeros((n_sites, n_days, LATEST))
    for lag in range(1, LATEST):
        other = key + lag * n_sites * n_tasks
        at = np.minimum(np.searchsorted(key, other), max(len(key) - 1, 0))
        product = np.where(key[at] == other, cells.under * cells.under[at], 0.0)
        both = np.sqrt(size[: n_sites * (n_days - lag)] * size[n_sites * lag :])
        cosine = divided(sum_by(day, product, n_sites * n_days)[: len(both)], both)
        found[:, : n_days - lag, lag] = cosine.reshape(-1, n_sites).T
    return found


def shared(z: Floats, overlap: Floats) -> Floats:
    """Return by site the correlation of nights that have all tasks in common.

    ``z``: surprises of earlier days, a row per site, last day last; NaN where not judged. ``overlap``: of
    these days and those before, as :func:`overlaps` gives it from age 1 on. What is common to all sites is
    fitted by moments, and each site's own is shrunk to it.
    """
    z = np.clip(z[:, ::-1], -MOST_Z, MOST_Z)
    over, under = np.zeros(len(z)), np.zeros(len(z))
    for lag in range(1, LATEST):
        now, before, of = z[:, :-lag], z[:, lag:], overlap[:, : z.shape[1] - lag, lag]
        over += np.nansum(now * before * of, axis=1)
        under += np.nansum((now**2 + before**2) / 2 * of**2, axis=1)
    common = (over.sum() + PAIRS * SHARED) / (under.sum() + PAIRS)
    own: Floats = np.clip((over + PAIRS_OF_SITE * common) / (under + PAIRS_OF_SITE), 0.0, MOST_SHARED)
    return own


def covariances(of_site: Floats, overlap: Floats) -> Floats:
    """Return by site the covariance of the surprises of the latest nights, last night last.

    ``of_site``: correlation of nights with the same tasks; ``overlap``: from the judged day on.
    """
    found = np.tile(np.eye(LATEST), (len(of_site), 1, 1))
    for age in range(LATEST):
        for lag in range(1, LATEST - age):
            now, before = LATEST - 1 - age, LATEST - 1 - age - lag
            found[:, now, before] = found[:, before, now] = of_site * overlap[:, age, lag]
    return found


def of_latest(z: Floats, covariance: Floats, *, foretold: float = FORETOLD) -> Floats:
    """Return the surprise of the last nights, by ``NIGHTS``, beside what the nights before foretell.

    ``z``: a row a stream, last night last; NaN where not judged. ``covariance``: of the latest nights. An
    error of the expectation lasts as long as its tasks, an incident begins. ``foretold``: the part that
    counts; 0: the nights before say nothing.
    """
    judged = np.isfinite(z[:, -LATEST:])
    value = np.minimum(np.where(judged, z[:, -LATEST:], 0.0), MOST_OF_NIGHT)
    both = (judged[:, :, None] & judged[:, None, :]) | np.eye(LATEST, dtype=np.bool_)
    covariance = np.where(both, covariance, 0.0)
    found = np.zeros((len(z), len(NIGHTS)))
    for number, w in enumerate(NIGHTS):
        before, within = slice(None, LATEST - w), slice(LATEST - w, None)
        shared_with = covariance[:, before, within].sum(axis=2)
        weight = np.linalg.solve(covariance[:, before, before], shared_with[..., None])[..., 0]
        due = (weight * np.clip(value[:, before], -MOST_Z, MOST_Z)).sum(axis=1)
        variance = covariance[:, within, within].sum(axis=(1, 2))
        if foretold > 0:
            variance = variance - (weight * shared_with).sum(axis=1)
        found[:, number] = (value[:, within].sum(axis=1) - foretold * due) / np.sqrt(variance)
    return found
