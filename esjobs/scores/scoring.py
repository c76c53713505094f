"""Scores from counters: events of each CPU family put into the formulas, or the reason why not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.scores import formulas
from esjobs.scores.counters import Counters
from esjobs.scores.families import GPU_EVENTS, GPU_SHARES, SPELLED, Family, WarpEvent, family_of
from esjobs.scores.reasons import NONE, Codes, Reasons, codes_of, first

NO_COUNTERS = "no counters"
NO_GPU_COUNTERS = "no counters and no activity of GPUs"
NO_MODEL = "the record has no CPU model"
SMT_UNKNOWN = "smt unknown"
NO_CYCLES = "no cycles counted"
NO_WAITING = "incomplete operations or cycles were not counted"
NO_WARPS = "no warps counted"
OUTSIDE = "outside 0 to 100, clipped: inconsistent counters"
COUNTER_SCORES = ("score_cpu", "score_mem", "score_gpu", "score_gpumem")
"""Scores made from counters."""


@dataclass
class Scored:
    """A score of a batch of jobs, NaN if missing, with reason codes."""

    unclipped: Floats
    codes: Codes

    @property
    def value(self) -> Floats:
        """Score clipped to 0 to 100."""
        return formulas.clipped(self.unclipped)[0]


@dataclass
class CounterScores:
    """Counter scores by name; ``variant``: definition used, null if none."""

    scores: dict[str, Scored]
    variant: pa.Array


def score_counters(
    counters: pa.MapArray, cpu_models: pa.StringArray, smt: pa.BooleanArray, reasons: Reasons
) -> CounterScores:
    """Score jobs from counters summed over cores and samples.

    ``cpu_models``: canonical names, else the raw string. ``smt``: null if unknown.
    """
    read = Counters(counters)
    jobs = len(counters)
    cpu, mem = _empty(jobs), _empty(jobs)
    for scored in (cpu, mem):
        first(scored.codes, ~read.present, reasons.code(NO_COUNTERS))
    variants = Reasons()
    variant = codes_of(jobs)
    for family, name, rows in _by_family(cpu_models, read.present):
        if family is None or family.undefined:
            code = reasons.code(_undefined(family, name))
            cpu.codes[rows] = mem.codes[rows] = code
            continue
        own = _Family(family, read, rows, smt, reasons)
        for scored, part in ((cpu, own.cpu()), (mem, own.mem())):
            scored.unclipped[rows], scored.codes[rows] = part.unclipped, part.codes
        has_score = ~np.isnan(cpu.unclipped[rows]) | ~np.isnan(mem.unclipped[rows])
        for suffix, of_suffix in own.suffixes:
            variant[rows[of_suffix & has_score]] = variants.code(f"{family.name}{suffix}")
    # GPUs have one definition whatever the CPU
    gpu, gpumem = _gpu_scores(read, reasons)
    scores = dict(zip(COUNTER_SCORES, (cpu, mem, gpu, gpumem), strict=True))
    for scored in scores.values():
        # far outside 0 to 100 the counters are inconsistent
        first(scored.codes, formulas.clipped(scored.unclipped)[1], reasons.code(OUTSIDE))
    return CounterScores(scores, variants.column(variant))


def _undefined(family: Family | None, name: str | None) -> str:
    if family is not None:
        return family.undefined
    return NO_MODEL if name is None else f"unknown CPU: {name}"


def missing(events: Sequence[str]) -> str:
    """Return the reason of jobs without any of the events; the first is the usual one."""
    return f"missing event: {SPELLED[events[0]]}"


def _empty(jobs: int) -> Scored:
    return Scored(np.full(jobs, np.nan), codes_of(jobs))


def _by_family(cpu_models: pa.StringArray, present: Mask) -> list[tuple[Family | None, str | None, Ints]]:
    """Group jobs with counters by CPU family; each unknown model is its own group."""
    encoded = cpu_models.dictionary_encode()
    names = [*encoded.dictionary.to_pylist(), None]
    # a missing model is the last of the names
    of_model = encoded.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
    groups: dict[tuple[str, str | None], tuple[Family | None, list[int]]] = {}
    for code, name in enumerate(names):
        family = family_of(name)
        key = ("", name) if family is None else (family.name, None)
        groups.setdefault(key, (family, []))[1].append(code)
    listed = []
    for (_, name), (family, members) in groups.items():
        rows = np.flatnonzero(np.isin(of_model, members) & present)
        if len(rows):
            listed.append((family, name, rows))
    return listed


class _Counted:
    """Counts of some jobs and the reasons why formulas cannot use them."""

    def __init__(self, counters: Counters, rows: Ints, reasons: Reasons) -> None:
        self.codes = codes_of(len(rows))
        self._counters = counters
        self._rows = rows
        self._reasons = reasons

    def needed(self, events: Sequence[str]) -> tuple[Floats, Ints]:
        """Return the first available event; jobs without one get a reason."""
        counts, index = self.looked_up(events)
        first(self.codes, index < 0, self._reasons.code(missing(events)))
        return counts, index

    def looked_up(self, events: Sequence[str]) -> tuple[Floats, Ints]:
        """Return the first available event; jobs without one get no reason."""
        counts, index = self._counters.first(events, self._rows)
        # of the event that was taken, so that the reason can name it
        for number, event in enumerate(events):
            with np.errstate(invalid="ignore"):
                wrong = (index == number) & ((counts < 0) | np.isinf(counts))
            if wrong.any():
                first(self.codes, wrong, self._reasons.code(f"impossible count: {SPELLED[event]}"))
        return counts, index

    def because(self, where: Mask, why: str) -> None:
        """Set a reason on jobs that have none."""
        first(self.codes, where, self._reasons.code(why))

    def scored(self, unclipped: Floats, zero: str = NO_CYCLES) -> Scored:
        """Return scores of jobs without a reason; ``zero``: reason for division by 0."""
        self.because(np.isnan(unclipped), zero)
        return Scored(np.where(self.codes == NONE, unclipped, np.nan), self.codes)


class _Family:
    """Scores of the jobs of one CPU family."""

    def __init__(
        self, family: Family, counters: Counters, rows: Ints, smt: pa.BooleanArray, reasons: Reasons
    ) -> None:
        self._family = family
        self._counters = counters
        self._rows = rows
        self._reasons = reasons
        mine = smt.take(pa.array(rows))
        self._smt_recorded: Mask = mine.is_valid().to_numpy(zero_copy_only=False)
        self._smt: Mask = mine.fill_null(False).to_numpy(zero_copy_only=False)
        self.suffixes: list[tuple[str, Mask]] = [("", np.ones(len(rows), np.bool_))]
        # suffix of the variant's name, and the jobs that have it

    def cpu(self) -> Scored:
        counted = self._counted()
        retired_slots, _ = counted.needed(self._events("retired"))
        return counted.scored(formulas.score_cpu(retired_slots, self._slots(counted)))

    def mem(self) -> Scored:
        """Score memory by slots, else by waiting, else by stalls: the best that the events allow."""
        counted = self._counted()
        if self._events("memory_slots"):
            memory, _ = counted.needed(self._events("memory_slots"))
            return counted.scored(formulas.score_mem_slots(memory, self._slots(counted)))
        if self._events("backend_slots"):
            backend, _ = counted.needed(self._events("backend_slots"))
            loads, _ = counted.needed(self._events("load_not_complete"))
            waiting, _ = counted.needed(self._events("not_complete"))
            slots = self._slots(counted)
            return counted.scored(formulas.score_mem_waiting(backend, slots, loads, waiting), NO_WAITING)
        cycles, _ = counted.needed(self._events("cycles"))
        loads, _ = counted.needed(self._events("load_stalls"))
        events = self._events("store_stalls")
        stores, index = counted.needed(events)
        # another event of stalls makes another score: it must not be ranked with the first
        if "store_stalls" in self._family.variants:
            self.suffixes += [
                (f"-{event.split('_', 2)[-1]}", (index == number) & (counted.codes == NONE))
                for number, event in enumerate(events)
                if number
            ]
        return counted.scored(formulas.score_mem_cycles(cycles, loads, stores))

    def _counted(self) -> _Counted:
        return _Counted(self._counters, self._rows, self._reasons)

    def _events(self, what: str) -> tuple[str, ...]:
        return self._family.events.get(what, ())

    def _slots(self, counted: _Counted) -> Floats:
        """Return pipeline slots from the first event that counts them."""
        width = self._family.width
        slots, _ = counted.looked_up(self._events("slots"))
        cores, _ = counted.looked_up(self._events("core_cycles"))
        # counted slots are exact; cycles make slots only by the width
        slots = np.where(np.isnan(slots), width * cores, slots)
        of_any, _ = counted.looked_up(self._events("any_cycles"))
        of_threads, _ = counted.looked_up(self._events("thread_cycles"))
        by_any = width * formulas.core_cycles(of_any, self._smt)
        # without SMT the cycles of a thread are those of its core
        by_threads = np.where(self._smt, np.nan, width * of_threads)
        by_smt = np.where(np.isnan(by_any), by_threads, by_any)
        direct = ~np.isnan(slots)
        counts_threads = ~np.isnan(of_any) | ~np.isnan(of_threads)
        counted.because(~direct & ~self._smt_recorded & counts_threads, SMT_UNKNOWN)
        slots = np.where(direct, slots, by_smt)
        ways = [name for what in ("slots", "core_cycles", "any_cycles") for name in self._events(what)]
        counted.because(np.isnan(slots), missing(ways))
        return slots


def _gpu_scores(counters: Counters, reasons: Reasons) -> tuple[Scored, Scored]:
    """Return the GPU scores of jobs with any GPU counter."""
    of_gpus = counters.has_any(
        [*(item.event for items in GPU_EVENTS.values() for item in items), *GPU_SHARES]
    )
    rows = np.flatnonzero(of_gpus)
    shares = counters.has_any(GPU_SHARES)[rows]

    def warps(counted: _Counted, what: str) -> Floats:
        events: tuple[WarpEvent, ...] = GPU_EVENTS[what]
        counts, index = counted.looked_up([item.event for item in events])
        if what in ("theoretical", "active"):
            # an occupancy matters only where warps are missing; an impossible one says nothing of the warps
            counted.because(
                (index < 0) & shares, f"occupancy is a share, not a number of warps: {what} warps"
            )
        counted.because(index < 0, missing([item.event for item in events]))
        factors = np.array([item.factor for item in events])
        return np.where(index < 0, np.nan, counts * factors[index])

    def gpu(counted: _Counted) -> Floats:
        return formulas.score_gpu(warps(counted, "eligible"), warps(counted, "theoretical"))

    def gpumem(counted: _Counted) -> Floats:
        stalled = warps(counted, "dependency"), warps(counted, "throttle")
        return formulas.score_gpumem(*stalled, warps(counted, "active"))

    def over_all(made: Callable[[_Counted], Floats]) -> Scored:
        scored = _empty(len(of_gpus))
        first(scored.codes, ~of_gpus, reasons.code(NO_GPU_COUNTERS))
        counted = _Counted(counters, rows, reasons)
        mine = counted.scored(made(counted), NO_WARPS)
        scored.unclipped[rows], scored.codes[rows] = mine.unclipped, mine.codes
        return scored

    return over_all(gpu), over_all(gpumem)
