"""Grids of sites with known speed of which some declare wrong, through fit and line to verdicts."""

from dataclasses import dataclass

import numpy as np

import fitters

N_SITES, N_WRONG, SITES_PER_TASK = 100, 10, 10
HONEST_SCATTER, JOB_SCATTER = 0.03, 0.5
SMALL, LARGE, CLEAR = 1.3, 2.0, 1.5


@dataclass
class Tally:
    """Sums over toys."""

    honest: int = 0
    accused: int = 0
    undecided: int = 0
    slight: int = 0
    slight_found: int = 0
    clear: int = 0
    clear_found: int = 0
    wrong_side: int = 0
    error: float = 0.0
    toys: int = 0

    def row(self) -> list[str]:
        """Percentages, in the order of the table."""
        shares = (
            (self.accused, self.honest),
            (self.undecided, self.honest),
            (self.slight_found, self.slight),
            (self.clear_found, self.clear),
        )
        percent = [
            f"{100 * part / whole:.{2 if place == 0 else 0}f}" for place, (part, whole) in enumerate(shares)
        ]
        return [f"{100 * self.error / self.toys:.1f}", *percent]


def judge_grid(rng: np.random.Generator, tasks: int, jobs: int, interaction: float, tally: Tally) -> None:
    """Make a grid of 100 sites with so many tasks each, fit it, judge it and add to the tally.

    Ten sites declare wrong by a factor of 1.3 to 2, up or down, the others within 3 %. Every task runs at ten
    sites. Jobs scatter by 50 %; `interaction` is what site and task have with each other, relative.
    """
    rounds = np.stack(
        [rng.permutation(N_SITES) for _ in range(tasks)]
    )  # each site once in each round of tasks
    unit = rounds.ravel()
    task = np.arange(unit.size) // SITES_PER_TASK
    k = np.exp(rng.normal(0, 0.2, N_SITES))
    level = np.exp(rng.normal(3, 1, task[-1] + 1))
    noise = rng.normal(0, interaction, unit.size)
    mean = rng.gamma(jobs / JOB_SCATTER**2, JOB_SCATTER**2 / jobs, unit.size)
    value = level[task] / k[unit] * np.exp(noise) * mean
    rel_var = JOB_SCATTER**2 / jobs * rng.chisquare(jobs - 1, unit.size) / (jobs - 1)

    ratio = np.ones(N_SITES)
    ratio[:N_WRONG] = np.exp(rng.uniform(np.log(SMALL), np.log(LARGE), N_WRONG))
    up = rng.random(N_SITES) < 0.5
    declared = 10 * k * np.where(up, ratio, 1 / ratio) * np.exp(rng.normal(0, HONEST_SCATTER, N_SITES))

    counts = np.full(unit.size, float(jobs))
    scatter = fitters.job_scatter(task, np.zeros(task[-1] + 1, np.int64), counts, rel_var * counts)
    buckets = fitters.Buckets.from_columns(task, unit, value, jobs=counts, rel_var=scatter.per_job / counts)
    fit = fitters.fit_speed_factors(buckets, "gamma", "variance", robust="reject")
    points = fitters.fit_line(fit.units.k, fit.units.k_err, declared[fit.units.name.astype(int)]).points
    deviates = points.verdict == "deviates"
    wrong = np.arange(N_SITES) < N_WRONG
    right_way = np.where(up, points.deviation < 0, points.deviation > 0)
    clear = wrong & (ratio >= CLEAR)
    tally.honest += int((~wrong).sum())
    tally.accused += int((deviates & ~wrong).sum())
    tally.undecided += int(((points.verdict == "undecided") & ~wrong).sum())
    tally.slight += int((wrong & ~clear).sum())
    tally.slight_found += int((deviates & right_way & wrong & ~clear).sum())
    tally.clear += int(clear.sum())
    tally.clear_found += int((deviates & right_way & clear).sum())
    tally.wrong_side += int((deviates & wrong & ~right_way).sum())
    tally.error += float(np.nanmedian(points.deviation_err[~wrong]))
    tally.toys += 1
