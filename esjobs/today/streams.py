"""Streams of a day: observed and expected by site, and everywhere, of efficiency, failures and categories."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from esjobs.core.arrays import Floats, Mask
from esjobs.schema.today import EFFICIENCY, FAILED
from esjobs.today.days import SUSPECT, Day
from esjobs.today.expected import (
    CELL_SD,
    Cells,
    Expected,
    Past,
    Prior,
    Surprise,
    combined,
    count_surprise,
    efficiency_prior,
    failure_prior,
    ratio_surprise,
    site_variance,
    sum_by,
)

NEW_FAILURES = 0.3  # Least expected number of failures of a category
NEW_SHARE = 0.02  # Least expected share of a category
QUEUE_SOFT = 3.0  # Weight of a queue's level as that of its site, beside that of a new task's factor
GRID_SD = 0.02  # Scatter of the grid from day to day, in ln


@dataclass(frozen=True)
class Sides:
    """Observed, expected, denominator and relative variance, by site, then everywhere by the past alone.

    ``before``: what the night before would have been today, if it counts too.
    """

    observed: Floats
    expected: Floats
    base: Floats
    variance: Floats
    before: Floats | None = None


@dataclass(frozen=True)
class Stream:
    """One metric of all places. ``mean``, ``low``, ``high``: expected share; ``z``: NaN if not judged.

    ``per_failure``: of failures, the core s of one beyond the expected ones, by what their categories use.
    """

    sides: Sides
    mean: Floats
    low: Floats
    high: Floats
    z: Floats
    cost: Floats
    per_failure: Floats | None = None


@dataclass(frozen=True)
class Expectations:
    """Cells of a metric with their expectation, the sums by place, and levels by queue."""

    cells: Cells
    expected: Expected
    sides: Sides
    levels: Floats


def efficiency(day: Day) -> Expectations:
    """Return what is expected of the CPU time of finished jobs."""
    sums = day.sums
    rows = sums.finished & (sums.measured_core_s > 0)
    numbers = (day.cpu, sums.measured_core_s, sums.n_measured)
    prior = efficiency_prior(day.cells(rows, *numbers), day.shape[2])
    cells, levels = _leveled(day, rows, numbers, prior)

    suspects = np.zeros(day.n_sites, np.bool_)
    for _ in range(2):
        expected = day.expected(cells, prior, EFFICIENCY, suspects)
        sides = sides_of(day, cells, expected)
        suspects = efficiency_surprise(day, sides).z[:-1] > SUSPECT
    return Expectations(cells, expected, sides, levels)


def failures(day: Day) -> Expectations:
    """Return what is expected of the number of failed jobs."""
    sums = day.sums
    prior, rows = failure_prior(day.shape[2]), np.ones(len(day.age), np.bool_)
    cells, levels = _leveled(day, rows, (day.failed, sums.n_jobs, sums.n_jobs), prior)
    suspects = np.zeros(day.n_sites, np.bool_)
    for _ in range(2):
        expected = day.expected(cells, prior, FAILED, suspects)
        sides = sides_of(day, cells, expected)
        past = day.past_of(FAILED)
        suspects = count_surprise(sides.observed, sides.expected, sides.variance, past).z[:-1] > SUSPECT
    return Expectations(cells, expected, sides, levels)


def _leveled(
    day: Day, rows: Mask, numbers: tuple[Floats, Floats, Floats], prior: Prior
) -> tuple[Cells, Floats]:
    """Return cells whose denominators are weighted by the levels of their queues, and these levels."""
    over, under, _ = numbers
    levels = day.levels(rows, over, under, QUEUE_SOFT * float(np.mean(prior.task)))
    return day.cells(rows, *numbers, levels[day.sums.codes["queue"]]), levels


def sides_of(day: Day, cells: Cells, expected: Expected) -> Sides:
    """Return the sums of the cells of the day by place."""
    now, n = cells.now, day.n_sites
    site = cells.site[now]
    observed, due, base = (
        sum_by(site, values, n) for values in (cells.over[now], expected.value, cells.under[now])
    )
    variance = site_variance(site, expected.value, expected.cell, n)
    total = float(expected.past.sum())
    task = sum_by(cells.task[now], expected.past, 1)
    concentrated = float((task**2).sum()) / total**2 if total > 0 else 1.0
    return Sides(
        np.append(observed, observed.sum()),
        np.append(due, total),
        np.append(base, base.sum()),
        np.append(variance, GRID_SD**2 + CELL_SD**2 * concentrated),
    )


def efficiency_surprise(day: Day, sides: Sides) -> Surprise:
    """Return how much less CPU time there was than expected, by place."""
    return ratio_surprise(sides.observed, sides.expected, sides.variance, day.past_of(EFFICIENCY))


def surprise_everywhere(day: Day, sides: Sides) -> Surprise:
    """Return the same of all places together, whose days scatter less than those of any of them."""
    past = day.past_of(EFFICIENCY)
    own = Past(past.observed[-1:], past.expected[-1:], past.variance[-1:])
    return ratio_surprise(sides.observed[-1:], sides.expected[-1:], sides.variance[-1:], own)


def efficiency_stream(day: Day, sides: Sides) -> Stream:
    """Return the stream of efficiency."""
    surprise = efficiency_surprise(day, sides)
    lost = sides.base * (1 - sides.observed / np.maximum(surprise.mean, 1e-9))
    return stream_of(day, sides, surprise, np.where(surprise.mean > 0, lost, 0.0))


def failure_streams(
    day: Day,
    usual: Day,
    of: Expectations,
    sides: Sides,
    category_factor: Mapping[int, Floats],
    explained: Mask,
) -> dict[str, Stream]:
    """Return the streams of failures and of their categories.

    ``usual``: the day without what fails everywhere. ``category_factor``: by category and place, what wide
    incidents do to its share; ``explained``: rows of tasks that fail everywhere, in whatever category.
    """
    mine: dict[str, Sides] = {}
    of_tasks = np.where(explained, np.maximum(day.failed - usual.failed, 0.0), 0.0)
    more, lost = np.zeros((2, day.n_sites + 1))
    for number, name in enumerate(day.sums.names["outcome"][1:], start=1):
        rows = (day.sums.codes["outcome"] == number) & day.now
        seen, core = (day.by_site(rows, values) for values in (day.sums.n_jobs, day.sums.core_s))
        due = of.sides.expected * _category_share(usual, number, of)
        due = due * category_factor.get(number, np.ones(day.n_sites + 1))
        beyond = np.maximum(seen - due, 0.0)
        more += beyond
        lost += beyond * core / np.maximum(seen, 1.0)
        # a name that never occurred before is no proof of a fault
        due = np.maximum(due, np.maximum(NEW_FAILURES, NEW_SHARE * sides.expected))
        due = due + np.append(day.by_site(rows, of_tasks)[:-1], 0.0)
        mine[f"{FAILED}: {name}"] = replace(sides, observed=seen, expected=due)
    # jobs that fail within minutes cost little beside others that fail after hours
    per_failure = lost / np.maximum(more, 1e-9)
    total = _counts(day, FAILED, sides, per_failure)
    categories = {metric: _counts(day, metric, each, per_failure) for metric, each in mine.items()}
    z = [np.nan_to_num(each.z) for each in categories.values()]
    columns = np.stack(z, axis=1) if z else np.zeros((day.n_sites + 1, 0))
    both = combined(np.nan_to_num(total.z), columns)
    z_of_all = np.where(np.isnan(total.z), np.nan, both)
    return {FAILED: replace(total, z=z_of_all, per_failure=per_failure), **categories}


def _counts(day: Day, metric: str, sides: Sides, per_failure: Floats) -> Stream:
    surprise = count_surprise(sides.observed, sides.expected, sides.variance, day.past_of(metric))
    return stream_of(day, sides, surprise, (sides.observed - surprise.mean) * per_failure)


def stream_of(day: Day, sides: Sides, surprise: Surprise, cost: Floats, *, most: float = 1.0) -> Stream:
    """Return the stream of a metric. ``most``: the largest value that it can have."""
    base = sides.base
    mean = np.divide(surprise.mean, base, out=np.full(len(base), np.nan), where=base > 0)
    low, high = (mean * np.exp(sign * 2 * np.minimum(surprise.sd, 3.0)) for sign in (-1, 1))
    z = np.where((base > 0) & day.ready, surprise.z, np.nan)
    return Stream(sides, mean, low, np.minimum(high, most), z, cost)


def _category_share(day: Day, number: int, of: Expectations) -> Floats:
    """Return the expected share of a category among the failures of each place.

    Its past share at the site, softened by that of the grid, times its change at all other sites.
    """
    sums, n = day.sums, day.n_sites
    shares = past_shares(day)[:, number]
    rows = day.now & (sums.codes["outcome"] == number)
    seen = day.by_site(rows, day.failed)[:-1]
    due = of.sides.expected[:n] * shares[:n]
    others = (seen.sum() - seen + 3) / (due.sum() - due + 3)
    return np.append(np.minimum(shares[:n] * np.clip(others, 0.1, 10.0), 1.0), shares[n])


def past_shares(day: Day) -> Floats:
    """Return the past shares of outcomes among failures, a row per site, then everywhere."""
    sums = day.sums
    site, outcome = sums.codes["site"], sums.codes["outcome"]
    learned = day.learned[site, day.age] * ~day.now * day.failed
    counts = np.zeros((day.n_sites + 1, len(sums.names["outcome"])))
    np.add.at(counts, (site, outcome), learned)
    counts[-1] = counts.sum(axis=0)
    grid = counts[-1] / max(float(counts[-1].sum()), 1.0)
    shares: Floats = (counts + 30 * grid) / (counts.sum(axis=1, keepdims=True) + 30)
    return shares
