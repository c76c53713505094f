"""Sums over a window to the columns of one fit: one row per task key and name, raw and corrected."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.core.words import ALL_TYPES, LEVELS
from esjobs.records.tasks.keys import TaskKeys
from esjobs.records.tasks.sums import FloatArray, TaskSums, WindowSums
from esjobs.speed.bucket_variances import bucket_variances
from esjobs.speed.fixed_costs import common_error, correct
from esjobs.speed.name_costs import NameCosts, name_costs, rho_of_rows
from esjobs.speed.odd_records import FoundCosts, costs_without_odd_records
from fitters import Labels


@dataclass(frozen=True)
class FitInput:
    """The columns of one fit, aligned; a row is a task key (task x core class x type x kind) at one name.

    ``task``: its labels are numbers of ``keys``.
    ``n_jobs`` jobs, ``events`` and ``cpu_s`` their sums, ``core_s`` wall x cores. ``rho``: fixed cost of a
    job that is taken out, in events, 0 where none is; ``events_eff`` = events + rho x jobs. ``rel_var`` and
    ``rel_var_raw``: squared relative standard error of CPU time per event, with and without it, from the
    scatter of the jobs, of few jobs mostly that of their task (NaN where nothing is known). ``mixed``: why
    the task is set aside as a mixed one; ``unknown``: why its fixed cost is needed and cannot be had; both
    missing where that is not so.

    ``cost_doubt``: what is unknown of the fixed cost of the name's jobs, as an error of ln k that all its
    tasks have in common; ``cost_common``: the same of the error that tasks of a kind share.

    100 bytes a row.
    """

    level: str
    processing_type: str
    task: Labels
    name: Labels
    n_jobs: npt.NDArray[np.int64]
    events: FloatArray
    cpu_s: FloatArray
    core_s: FloatArray
    rho: FloatArray
    events_eff: FloatArray
    rel_var: FloatArray
    rel_var_raw: FloatArray
    mixed: Labels
    unknown: Labels
    cost_doubt: FloatArray
    cost_common: FloatArray
    n_jobs_unnamed: int
    """Binned jobs that carry no name on this level (no CPU model)."""
    keys: TaskKeys
    rho_err: FloatArray
    """Standard error of the fixed cost of each task key, shape (n_keys,); NaN where there is none."""
    name_costs: NameCosts | None = None
    """Fixed costs of names beside those of their tasks, over all types; by code of the name."""
    odd_records: npt.NDArray[np.object_] | None = None
    """Why the records of a name are in doubt, empty where they are not; by code of the name."""
    sigma_type: float | None = None
    """What names do to all tasks of a type, as the fit of all types tells it; for fits of one type."""

    def __len__(self) -> int:
        return len(self.task)

    def keep(self, rows: npt.NDArray[np.bool_], **others: Any) -> "FitInput":
        """Some of the rows; ``others``: fields with another value."""
        about = {"level", "processing_type", "n_jobs_unnamed", "keys"}
        about |= {"rho_err", "name_costs", "odd_records", "sigma_type"}
        columns = {item.name: getattr(self, item.name) for item in fields(self)}
        kept = {name: value if name in about else value[rows] for name, value in columns.items()}
        return FitInput(**{**kept, **others})

    def rows_of(self, buckets: fitters.Buckets) -> npt.NDArray[np.intp]:
        """The row behind each bucket of a fit of some of the rows."""
        keys = self.task.codes.astype(np.int64) << 32 | self.name.codes
        order = np.argsort(keys)
        task = np.searchsorted(self.task.names, buckets.task_names)
        name = np.searchsorted(self.name.names.astype(str), buckets.unit_names.astype(str))
        wanted = np.repeat(task, np.diff(buckets.ptr)) << 32 | name[buckets.unit]
        return np.asarray(order[np.searchsorted(keys, wanted, sorter=order)], np.intp)


class FitInputs:
    """The columns of every fit of a window, made when they are asked for: one level is held at a time.

    ``costs``: the fixed costs of all task keys, as the names of each level tell them; None where nothing has
    a name.
    """

    def __init__(self, sums: WindowSums, min_bucket_jobs: int, of_sites: FoundCosts | None = None) -> None:
        """``of_sites``: the fixed costs as queues tell them, where somebody has found them already."""
        self._sums = sums
        found = {
            level: of_sites
            if level == "queue" and of_sites is not None
            else costs_without_odd_records(rows, min_bucket_jobs)
            for level, rows in sums.levels.items()
        }
        self.costs: Mapping[str, fitters.FixedCosts | None] = {
            level: costs for level, (costs, _) in found.items()
        }
        self._odd = {level: odd.reason for level, (_, odd) in found.items()}
        self._held: FitInput | None = None
        self._sigma_type: dict[str, float] = {}

    def learn(self, level: str, sigma_type: float | None) -> None:
        """Tell the fits of one type what names do to all tasks of a type, as the fit of all types says."""
        if sigma_type is not None:
            self._sigma_type[level] = sigma_type

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Level and processing type of every fit: the types sorted, then ``all``."""
        for level in LEVELS:
            for kind in [*sorted(kind for kind in self._sums.n_jobs if kind), ALL_TYPES]:
                yield level, kind

    def n_jobs(self, processing_type: str) -> int:
        """Binned jobs of a type, with or without a name."""
        if processing_type == ALL_TYPES:
            return sum(self._sums.n_jobs.values())
        return self._sums.n_jobs[processing_type]

    def names(self, level: str, processing_type: str) -> set[str]:
        """The names of one fit."""
        rows = self._sums.levels[level]
        return set(rows.name[_of_type(rows.keys, rows.task, processing_type)].used().names)

    def of(self, level: str, processing_type: str) -> FitInput:
        """The columns of one fit. Asked level by level, each is worked out once."""
        if self._held is None or self._held.level != level:
            self._held = None
            self._held = self._all_types(level)
        held = self._held
        if processing_type == ALL_TYPES:
            return held
        rows = _of_type(held.keys, held.task, processing_type)
        unnamed = self.n_jobs(processing_type) - int(held.n_jobs[rows].sum())
        return held.keep(
            rows,
            processing_type=processing_type,
            n_jobs_unnamed=unnamed,
            sigma_type=self._sigma_type.get(level),
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
        }
        if costs is not None and n:
            corrected = _corrected(costs, rows)
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
            n_jobs_unnamed=self.n_jobs(ALL_TYPES) - int(n_jobs.sum()),
            keys=rows.keys,
            rho_err=_rho_err(costs, len(rows.keys)),
            odd_records=self._odd[level],
            **corrected,
        )


