"""Columns of one fit from the sums of a window: one row per task key and name, raw and corrected."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.core.words import ALL_TYPES
from esjobs.records.tasks.keys import TaskKeys
from esjobs.records.tasks.memory import release_memory
from esjobs.records.tasks.sums import TaskSums, WindowSums
from esjobs.speed.bucket_variances import bucket_variances
from esjobs.speed.cost_priors import LevelPriors
from esjobs.speed.doubtful_records import record_doubts
from esjobs.speed.fixed_costs import common_error, correct
from esjobs.speed.name_costs import NameCosts, name_costs, rho_of_rows, scatter_of_tasks, slopes_of_rows
from esjobs.speed.outlier_records import FoundCosts, costs_of_sites, costs_without_outliers
from esjobs.speed.periods import Cells, cells_of
from fitters import Labels
from fitters.layout.arrays import Floats, Ints, Mask, Texts


@dataclass(frozen=True)
class FitInput:
    """Columns of one fit; a row, 100 bytes, is a task key (task x core class x type x kind) at one name."""

    level: str
    processing_type: str
    task: Labels  # labels are numbers of `keys`
    name: Labels
    n_jobs: Ints
    events: Floats
    cpu_s: Floats
    core_s: Floats  # wall x cores
    rho: Floats  # start-up time corrected for, in events per job; 0 if none
    events_eff: Floats  # events + rho x jobs
    # squared relative standard error of CPU time per event with and without the correction; NaN if unknown
    rel_var: Floats
    rel_var_raw: Floats
    mixed: Labels  # why the task is excluded as mixed; missing if it is not
    cut: Labels  # where a limit ends the long jobs of the task at the name; missing elsewhere
    unknown: Labels  # why its start-up time is required and unknown; missing if it is not
    cost_doubt: Floats  # error of the name's start-up time, as an error of ln k common to all its tasks
    cost_common: Floats  # the same of the error that tasks of a kind share
    # Slope of ln(CPU time) on ln(events) over the jobs of a row, its error; relative variance of their events
    elasticity: Floats
    elasticity_err: Floats
    length_var: Floats
    n_jobs_unnamed: int  # Binned jobs that carry no name on this level (no CPU model)
    keys: TaskKeys
    # Standard error of the start-up time of each task key, shape (n_keys,); NaN where there is none
    rho_err: Floats
    # Start-up times of names beside those of their tasks, over all types; by code of the name
    name_costs: NameCosts | None = None
    # Why the records of a name are in doubt, empty where they are not; by code of the name
    outlier_records: Texts | None = None
    # What names do to all tasks of a type, as the fit of all types tells it; for fits of one type
    sigma_type: float | None = None
    cells: Cells | None = None  # The rows by period of the window; None if it has one

    def __len__(self) -> int:
        return len(self.task)

    def keep(self, rows: Mask, **others: Any) -> "FitInput":
        """Return some of the rows; ``others``: fields with another value."""
        about = {"level", "processing_type", "n_jobs_unnamed", "keys"}
        about |= {"rho_err", "name_costs", "outlier_records", "sigma_type", "cells"}
        columns = {item.name: getattr(self, item.name) for item in fields(self)}
        kept = {name: value if name in about else value[rows] for name, value in columns.items()}
        return FitInput(**{**kept, **others})

    def rows_of(self, buckets: fitters.Buckets) -> npt.NDArray[np.intp]:
        """Return the row behind each bucket of a fit of some of the rows."""
        # task and name in one integer: a search instead of a dictionary of pairs
        keys = self.task.codes.astype(np.int64) << 32 | self.name.codes
        order = np.argsort(keys)
        task = np.searchsorted(self.task.names, buckets.task_names)
        name = np.searchsorted(self.name.names.astype(str), buckets.unit_names.astype(str))
        wanted = np.repeat(task, np.diff(buckets.ptr)) << 32 | name[buckets.unit]
        return np.asarray(order[np.searchsorted(keys, wanted, sorter=order)], np.intp)


class FitInputs:
    """Columns of every fit of a window, made on request: one level is cached at a time.

    ``costs``: start-up times of all task keys per level; None if nothing has a name.
    """

    def __init__(
        self,
        sums: WindowSums,
        min_bucket_jobs: int,
        of_queues: FoundCosts | None = None,
        priors: Mapping[str, LevelPriors] | None = None,
    ) -> None:
        """``of_queues``: the start-up times from queues, if already found; ``priors``: by level."""
        self._sums = sums
        self._priors = priors or {}
        of_queues = of_queues or costs_without_outliers(sums.levels["queue"], min_bucket_jobs)
        found = {"queue": of_queues}
        # queues first: sites take their start-up times from them
        if "site" in sums.levels:
            found["site"] = costs_of_sites(of_queues, sums.levels["site"])
        found["cpu_model"] = costs_without_outliers(sums.levels["cpu_model"], min_bucket_jobs)
        self.costs: Mapping[str, fitters.FixedCosts | None] = {
            level: costs for level, (costs, _) in found.items()
        }
        self._outliers = {level: outliers.reason for level, (_, outliers) in found.items()}
        # Of the start-up time of each task key, the relative error from names that differ, per level
        self.rho_scatter: dict[str, Floats] = {}
        self._cached: FitInput | None = None
        self._sigma_type: dict[str, float] = {}

    def learn(self, level: str, sigma_type: float) -> None:
        """Set the scatter of names and types from the fit of all types, for fits of one type."""
        self._sigma_type[level] = sigma_type

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield level and processing type of every fit: the types sorted, then ``all``."""
        for level in self.costs:
            for kind in [*sorted(kind for kind in self._sums.n_jobs if kind), ALL_TYPES]:
                yield level, kind

    def n_jobs(self, processing_type: str) -> int:
        """Return the number of binned jobs of a type, with or without a name."""
        if processing_type == ALL_TYPES:
            return sum(self._sums.n_jobs.values())
        return self._sums.n_jobs[processing_type]

    def of(self, level: str, processing_type: str) -> FitInput:
        """Return the columns of one fit. In the order of levels, each is computed once."""
        if self._cached is None or self._cached.level != level:
            # Two levels would not fit into memory side by side
            self._cached = None
            release_memory()
            self._cached = self._all_types(level)
        cached = self._cached
        if processing_type == ALL_TYPES:
            return cached
        of_type = np.asarray(cached.keys.processing_type == processing_type, np.bool_)
        rows = of_type[cached.task.names][cached.task.codes]
        unnamed = self.n_jobs(processing_type) - int(cached.n_jobs[rows].sum())
        return cached.keep(
            rows,
            processing_type=processing_type,
            n_jobs_unnamed=unnamed,
            sigma_type=self._sigma_type.get(level),
            cells=None if cached.cells is None else cached.cells.of_rows(rows),
        )

    def _all_types(self, level: str) -> FitInput:
        rows, costs = self._sums.levels[level], self.costs[level]
        n_jobs = rows.sums["n_jobs"].astype(np.int64)
        n = len(rows)
        corrected: dict[str, Any] = {
            "rho": np.zeros(n),
            "events_eff": rows.sums["events"],
            "rel_var": np.full(n, np.nan),
            "rel_var_raw": np.full(n, np.nan),
            "unknown": Labels(np.empty(0, object), np.full(n, -1, np.int32)),
            "cost_doubt": np.zeros(n),
            "cost_common": np.zeros(n),
            **{name: np.full(n, np.nan) for name in ("elasticity", "elasticity_err", "length_var")},
        }
        rho_err = np.full(len(rows.keys), np.nan)
        if costs is not None:
            rho_err[costs.tasks.name.astype(np.int64)] = costs.tasks.rho_err
        if costs is not None and n:
            corrected, self.rho_scatter[level] = _corrected(costs, rows, self._priors.get(level))
        return FitInput(
            level=level,
            processing_type=ALL_TYPES,
            task=rows.task,
            name=rows.name,
            n_jobs=n_jobs,
            events=rows.sums["events"],
            cpu_s=rows.sums["cpu_s"],
            core_s=rows.sums["core_s"],
            mixed=rows.mixed,
            cut=rows.cut,
            n_jobs_unnamed=self.n_jobs(ALL_TYPES) - int(n_jobs.sum()),
            keys=rows.keys,
            rho_err=rho_err,
            outlier_records=record_doubts(rows, self._outliers[level]),
            cells=cells_of(self._sums.periods.get(level), rows),
            **corrected,
        )


