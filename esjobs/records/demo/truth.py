"""Ground truth of the synthetic grid: queues, CPU models and tasks."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from esjobs.core.words import CANDIDATE, CONFIRMED

CoreClass = Literal["single", "multi"]
"""One core or several."""

Origin = Literal["own", "inherited", "default", "none"]
"""Origin of a queue's declared corepower; ``default`` is the served 10.0."""


@dataclass(frozen=True)
class QueueTruth:
    """The truth about one queue.

    ``speed``: HS06 per core, the harmonic mean over its CPU models (CPU time adds up, speed does not).
    ``share``: size, summing to 1. ``mixture``: CPU model and fraction of jobs. ``declared``: None if nothing
    is declared. ``factor``: declared over honest. ``events_factor``: events over those of other queues.
    ``newer_pilot``: fraction of jobs that report their CPU in the newer form.
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
        """True if a wrong value was injected."""
        return self.factor != 1.0

    @property
    def short_jobs(self) -> bool:
        """True if the jobs of the queue have fewer events than others."""
        return self.events_factor < 1.0


@dataclass(frozen=True)
class CpuTruth:
    """The truth about one CPU model: HS06 per core, strings that jobs report, published value or None."""

    name: str
    speed: float
    raw: tuple[str, ...]
    reference: float | None


@dataclass(frozen=True)
class Fault:
    """Days with less efficiency, both included; factors are over the usual values."""

    first: date
    last: date
    efficiency_factor: float

    def on(self, day: date) -> bool:
        """True if the day is one of them."""
        return self.first <= day <= self.last


@dataclass(frozen=True)
class Incident(Fault):
    """Fault at a site, where jobs fail and wait, too."""

    site: str
    failure_rate: float
    waiting_factor: float


@dataclass(frozen=True)
class SlowTask(Fault):
    """Task that wastes its cores everywhere."""

    task_id: str


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
    """A row of declared corepower of the grid, in HS06 per core."""

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
    """Comparison of verdicts with the injected faults, by the names of queues.

    ``others``, ``other_candidates``: flagged although their declaration is honest.
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
        '2 of 3 injected misdeclared queues confirmed (missed: C), 0 others confirmed'
        >>> Score(("A",), (), (), candidates=("B",), other_candidates=("D",)).sentence
        '1 of 2 injected misdeclared queues confirmed (candidates: B), 0 others confirmed (candidates: D)'
        """
        return (
            f"{len(self.found)} of {self.planted} injected misdeclared queues "
            f"confirmed{_named(candidates=self.candidates, missed=self.missed)}, {len(self.others)} others "
            f"confirmed{_named(confirmed=self.others, candidates=self.other_candidates)}"
        )


def _named(**groups: tuple[str, ...]) -> str:
    named = [f"{word}: {', '.join(names)}" for word, names in groups.items() if names]
    return f" ({'; '.join(named)})" if named else ""


def score(truth: Truth, standings: Mapping[str, str]) -> Score:
    """Compare verdicts with the truth; ``standings``: verdict by the name of the queue."""
    confirmed = {name for name, word in standings.items() if word == CONFIRMED}
    candidates = {name for name, word in standings.items() if word == CANDIDATE}
    planted = truth.misdeclared

    def of(names: Set[str]) -> tuple[str, ...]:
        return tuple(name for name in planted if name in names)

    return Score(
        found=of(confirmed),
        missed=of(set(planted) - confirmed - candidates),
        others=tuple(sorted(confirmed.difference(planted))),
        candidates=of(candidates),
        other_candidates=tuple(sorted(candidates.difference(planted))),
    )
