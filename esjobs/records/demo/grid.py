"""The made-up grid: a description that follows from a seed, and a function from a day to its jobs."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from esjobs.core.errors import UsageError
from esjobs.core.freshness import OF_DEMO
from esjobs.records.demo.course import SLOW_BEFORE_LAST, Course, lived_through
from esjobs.records.demo.ends import ended
from esjobs.records.demo.errors import Nodes, coded
from esjobs.records.demo.jobs import Hosts, batches, shift
from esjobs.records.demo.monitored import monitored
from esjobs.records.demo.queues import plan_models, plan_queues
from esjobs.records.demo.tasks import KINDS, MAX_LIFE_DAYS, MULTI_CORES, Births, QueueArrays, births
from esjobs.records.demo.truth import (
    Declaration,
    Fault,
    Incident,
    PayloadTruth,
    Score,
    SlowTask,
    Truth,
    score,
)

LAST_DAY = date(2025, 6, 30)
"""The last day that :meth:`Grid.days` gives; fixed, because nothing here asks the clock."""
DECLARED_FROM = datetime(2025, 1, 1, tzinfo=UTC)
DEFAULT_DAYS = 30
_SLOW_PASTS = (2, 3, 1)  # Days of the task before it wastes its cores; the first that some task has
SLOW_JOBS = 100
"""Jobs of the slow task on its first slow day, at least; of fewer nobody can tell that they are slow."""


@dataclass(frozen=True)
class Grid:
    """A synthetic computing grid with injected faults; equal arguments give equal grids.

    ``n_queues``: 20 or more. ``n_models``: 5 to 44. ``tasks_per_day``: 4 or more (default: 9 for 10 000
    jobs a day, growing with the power 0.92). ``monitored``: jobs have requests, and some have counters.
    ``course``: the jobs of each day instead of ``jobs_per_day``. Raises :class:`UsageError` outside
    these limits.

    >>> grid = Grid(seed=1, jobs_per_day=100)
    >>> sum(batch.num_rows for batch in grid.jobs(date(2025, 6, 1)))
    100
    """

    seed: int = 1
    jobs_per_day: int = 10_000
    n_queues: int = 60
    n_models: int = 40
    tasks_per_day: int | None = None
    monitored: bool = False
    course: Course | None = None

    def __post_init__(self) -> None:
        if self.seed < 0 or self.jobs_per_day < 1 or self._tasks_per_day < 4:
            raise UsageError(
                "a synthetic grid requires seed >= 0, jobs_per_day >= 1 and tasks_per_day >= 4; got seed "
                f"{self.seed}, jobs_per_day {self.jobs_per_day}, tasks_per_day {self.tasks_per_day}"
            )
        # raises for sizes that no grid can have, before the first day
        self.truth()

    @classmethod
    def of_size(cls, n_jobs: int, seed: int = 1, days: int = DEFAULT_DAYS, n_queues: int = 60) -> "Grid":
        """Return a grid of about ``n_jobs`` jobs; below 10 000 jobs a day few buckets can be fitted.

        >>> grid = Grid.of_size(300_000)
        >>> grid.jobs_per_day, len(grid.days(300_000))
        (10000, 30)
        """
        if n_jobs < 1 or days < 1:
            raise UsageError(f"a synthetic grid requires at least 1 job and 1 day; got {n_jobs} and {days}")
        return cls(seed=seed, jobs_per_day=max(1, round(n_jobs / days)), n_queues=n_queues)

    def days(self, n_jobs: int) -> list[date]:
        """The days, up to 2025-06-30 and in order, that hold about ``n_jobs`` jobs; at least one.

        >>> [str(day) for day in Grid(jobs_per_day=100).days(200)]
        ['2025-06-29', '2025-06-30']
        """
        count = max(1, round(n_jobs / self.jobs_per_day))
        return [LAST_DAY - timedelta(days=back) for back in range(count - 1, -1, -1)]

    def jobs(self, day: date) -> Iterator[pa.RecordBatch]:
        """Yield the jobs that end on a day (UTC) in order of their end, at most 65 536 per batch.

        A pure function of grid and day. Below 200 MB of memory, about 0.05 s per batch.
        """
        # no task is older: a day needs the births of six days, not the whole past
        lots = [(age, self._births(day - timedelta(days=age))) for age in range(MAX_LIFE_DAYS)]
        running = shift(lots, self.jobs_per_day)
        n_jobs, most = (
            (self.jobs_per_day, self.jobs_per_day)
            if self.course is None
            else (self.course.volume(day), self.course.most)
        )
        made = batches(self.seed, day, n_jobs, running, self._hosts, most)
        for number, batch in enumerate(made):
            # numbers of their own: everything else of a job is the same without
            lived, counted, ends, codes = (
                np.random.default_rng([self.seed, stream, day.toordinal(), number])
                for stream in (8, 5, 9, 10)
            )
            treated = batch if self.course is None else self._lived(batch, day, lived)
            finished = ended(monitored(treated, counted) if self.monitored else treated, ends)
            yield coded(finished, codes, self._nodes, self._truth.queues, self._incident(day))

    def _lived(self, batch: pa.RecordBatch, day: date, rng: np.random.Generator) -> pa.RecordBatch:
        return lived_through(
            batch,
            rng,
            efficiency=1.0 if self.course is None else self.course.efficiency(day),
            incident=self._incident(day),
            slow=_on(self.slow_task, day),
            queues=self._truth.queues,
        )

    @cached_property
    def slow_task(self) -> SlowTask | None:
        """The planted task that wastes its cores everywhere: a large one with a past of some days.

        None if no task is large enough.
        """
        if self.course is None:
            return None
        # with a past: what a task wastes shows only against its earlier days
        first = self.course.last - timedelta(days=SLOW_BEFORE_LAST)
        for past in _SLOW_PASTS:
            born = self._births(first - timedelta(days=past))
            lives = (born.life >= past + 2) & ~born.island & ~born.merging
            if lives.any():
                hours = np.array([KINDS[kind].hours for kind in born.kind])
                size = born.rate * hours * np.where(born.multi, MULTI_CORES, 1)
                number = int(np.argmax(np.where(lives, size, -1.0)))
                if self._jobs(first, past)[number] < SLOW_JOBS:
                    return None
                last = first + timedelta(days=int(born.life[number]) - past - 1)
                return SlowTask(first, last, efficiency_factor=0.5, task_id=born.task_id[number])
        return None

    def _jobs(self, day: date, age: int) -> NDArray[np.float64]:
        """Return the jobs on a day, by expectation, of each payload born so many days before it."""
        lots = [self._births(day - timedelta(days=old)).sizes(old) for old in range(MAX_LIFE_DAYS)]
        total = sum(float(sizes.sum()) for sizes in lots)
        jobs: NDArray[np.float64] = lots[age].sum(axis=1) * (self.jobs_per_day / total)
        return jobs

    def _incident(self, day: date) -> Incident | None:
        return _on(self._truth.incident, day)

    def tasks(self, day: date) -> tuple[PayloadTruth, ...]:
        """Return the truth about the tasks born on a day; they live up to six days."""
        return self._births(day).truth()

    def truth(self) -> Truth:
        """The truth about queues, CPU models and, with a course, days."""
        return self._truth

    def declarations(self) -> list[Declaration]:
        """Return the declared corepower to import; queues without one have a row, too."""
        queues = [
            Declaration(
                level="queue",
                name=queue.name,
                corepower=queue.declared,
                benchmark="HS06",
                valid_from=DECLARED_FROM,
                site=queue.site,
                parent_corepower=queue.parent_corepower,
                source=OF_DEMO,
            )
            for queue in self._truth.queues
        ]
        models = [
            Declaration(
                level="cpu_model",
                name=cpu.name,
                corepower=cpu.reference,
                benchmark="HS06",
                valid_from=DECLARED_FROM,
                site=None,
                parent_corepower=None,
                source="synthetic grid: benchmark table",
            )
            for cpu in self._truth.cpu_models
            if cpu.reference is not None
        ]
        return queues + models

    def score(self, standings: Mapping[str, str]) -> Score:
        """Compare what is said of queues (name to ``confirmed``, ``candidate``, ...) with what is planted."""
        return score(self._truth, standings)

    @property
    def _tasks_per_day(self) -> int:
        if self.tasks_per_day is not None:
            return self.tasks_per_day
        # larger grids run larger tasks, not only more of them
        return max(4, round(9 * math.pow(self.jobs_per_day / 10_000, 0.92)))

    @cached_property
    def _truth(self) -> Truth:
        rng = np.random.default_rng([self.seed, 0])
        models = plan_models(rng, self.n_models)
        queues = plan_queues(rng, self.n_queues, models)
        incident = None if self.course is None else self.course.incident(queues)
        return Truth(queues=queues, cpu_models=models, incident=incident)

    @cached_property
    def _hosts(self) -> Hosts:
        return Hosts.of(self._truth.queues, self._truth.cpu_models)

    @cached_property
    def _nodes(self) -> Nodes:
        return Nodes.of(self._truth.queues, self._truth.incident)

    @cached_property
    def _queue_arrays(self) -> QueueArrays:
        return QueueArrays.of(self._truth.queues)

    def _births(self, day: date) -> Births:
        return births(self.seed, day, self._tasks_per_day, self._queue_arrays)


_AnyFault = TypeVar("_AnyFault", bound=Fault)


def _on(fault: _AnyFault | None, day: date) -> _AnyFault | None:
    """Return a fault on one of its days."""
    return fault if fault is not None and fault.on(day) else None
