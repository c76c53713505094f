"""Names whose jobs have another start-up time than the same tasks elsewhere."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.records.tasks.sums import TaskSums
from esjobs.speed.cost_priors import LevelPriors
from fitters.layout.arrays import Floats

ASSUMED_SCATTER = 0.1  # Scatter of ln(start-up time) between names where their jobs are too few to tell
LARGEST_DOUBT = 0.3  # An error of that scatter beyond which it counts as not told
CERTAIN = 3.0  # Errors by which the scatter must differ from 0 before names are corrected individually
STANDS_OUT = 4.0  # Errors by which the start-up time of a name that is listed differs from the others'


@dataclass(frozen=True)
class NameCosts:
    """Start-up times of names relative to their tasks, one entry per code of the name.

    ``factor``: multiplies rho, 1 unless the scatter between names is significant. ``doubt``: remaining error
    of ln(start-up time). ``scatter``, ``kind``: sigma_f, ``estimated`` or ``assumed``; None if no task has a
    start-up time. ``earlier``: ln f and variance as earlier windows tell them, NaN where they do not; None
    without any. ``earlier_runs``: their runs, oldest first.
    """

    costs: fitters.UnitCosts
    factor: Floats
    doubt: Floats
    scatter: float | None
    kind: str | None
    earlier: tuple[Floats, Floats] | None = None
    earlier_runs: tuple[str, ...] = ()

    @property
    def corrected(self) -> bool:
        """True if names are corrected individually."""
        return bool((self.factor != 1).any())

    def standing_out(self) -> npt.NDArray[np.intp]:
        """Return the codes of names whose start-up time is far from that of the others."""
        costs = self.costs
        spread = np.nan_to_num(costs.sigma)
        with np.errstate(invalid="ignore"):
            far = np.abs(costs.ln_f) > STANDS_OUT * costs.ln_f_err
            far &= np.abs(costs.ln_f) > 2.0 * spread
        return np.flatnonzero(far)


def scatter_of_tasks(names: NameCosts, slopes: fitters.BucketSlopes, rows: TaskSums) -> Floats:
    """Return the part of the relative error of each task's start-up time that comes from its names, by key.

    ``sigma_f`` times the root of the sum of squares of the shares of names in what slopes tell; 0 where names
    do not differ significantly.
    """
    n_keys = len(rows.keys)
    if not names.corrected or names.scatter is None:
        return np.zeros(n_keys)
    telling = np.isfinite(slopes.error) & (slopes.error > 0) & (rows.cut.codes < 0)
    key = rows.task.names[rows.task.codes][telling]
    weight = slopes.error[telling] ** -2.0
    total = np.bincount(key, weight, n_keys)
    square = np.bincount(key, weight**2, n_keys)
    return names.scatter * np.sqrt(square) / np.where(total > 0, total, 1.0)


def rho_of_rows(costs: fitters.FixedCosts, rows: TaskSums) -> Floats:
    """Return the start-up time of each row's task in events, corrected for or not; NaN where unknown."""
    table = costs.tasks
    of_key = np.full(len(rows.keys), np.nan)
    usable = np.isfinite(table.share) & np.isfinite(table.share_err)
    of_key[table.name.astype(np.int64)[usable]] = np.maximum(table.rho[usable], 0.0)
    return np.asarray(of_key[rows.task.names][rows.task.codes])


def slopes_of_rows(rows: TaskSums, rho: Floats, per_job: Floats) -> fitters.BucketSlopes:
    """Return the slope of CPU time against events inside every row."""
    columns = ("n_jobs", "events", "cpu_s", "events_sq", "events_cpu_s")
    return fitters.bucket_slopes(*(rows.sums[name] for name in columns), rho=rho, per_job=per_job)


def own_of_rows(costs: fitters.FixedCosts, rows: TaskSums) -> Floats:
    """Return the weight of the task's own estimate in its start-up time for every row: 0 to 1."""
    of_key = np.zeros(len(rows.keys))
    of_key[costs.tasks.name.astype(np.int64)] = 1.0 - costs.tasks.reliance
    return np.asarray(of_key[rows.task.names][rows.task.codes])


def name_costs(
    costs: fitters.FixedCosts,
    rows: TaskSums,
    slopes: fitters.BucketSlopes,
    priors: LevelPriors | None,
) -> NameCosts:
    """Find the differences of start-up times between names, and the part certain enough to correct for.

    ``slopes``: of the rows, see :func:`slopes_of_rows`. ``priors``: what earlier windows tell of the names.
    """
    earlier = None if priors is None else priors.of(rows.name.names)
    n_names = len(rows.name.names)
    rho = np.where(rows.cut.codes < 0, rho_of_rows(costs, rows), np.nan)
    found = fitters.unit_costs(
        slopes,
        np.nan_to_num(rho),
        rows.name.codes,
        n_names,
        task=rows.task.codes,
        own=own_of_rows(costs, rows),
        earlier=earlier,
    )
    one, nothing = np.ones(n_names), np.zeros(n_names)
    if not (np.nan_to_num(rho) > 0).any():
        return NameCosts(found, one, nothing, None, None)
    runs = () if priors is None else priors.runs
    if not np.isfinite(found.sigma) or found.sigma_err > LARGEST_DOUBT:
        doubt = np.full(n_names, ASSUMED_SCATTER)
        return NameCosts(found, one, doubt, ASSUMED_SCATTER, "assumed", earlier, runs)
    # correcting for noise would add it: only where the scatter is certain
    if found.sigma > CERTAIN * found.sigma_err:
        return NameCosts(found, np.exp(found.drawn), found.drawn_err, found.sigma, "estimated", earlier, runs)
    # A scatter that cannot be told from none is not none.
    doubt = np.hypot(found.drawn, found.drawn_err)
    return NameCosts(found, one, doubt, found.sigma, "estimated", earlier, runs)