def _corrected(
    costs: fitters.FixedCosts, rows: TaskSums, priors: LevelPriors | None
) -> tuple[dict[str, Any], Floats]:
    found = correct(costs, rows)
    valid = bucket_variances(rows, found)
    usable = rho_of_rows(costs, rows)
    slopes = slopes_of_rows(rows, usable, valid.per_job)
    names = name_costs(costs, rows, slopes, priors)
    factor = names.factor[rows.name.codes]
    # What is the same everywhere belongs to the level of the task; what differs by name has to be taken out
    # also where the lengths are equal.
    taken = found.corrected | (names.corrected & found.use & (usable > 0))
    rho = np.where(taken, np.where(found.corrected, found.rho, usable) * factor, 0.0)
    events, n_jobs = rows.sums["events"], rows.sums["n_jobs"]
    # how far an error of ln(start-up time) reaches ln k: by its share in the CPU time
    share = np.nan_to_num(usable * factor / (events / n_jobs + usable * factor))
    columns = {
        "rho": rho,
        "events_eff": events + rho * n_jobs,
        "rel_var": valid.rel_var,
        "rel_var_raw": valid.rel_var_raw,
        "unknown": found.unknown,
        "cost_doubt": share * names.doubt[rows.name.codes],
        "cost_common": common_error(costs, rows),
        "name_costs": names,
        "elasticity": slopes.elasticity,
        "elasticity_err": slopes.error,
        "length_var": rows.sums["events_sq"] * n_jobs / events**2 - 1.0,
    }
    return columns, scatter_of_tasks(names, slopes, rows)