def _rho_err(costs: fitters.FixedCosts | None, n_keys: int) -> FloatArray:
    error = np.full(n_keys, np.nan)
    if costs is not None:
        error[costs.tasks.name.astype(np.int64)] = costs.tasks.rho_err
    return error


def _corrected(costs: fitters.FixedCosts, rows: TaskSums) -> dict[str, Any]:
    """The fields of an input that fixed costs have a part in."""
    found = correct(costs, rows)
    known = bucket_variances(rows, found)
    told = rho_of_rows(costs, rows)
    names = name_costs(costs, rows, known.per_job)
    factor = names.factor[rows.name.codes]
    # What is the same everywhere belongs to the level of the task; what differs by name has to be taken out
    # also where the lengths are equal.
    taken = found.corrected | (names.corrected & found.use & (told > 0))
    rho = np.where(taken, np.where(found.corrected, found.rho, told) * factor, 0.0)
    events, n_jobs = rows.sums["events"], rows.sums["n_jobs"]
    share = np.nan_to_num(told * factor / (events / n_jobs + told * factor))
    return {
        "rho": rho,
        "events_eff": events + rho * n_jobs,
        "rel_var": known.rel_var,
        "rel_var_raw": known.rel_var_raw,
        "unknown": found.unknown,
        "cost_doubt": share * names.doubt[rows.name.codes],
        "cost_common": common_error(costs, rows),
        "name_costs": names,
    }


def _of_type(keys: TaskKeys, task: Labels, processing_type: str) -> npt.NDArray[np.bool_]:
    """The rows of a type."""
    if processing_type == ALL_TYPES:
        return np.ones(len(task), np.bool_)
    mine = keys.processing_type[task.names] == processing_type
    return np.asarray(mine, np.bool_)[task.codes]
