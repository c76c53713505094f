"""What is planted in the made-up grid: the truth about queues, CPU models and tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from esjobs.core.words import CANDIDATE, CONFIRMED

CoreClass = Literal["single", "multi"]
"""One core or several."""

Origin = Literal["own", "inherited", "default", "none"]
"""Where a queue's declared corepower comes from; ``default`` is the served 10.0."""


@dataclass(frozen=True)
class QueueTruth:
    """The truth about one computing queue.

    ``speed``: HS06 per core that its jobs get, the harmonic mean over its jobs' CPU models (CPU time adds
    up, speed does not). ``share``: its size, summing to 1 over the grid (the jobs
    it gets grow with it, but also depend on the tasks that choose it). ``mixture``: CPU model and
    fraction of the queue's jobs. ``declared``: corepower in HS06 per core, null when none is declared.
    ``factor``: declared over honest; 1 unless misdeclared. ``events_factor``: events of its jobs over
    those of other queues. ``efficiency``: usual CPU time over wall time x cores. ``newer_pilot``:
    fraction of jobs that report their CPU in the newer form.
    """

    name: str
    site: str
    speed: float
    share: float
    core_classes: tuple[CoreClass, ...]
    mixture: tuple[tuple[str, float], ...]
    declared: float | None
    origin: Origin
    parent_corepower: float | None
    factor: float
    island: bool
    events_factor: float
    efficiency: float
    newer_pilot: float

    @property
    def misdeclared(self) -> bool:
        """Whether a wrong value was planted on purpose."""
        return self.factor != 1.0

    @property
    def default_declared(self) -> bool:
        """Whether the queue carries the default in place of a measurement."""
        return self.origin == "default"

    @property
    def short_jobs(self) -> bool:
        """Whether the queue gets jobs with fewer events than others."""
        return self.events_factor < 1.0


@dataclass(frozen=True)
class CpuTruth:
    """The truth about one CPU model.

    ``speed``: HS06 per core. ``raw``: the strings that jobs report. ``reference``: value in the published
    table that the demo imports, in HS06 per core; null for a model that the table does not list.
    """

    name: str
    speed: float
    raw: tuple[str, ...]
    reference: float | None


@dataclass(frozen=True)
class Incident:
    """Days on which something went wrong at a site, from ``first`` to ``last``, both included.

    ``efficiency_factor``: efficiency of its jobs over the usual one; they run longer for the same CPU time.
    ``failure_rate``: fraction of its jobs that fail though they would have finished elsewhere.
    ``waiting_factor``: their waiting time over the usual one.
    """

    site: str
    first: date
    last: date
    efficiency_factor: float
    failure_rate: float
    waiting_factor: float

    def on(self, day: date) -> bool:
        """Whether the day is one of the incident."""
        return self.first <= day <= self.last


@dataclass(frozen=True)
class Truth:
    """The truth about a grid: queues and CPU models, in a fixed order, and the incident if it has one."""

    queues: tuple[QueueTruth, ...]
    cpu_models: tuple[CpuTruth, ...]
    incident: Incident | None = None

    def queue(self, name: str) -> QueueTruth:
        """The queue of that name, or :class:`KeyError`."""
        return {queue.name: queue for queue in self.queues}[name]

    @property
    def misdeclared(self) -> tuple[str, ...]:
        """Names of the queues with a planted wrong declaration."""
        return tuple(queue.name for queue in self.queues if queue.misdeclared)

    @property
    def island(self) -> tuple[str, ...]:
        """Names of the queues that share no task with the others."""
        return tuple(queue.name for queue in self.queues if queue.island)


@dataclass(frozen=True)
class PayloadTruth:
    """One kind of jobs inside a task.

    A job of n events takes ``work_hs06_s`` x (``fixed_events`` + n) / speed seconds of CPU time.
    ``events``: median events of a job. ``n_queues``: queues that it is sent to.
    """

    task_id: str
    processing_type: str
    transformation: str
    core_class: CoreClass
    work_hs06_s: float
    fixed_events: float
    events: float
    n_queues: int
    island: bool


@dataclass(frozen=True)
class Declaration:
    """A row of the table of declared corepower that belongs to the grid.

    ``level``: queue or cpu_model. ``corepower``, ``parent_corepower``: HS06 per core, null where there is
    none. ``valid_from``: UTC.
    """

    level: Literal["queue", "cpu_model"]
    name: str
    corepower: float | None
    benchmark: str
    valid_from: datetime
    site: str | None
    parent_corepower: float | None
    source: str


@dataclass(frozen=True)
class Score:
    """How a table of verdicts compares with what was planted.

    ``found``: planted misdeclared queues whose deviation is confirmed; ``candidates``: those that are only
    candidates; ``missed``: those that are neither. ``others`` and ``other_candidates``: queues that are
    confirmed or candidates though their declaration is honest, by name.
    """

    found: tuple[str, ...]
    missed: tuple[str, ...]
    others: tuple[str, ...]
    candidates: tuple[str, ...] = ()
    other_candidates: tuple[str, ...] = ()

    @property
    def planted(self) -> int:
        """Number of planted misdeclared queues."""
        return len(self.found) + len(self.candidates) + len(self.missed)

    @property
    def sentence(self) -> str:
        """The score in one sentence.

        >>> Score(found=("A", "B"), missed=("C",), others=()).sentence
        '2 of 3 planted misdeclared queues confirmed (missed: C), 0 others confirmed'
        >>> Score(("A",), (), (), candidates=("B",), other_candidates=("D",)).sentence
        '1 of 2 planted misdeclared queues confirmed (candidates: B), 0 others confirmed (candidates: D)'
        """
        return (
            f"{len(self.found)} of {self.planted} planted misdeclared queues confirmed"
            f"{_named(candidates=self.candidates, missed=self.missed)}, {len(self.others)} others confirmed"
            f"{_named(confirmed=self.others, candidates=self.other_candidates)}"
        )


def _named(**groups: tuple[str, ...]) -> str:
    named = [f"{word}: {', '.join(names)}" for word, names in groups.items() if names]
    return f" ({'; '.join(named)})" if named else ""


def score(truth: Truth, standings: Mapping[str, str]) -> Score:
    """Compare what is said of queues with the truth.

    ``standings``: queue name to its verdict as people read it, ``confirmed`` or ``candidate`` for one that
    deviates; a queue without any is neither.
    """
    confirmed = {name for name, word in standings.items() if word == CONFIRMED}
    candidates = {name for name, word in standings.items() if word == CANDIDATE}
    planted = truth.misdeclared
    return Score(
        found=tuple(name for name in planted if name in confirmed),
        missed=tuple(name for name in planted if name not in confirmed | candidates),
        others=tuple(sorted(confirmed.difference(planted))),
        candidates=tuple(name for name in planted if name in candidates),
        other_candidates=tuple(sorted(candidates.difference(planted))),
    )
