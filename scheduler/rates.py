"""Costs of a first night, measured elsewhere: made-up jobs in the file and on Elasticsearch 8."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Any

import numpy as np

from esjobs.core.query import Count, Query
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.records.context import Context
from esjobs.records.jobs.aggregate import buckets_of_jobs
from esjobs.scores.settings import EfficiencySettings
from esjobs.speed.settings import FitSettings

_WHOLE_DAY = 2_000_000  # Jobs up to which the buckets of a day are counted; of more those of some hours
_HOURS = (4, 12)


@dataclass(frozen=True)
class Cost:
    """Cost of steps: jobs read, rows written, bytes of these, processor seconds."""

    documents_read: float = 0.0
    documents_written: float = 0.0
    bytes_written: float = 0.0
    processor_s: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def times(self, factor: float) -> "Cost":
        """Return the cost multiplied by a factor."""
        return Cost(*(number * factor for number in astuple(self)))

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Cost":
        """Read it from a row with these columns; missing counts as none."""
        return cls(*(float(row[name] or 0.0) for name in cls.__dataclass_fields__))

    def rounded(self) -> dict[str, float]:
        """Return it by column; all but the time in whole numbers."""
        counts = {name: round(value) for name, value in vars(self).items() if name != "processor_s"}
        return {**counts, "processor_s": self.processor_s}


_NOTHING = Cost()

# Per job, by engine and step; rows of `aggregate`, `score` and `today` come on top
_PER_JOB: Mapping[str, Mapping[str, Cost]] = {
    "duckdb": {
        "ingest": Cost(0, 1, 500, 20e-6),
        "aggregate": Cost(1, 0, 0, 2e-6),
        "detect": Cost(1, 0.006, 2.5, 4e-6),
        "score": Cost(1, 0, 0, 10e-6),
        "today": Cost(0, 0, 0, 1e-6),
    },
    "cluster": {
        "ingest": Cost(0, 1, 600, 75e-6),
        "aggregate": Cost(1, 0, 0, 20e-6),
        "detect": Cost(1, 0.006, 4, 20e-6),
        "score": Cost(1, 0, 0, 20e-6),
        "today": Cost(0, 0, 0, 16e-6),
    },
}
# Per row of these steps; ``sums``: of those of days, which a cluster keeps packed
_PER_ROW: Mapping[str, Mapping[str, Cost]] = {
    "duckdb": {
        "aggregate": Cost(0, 1, 138, 0),
        "score": Cost(0, 1, 744, 4e-6),
        "today": Cost(0, 1, 150, 1e-6),
        "sums": Cost(0, 1, 150, 1e-6),
        "fit": Cost(0, 0, 0, 8e-6),
    },
    "cluster": {
        "aggregate": Cost(0, 1, 512, 60e-6),
        "score": Cost(0, 1, 1160, 60e-6),
        "today": Cost(0, 1, 500, 60e-6),
        "sums": Cost(0, 0, 40, 6e-6),
        "fit": Cost(0, 0, 0, 130e-6),
    },
}
# Seconds of these steps whatever there is; a cluster compiles its code first
_FIXED_S: Mapping[str, Mapping[str, float]] = {
    "duckdb": {"aggregate": 0.1, "backfill": 0.1, "detect": 0.3, "score": 0.2, "today": 0.1},
    "cluster": {"aggregate": 3.0, "backfill": 1.0, "detect": 2.5, "score": 3.0, "today": 2.5},
}
# Rows of day sums per bucket, which tell CPU models apart, too; judged metrics and errors of a queue on a day
_SUMS_PER_BUCKET, _JUDGED_PER_QUEUE = 0.5, 11
# Rows that ordinary jobs of a large day share, in those of a day of 80,000 of them: they grow as its root
_SHARED_ROWS, _SHARED_BY = 15_000, 80_000
# Per window and method: rows whatever there is, and rows per queue
_ROWS_OF_WINDOW, _ROWS_OF_QUEUE = 450, 25
_BYTES_OF_ROW = {"duckdb": 295, "cluster": 740}
_FIT_S = {"duckdb": 1.0, "cluster": 1.6}  # Of a method and window
# Rows per queue of the steps that follow from fits, and their time
_OTHER_ROWS = {"drift": 13, "decompose": 8, "watch": 1}
_OTHER_S = 0.2


class FirstRates:
    """Rates of an installation whose nights are still to come: its engine, its queues, its buckets per job.

    ``jobs``: known days with their jobs; the newest is looked at, where a rate asks for it.
    """

    def __init__(self, context: Context, jobs: Mapping[date, int]) -> None:
        self._context = context
        self._jobs = jobs

    def cost(self, name: str, units: float) -> Cost:
        """Return the cost of so many units of a step."""
        if not units or not self._jobs:
            return _NOTHING
        step = name.partition(" ")[0]
        if step == "fit":
            return self._fit(units)
        of_step = "aggregate" if step == "backfill" else step
        per_job = _PER_JOB[self._engine].get(of_step)
        if per_job is not None:
            fixed = Cost(processor_s=_FIXED_S[self._engine].get(step, 0.0))
            written = self._per_row(of_step).times(self._rows(of_step, units))
            if step == "today":
                written += self._per_row("sums").times(units * self._buckets_per_job * _SUMS_PER_BUCKET)
            return fixed + per_job.times(units) + written
        rows = _OTHER_ROWS.get(step, 0) * self._n_queues
        seconds = _OTHER_S if rows else 0.0
        return Cost(0, rows, rows * _BYTES_OF_ROW[self._engine], seconds)

    def _fit(self, jobs: float) -> Cost:
        n_methods = len(self._context.settings.section(FitSettings).methods)
        rows = _ROWS_OF_WINDOW + _ROWS_OF_QUEUE * self._n_queues
        of_method = Cost(0, rows, rows * _BYTES_OF_ROW[self._engine], _FIT_S[self._engine])
        buckets = self._per_row("fit").times(jobs * self._buckets_per_job)
        # jobs of tasks with several kinds of work are read, too, but few tasks have them
        return of_method.times(n_methods) + buckets

    def _per_row(self, step: str) -> Cost:
        return _PER_ROW[self._engine].get(step, _NOTHING)

    def _rows(self, step: str, jobs: float) -> float:
        """Return the rows that a step writes for jobs, beside those that it writes for each and sums."""
        per_day = float(np.mean(list(self._jobs.values())))
        if step == "score":
            return jobs / per_day * self._score_rows(per_day)
        if step == "aggregate":
            return jobs * self._buckets_per_job
        if step == "today":
            return jobs / per_day * self._n_queues * _JUDGED_PER_QUEUE
        return 0.0

    def _score_rows(self, jobs: float) -> float:
        """Return the rows of scores of a day: own ones up to a limit, then shared ones."""
        own = self._context.settings.section(EfficiencySettings).own_rows
        shared = max(jobs - own, 0.0)
        return min(jobs, own) + min(shared, _SHARED_ROWS * float(np.sqrt(shared / _SHARED_BY)))

    @cached_property
    def _engine(self) -> str:
        return "duckdb" if self._context.store.capabilities().engine == "duckdb" else "cluster"

    @cached_property
    def _n_queues(self) -> int:
        query = Query(("queue",), (Count("n"),), Window.of_days(self._newest, self._newest))
        return int(self._context.store.aggregate(query).table.num_rows)

    @property
    def _newest(self) -> date:
        return max(self._jobs)

    @cached_property
    def _buckets_per_job(self) -> float:
        """Buckets per job of the newest day; of a large day from the growth within its first hours."""
        store, rules = self._context.store, self._context.settings.section(CleaningRules)
        n_jobs = self._jobs[self._newest]
        day = Window.of_days(self._newest, self._newest)
        if n_jobs <= _WHOLE_DAY:
            buckets, jobs = buckets_of_jobs(store, day, rules)
            return buckets / jobs if jobs else 1.0
        start = datetime.combine(self._newest, time(11), UTC)
        found = [
            buckets_of_jobs(store, Window(start, start + timedelta(hours=hours)), rules) for hours in _HOURS
        ]
        (few, few_jobs), (many, many_jobs) = found
        if not few or many_jobs <= few_jobs:
            return 1.0
        # buckets grow as a power of the jobs: those of the first jobs of a task are new, later ones repeat
        growth = float(np.log(many / few) / np.log(many_jobs / few_jobs))
        return float(many * (n_jobs / many_jobs) ** growth / n_jobs)
