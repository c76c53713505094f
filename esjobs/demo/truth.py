"""What is planted in the made-up grid: the truth about queues, CPU models and tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

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
    rc_site: str
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
class Truth:
    """The truth about a grid: its queues and its CPU models, in a fixed order."""

    queues: tuple[QueueTruth, ...]
    cpu_models: tuple[CpuTruth, ...]

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
    ``events``: median events of a job. ``n_sites``: queues that it is sent to.
    """

    task_id: str
    processing_type: str
    transformation: str
    core_class: CoreClass
    work_hs06_s: float
    fixed_events: float
    events: float
    n_sites: int
    island: bool


@dataclass(frozen=True)
class Declaration:
    """A row of the table of declared corepower that belongs to the grid.

    ``level``: site or cpu_model. ``corepower``, ``parent_corepower``: HS06 per core, null where there is
    none. ``valid_from``: UTC.
    """

    level: Literal["site", "cpu_model"]
    name: str
    corepower: float | None
    benchmark: str
    valid_from: datetime
    rc_site: str | None
    parent_corepower: float | None
    source: str


@dataclass(frozen=True)
class Score:
    """How a table of verdicts compares with what was planted.

    ``found``, ``missed``: planted misdeclared queues with and without the verdict ``deviates``.
    ``others``: queues with that verdict though their declaration is honest, by name.
    """

    found: tuple[str, ...]
    missed: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def planted(self) -> int:
        """Number of planted misdeclared queues."""
        return len(self.found) + len(self.missed)

    @property
    def sentence(self) -> str:
        """The score in one sentence.

        >>> Score(found=("A", "B"), missed=("C",), others=()).sentence
        '2 of 3 planted misdeclared queues found (missed: C), 0 others flagged'
        """
        missed = f" (missed: {', '.join(self.missed)})" if self.missed else ""
        others = f": {', '.join(self.others)}" if self.others else ""
        return (
            f"{len(self.found)} of {self.planted} planted misdeclared queues found{missed}, "
            f"{len(self.others)} others flagged{others}"
        )


def score(truth: Truth, verdicts: Mapping[str, str]) -> Score:
    """Compare verdicts (queue name to verdict) with the truth; a queue without a verdict is not flagged."""
    flagged = {name for name, verdict in verdicts.items() if verdict == "deviates"}
    planted = truth.misdeclared
    return Score(
        found=tuple(name for name in planted if name in flagged),
        missed=tuple(name for name in planted if name not in flagged),
        others=tuple(sorted(flagged.difference(planted))),
    )
