"""The tasks of the made-up grid: what is born on a day, how long it lives, where it runs.

A task is born on a day and lives 1 to 6 days, so that days share tasks. Everything about it follows from
(seed, day of birth): a day of jobs can be generated alone by looking at the births of the days before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from esjobs.records.demo.truth import CoreClass, PayloadTruth, QueueTruth

MAX_LIFE_DAYS = 6
MULTI_CORES = 8
MIXED_EVERY_DAYS = 30
"""A mixed task is born once in so many days."""
# Day of birth (ordinal modulo 30): in the last week of June 2025.
_MIXED_PHASE = 17
_RELEASE_DAYS = 15
_FIXED_COST_FRACTION = 0.2
# Width of the site x task interaction, in ln.
_INTERACTION = 0.05
# Planned fraction of jobs whose processing type is excluded from fits.
_EXCLUDED_FRACTION = 0.015
# HS06 per core of a middling core; turns CPU hours into work.
_NORMALISED_SPEED = 11.5


@dataclass(frozen=True)
class Kind:
    """A processing type: its share of tasks, usual work per event (HS06 s), CPU hours per job and core."""

    name: str
    transformation: str
    project: str
    share: float
    work: float
    work_spread: float
    hours: float
    multi: float


KINDS: tuple[Kind, ...] = (
    Kind("evgen", "Gen_tf.py", "mc", 0.18, 60.0, 1.2, 3.0, 0.35),
    Kind("simul", "Sim_tf.py", "mc", 0.34, 2500.0, 0.4, 5.0, 0.7),
    Kind("pile", "Reco_tf.py", "mc", 0.18, 350.0, 0.4, 3.5, 0.8),
    Kind("reprocessing", "Reco_tf.py", "data", 0.1, 180.0, 0.4, 4.0, 0.8),
    Kind("deriv", "Derivation_tf.py", "physics", 0.2, 9.0, 0.7, 1.5, 0.5),
    Kind("pmerge", "HITSMerge_tf.py", "mc", 0.0, 1.5, 0.3, 0.3, 0.0),
    Kind("hammercloud-fct", "Sim_tf.py", "test", 0.0, 2500.0, 0.1, 0.4, 0.5),
)
"""Processing types; the last two never enter a fit."""
N_FITTED_KINDS = 5


@dataclass(frozen=True)
class Births:
    """The payloads of all tasks born on one day, as columns; a payload is one kind of jobs in a task.

    ``work``: HS06 s per event, ``fixed``: start-up cost per job in events, ``events``: median per job,
    ``spread``: width of ln(events), ``rate``: relative jobs of the first day, ``life``: days. ``weights``
    (payloads x queues): fraction of jobs, ``interaction`` (same shape): factor on CPU time. ``release``: of
    the software; a new one every 15 days, no faster than the others.
    """

    task_id: list[str]
    kind: NDArray[np.int64]
    multi: NDArray[np.bool_]
    merging: NDArray[np.bool_]
    island: NDArray[np.bool_]
    work: NDArray[np.float64]
    fixed: NDArray[np.float64]
    events: NDArray[np.float64]
    spread: NDArray[np.float64]
    rate: NDArray[np.float64]
    life: NDArray[np.int64]
    weights: NDArray[np.float64]
    interaction: NDArray[np.float64]
    release: str

    def sizes(self, age: int) -> NDArray[np.float64]:
        """Return relative jobs by payload and queue at an age in days; they fall linearly to 0."""
        sizes: NDArray[np.float64] = (
            self.weights * (self.rate * (self.life - age).clip(0) / self.life)[:, None]
        )
        return sizes

    def truth(self) -> tuple[PayloadTruth, ...]:
        """The same as a tuple of payloads."""
        return tuple(
            PayloadTruth(
                task_id=self.task_id[n],
                processing_type=KINDS[self.kind[n]].name,
                transformation=transformation(int(self.kind[n]), bool(self.merging[n])),
                core_class="multi" if self.multi[n] else "single",
                work_hs06_s=float(self.work[n]),
                fixed_events=float(self.fixed[n]),
                events=float(self.events[n]),
                n_queues=int((self.weights[n] > 0).sum()),
                island=bool(self.island[n]),
            )
            for n in range(len(self.task_id))
        )


def transformation(kind: int, merging: bool) -> str:
    """The program that a payload runs; merge-like jobs inside another task run a program of their own."""
    return "EVNTMerge_tf.py" if merging else KINDS[kind].transformation


@dataclass(frozen=True)
class QueueArrays:
    """Shares, core classes and island of the queues, as arrays."""

    share: NDArray[np.float64]
    single: NDArray[np.bool_]
    multi: NDArray[np.bool_]
    island: NDArray[np.bool_]

    @classmethod
    def of(cls, queues: Sequence[QueueTruth]) -> "QueueArrays":
        """Collect the columns from the queues."""

        def runs(core_class: CoreClass) -> NDArray[np.bool_]:
            return np.asarray([core_class in queue.core_classes for queue in queues])

        return cls(
            share=np.asarray([queue.share for queue in queues]),
            single=runs("single"),
            multi=runs("multi"),
            island=np.asarray([queue.island for queue in queues]),
        )


def births(seed: int, day: date, tasks_per_day: int, arrays: QueueArrays) -> Births:
    """Return the tasks born on a day; equal arguments give equal tasks.

    The first is the island's, the second is of an excluded type, once in 30 days the third mixes two kinds of
    jobs.
    """
    rng = np.random.default_rng([seed, 1, day.toordinal()])
    n = tasks_per_day
    kind = rng.choice(N_FITTED_KINDS, n, p=[k.share for k in KINDS[:N_FITTED_KINDS]])
    kind[1] = N_FITTED_KINDS + int(rng.random() < 0.5)
    # one task a day that only the island runs, which thus shares none with other queues
    island = np.arange(n) == 0
    size = np.exp(rng.normal(0.0, 1.25, n))
    # mean of the log-normal sizes
    ordinary = np.exp(1.25**2 / 2) * (n - 2)
    nudge = np.exp(rng.normal(0.0, 0.2, 2))
    size[0] = ordinary * arrays.share[arrays.island].sum() * nudge[0]
    size[1] = ordinary * _EXCLUDED_FRACTION * nudge[1]
    life = rng.integers(1, MAX_LIFE_DAYS + 1, n)
    n_queues = _site_counts(rng, size, int((~arrays.island).sum()))
    multi = rng.random(n) < np.asarray([k.multi for k in KINDS])[kind]
    both = (rng.random(n) < 0.06) & (kind < N_FITTED_KINDS)
    mixed = np.zeros(n, np.bool_)
    if day.toordinal() % MIXED_EVERY_DAYS == _MIXED_PHASE:
        mixed[2], both[2], multi[2], kind[2], life[2] = True, False, False, 0, MAX_LIFE_DAYS
        size[2] = max(size[2], 4.0)
        n_queues[2] = max(n_queues[2], 15)
    task = np.repeat(np.arange(n), 1 + (both | mixed))
    # second payload of a task: other cores, or merge-like jobs
    second = np.concatenate([[False], task[1:] == task[:-1]])
    columns = _payloads(rng, kind[task], np.where(both[task], second, multi[task]))
    merging = mixed[task] & second
    normal = np.flatnonzero(merging) - 1
    # what makes a task mixed: another cost per event under the same id
    columns.work[merging] = 0.1 * columns.work[normal]
    columns.events[merging] = 3.0 * columns.events[normal]
    columns.fixed[mixed[task]] = 0.0
    columns.spread[mixed[task]] = 0.3
    eligible = np.where(island[task, None], arrays.island, ~arrays.island)
    eligible &= np.where(columns.multi[:, None], arrays.multi, arrays.single)
    weights = _weights(rng, eligible, task, n_queues, arrays.share, mixed[task])
    half = np.where((both | mixed)[task], 0.5, 1.0)
    first_id = 20_000_000 + day.toordinal() * n
    return Births(
        task_id=[str(first_id + int(t)) for t in task],
        kind=kind[task],
        multi=columns.multi,
        merging=merging,
        island=island[task],
        work=columns.work,
        fixed=columns.fixed,
        events=columns.events,
        spread=columns.spread,
        rate=size[task] * half / life[task] * (weights.sum(axis=1) > 0),
        life=life[task],
        weights=weights,
        interaction=np.exp(rng.normal(0.0, _INTERACTION, weights.shape)),
        release=f"Athena/24.0.{day.toordinal() // _RELEASE_DAYS % 100}",
    )


def _site_counts(rng: np.random.Generator, size: NDArray[np.float64], n_queues: int) -> NDArray[np.int64]:
    # heavy-tailed, growing with the jobs; the largest tasks run nearly everywhere
    wanted = 14.0 * (n_queues / 60) * size**0.6 * np.exp(rng.normal(0.0, 0.4, len(size)))
    return np.rint(wanted).clip(1, n_queues).astype(np.int64)


@dataclass(frozen=True)
class _Payloads:
    multi: NDArray[np.bool_]
    work: NDArray[np.float64]
    fixed: NDArray[np.float64]
    events: NDArray[np.float64]
    spread: NDArray[np.float64]


def _payloads(rng: np.random.Generator, kind: NDArray[np.int64], multi: NDArray[np.bool_]) -> _Payloads:
    n = len(kind)
    work = np.asarray([k.work for k in KINDS])[kind]
    work = work * np.exp(np.asarray([k.work_spread for k in KINDS])[kind] * rng.normal(0.0, 1.0, n))
    hours = np.asarray([k.hours for k in KINDS])[kind] * np.exp(rng.normal(0.0, 0.4, n))
    # a job of one core is given less work, or it would run for days
    hours = hours * np.where(multi, MULTI_CORES, 1.5)
    total = hours.clip(0.25) * 3600.0 * _NORMALISED_SPEED
    has_fixed = (rng.random(n) < _FIXED_COST_FRACTION) & (kind < N_FITTED_KINDS)
    ratio = np.where(has_fixed, rng.uniform(0.5, 2.0, n), 0.0)
    events = np.maximum(total / work / (1.0 + ratio), 8.0)
    # where a start-up time is planted the events per job vary more, so that it can be found
    spread = np.where(has_fixed, 0.45, rng.uniform(0.02, 0.3, n))
    return _Payloads(multi, work, ratio * events, events, spread)


def _weights(
    rng: np.random.Generator,
    eligible: NDArray[np.bool_],
    task: NDArray[np.int64],
    n_queues: NDArray[np.int64],
    share: NDArray[np.float64],
    uneven: NDArray[np.bool_],
) -> NDArray[np.float64]:
    # Rows sum to 1, or to 0 where no queue can run the payload. The smallest of exponential keys are a
    # weighted sample without replacement.
    keys = rng.exponential(1.0, (len(n_queues), len(share)))[task] / share**0.35
    keys = np.where(eligible, keys, np.inf)
    last = np.take_along_axis(np.sort(keys, axis=1), n_queues[task][:, None] - 1, axis=1)
    chosen = eligible & (keys <= last)
    noise = np.exp(rng.normal(0.0, np.where(uneven, 1.2, 0.5)[:, None], eligible.shape))
    weights = np.where(chosen, share**0.7 * noise, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))
