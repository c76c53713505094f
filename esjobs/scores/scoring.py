"""Scores from counters: the events of each family put into the formulas, a reason where that fails."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.scores import formulas
from esjobs.scores.counters import Counters
from esjobs.scores.families import GPU_EVENTS, GPU_SHARES, SPELLED, Family, WarpEvent, family_of
from esjobs.scores.formulas import Flags, Floats
from esjobs.scores.reasons import NONE, Codes, Reasons, codes_of, first

Places = npt.NDArray[np.int64]

NO_COUNTERS = "no counters"
NO_GPU_COUNTERS = "no counters of GPUs"
NO_MODEL = "the record names no CPU model"
SMT_UNKNOWN = "smt unknown"
NO_CYCLES = "no cycles counted"
NO_WAITING = "no incomplete operation was counted, or no cycles"
NO_WARPS = "no warps counted"
OUTSIDE = "outside 0 to 100, clipped: the counters do not fit each other"
COUNTER_SCORES = ("score_cpu", "score_mem", "score_gpu", "score_gpumem")
"""The scores that counters make."""


@dataclass
class Scored:
    """One score of some jobs, NaN where there is none, and codes of reasons."""

    unclipped: Floats
    codes: Codes

    @property
    def value(self) -> Floats:
        """In 0 to 100."""
        return formulas.clipped(self.unclipped)[0]


@dataclass
class CounterScores:
    """The scores that counters make, by name; ``variant``: by which definition, null where by none."""

    scores: dict[str, Scored]
    variant: pa.Array


def score_counters(
    counters: pa.MapArray, cpu_models: pa.StringArray, smt: pa.BooleanArray, reasons: Reasons
) -> CounterScores:
    """Score jobs by what was counted, summed over their cores and samples.

    ``cpu_models``: canonical names; of a CPU that has none, what the record says. ``smt``: whether two
    threads of a core ran, null: unknown. Memory: some columns of numbers per event.
    """
    read = Counters(counters)
    jobs = len(counters)
    cpu, mem = _empty(jobs), _empty(jobs)
    for scored in (cpu, mem):
        first(scored.codes, ~read.given, reasons.code(NO_COUNTERS))
    variants: list[str] = []
    variant = codes_of(jobs)
    for family, name, places in _by_family(cpu_models, read.given):
        if family is None or family.undefined:
            why = NO_MODEL if name is None else f"unknown CPU: {name}"
            code = reasons.code(why if family is None else family.undefined)
            for scored in (cpu, mem):
                scored.codes[places] = code
            continue
        asked = _Family(family, read, places, smt, reasons)
        for scored, made in ((cpu, asked.cpu()), (mem, asked.mem())):
            scored.unclipped[places] = made.unclipped
            scored.codes[places] = made.codes
        for suffix, of_suffix in asked.suffixes:
            label = f"{family.name}{suffix}"
            if label not in variants:
                variants.append(label)
            some = ~np.isnan(cpu.unclipped[places]) | ~np.isnan(mem.unclipped[places])
            variant[places[of_suffix & some]] = variants.index(label) + 1
    gpu, gpumem = _gpu_scores(read, reasons)
    scores = dict(zip(COUNTER_SCORES, (cpu, mem, gpu, gpumem), strict=True))
    for scored in scores.values():
        flag_outside(scored, reasons)
    return CounterScores(scores, Reasons(variants).column(variant))


def missing(events: Sequence[str]) -> str:
    """The reason of a job that has none of some events, of which the first is the usual one."""
    return f"missing event: {SPELLED[events[0]]}"


def flag_outside(scored: Scored, reasons: Reasons) -> None:
    """Say of scores far outside 0 to 100 that their counters do not fit each other; in place."""
    first(scored.codes, formulas.clipped(scored.unclipped)[1], reasons.code(OUTSIDE))


def _empty(jobs: int) -> Scored:
    return Scored(np.full(jobs, np.nan), codes_of(jobs))


def _by_family(cpu_models: pa.StringArray, given: Flags) -> list[tuple[Family | None, str | None, Places]]:
    """The jobs that have counters, by the family of their CPU; unknown models each on its own."""
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
        places = np.flatnonzero(np.isin(of_model, members) & given)
        if len(places):
            listed.append((family, name, places))
    return listed


class _Counted:
    """Counts of some jobs, and what is wrong with those that a formula needs."""

    def __init__(self, counters: Counters, places: Places, reasons: Reasons) -> None:
        self.codes = codes_of(len(places))
        self._counters = counters
        self._places = places
        self._reasons = reasons

    def needed(self, events: Sequence[str]) -> tuple[Floats, Places]:
        """The first of the events that a job has; a job that has none gets a reason."""
        counts, place = self.looked_up(events)
        first(self.codes, place < 0, self._reasons.code(missing(events)))
        return counts, place

    def looked_up(self, events: Sequence[str]) -> tuple[Floats, Places]:
        """The same; a job that has none is as good as others."""
        counts, place = self._counters.first(events, self._places)
        for number, event in enumerate(events):
            with np.errstate(invalid="ignore"):
                wrong = (place == number) & ((counts < 0) | np.isinf(counts))
            if wrong.any():
                first(self.codes, wrong, self._reasons.code(f"impossible count: {SPELLED[event]}"))
        return counts, place

    def because(self, where: Flags, why: str) -> None:
        """Give a reason to jobs that have none."""
        first(self.codes, where, self._reasons.code(why))

    def scored(self, unclipped: Floats, zero: str = NO_CYCLES) -> Scored:
        """The scores of the jobs that nothing is wrong with; ``zero``: what it means to divide by 0."""
        self.because(np.isnan(unclipped), zero)
        return Scored(np.where(self.codes == NONE, unclipped, np.nan), self.codes)


class _Family:
    """The scores of the jobs of one family."""

    def __init__(
        self, family: Family, counters: Counters, places: Places, smt: pa.BooleanArray, reasons: Reasons
    ) -> None:
        self._family = family
        self._counters = counters
        self._places = places
        self._reasons = reasons
        mine = smt.take(pa.array(places))
        self._smt_known: Flags = mine.is_valid().to_numpy(zero_copy_only=False)
        self._smt: Flags = mine.fill_null(False).to_numpy(zero_copy_only=False)
        self.suffixes: list[tuple[str, Flags]] = [("", np.ones(len(places), np.bool_))]
        """What follows the family in the name of a variant, and of which jobs."""

    def cpu(self) -> Scored:
        counted = self._counted()
        retired, _ = counted.needed(self._events("retired"))
        return counted.scored(formulas.score_cpu(retired, self._slots(counted)))

    def mem(self) -> Scored:
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
        stores, place = counted.needed(events)
        if "store_stalls" in self._family.variants:
            self.suffixes += [
                (f"-{event.split('_', 2)[-1]}", (place == number) & (counted.codes == NONE))
                for number, event in enumerate(events)
                if number
            ]
        return counted.scored(formulas.score_mem_cycles(cycles, loads, stores))

    def _counted(self) -> _Counted:
        return _Counted(self._counters, self._places, self._reasons)

    def _events(self, what: str) -> tuple[str, ...]:
        return self._family.events.get(what, ())

    def _slots(self, counted: _Counted) -> Floats:
        """Slots of the pipeline, by the first event that tells them."""
        width = self._family.width
        slots, _ = counted.looked_up(self._events("slots"))
        cores, _ = counted.looked_up(self._events("core_cycles"))
        slots = np.where(np.isnan(slots), width * cores, slots)
        of_any, _ = counted.looked_up(self._events("any_cycles"))
        of_threads, _ = counted.looked_up(self._events("thread_cycles"))
        by_any = width * formulas.core_cycles(of_any, self._smt)
        # without SMT the cycles of a thread are those of its core
        by_threads = np.where(self._smt, np.nan, width * of_threads)
        by_smt = np.where(np.isnan(by_any), by_threads, by_any)
        told = ~np.isnan(slots)
        counts_threads = ~np.isnan(of_any) | ~np.isnan(of_threads)
        counted.because(~told & ~self._smt_known & counts_threads, SMT_UNKNOWN)
        slots = np.where(told, slots, by_smt)
        ways = [name for what in ("slots", "core_cycles", "any_cycles") for name in self._events(what)]
        counted.because(np.isnan(slots), missing(ways))
        return slots


def _gpu_scores(counters: Counters, reasons: Reasons) -> tuple[Scored, Scored]:
    """The scores of GPUs, of jobs that have any of their counters."""
    of_gpus = counters.has_any(
        [*(item.event for items in GPU_EVENTS.values() for item in items), *GPU_SHARES]
    )
    places = np.flatnonzero(of_gpus)

    def warps(counted: _Counted, what: str) -> Floats:
        events: tuple[WarpEvent, ...] = GPU_EVENTS[what]
        counts, place = counted.looked_up([item.event for item in events])
        if what in ("theoretical", "active"):
            share, _ = counted.looked_up(GPU_SHARES)
            counted.because((place < 0) & ~np.isnan(share), f"occupancy is a share, not warps: {what} warps")
        counted.because(place < 0, missing([item.event for item in events]))
        factors = np.array([item.factor for item in events])
        return np.where(place < 0, np.nan, counts * factors[place])

    def gpu(counted: _Counted) -> Floats:
        return formulas.score_gpu(warps(counted, "eligible"), warps(counted, "theoretical"))

    def gpumem(counted: _Counted) -> Floats:
        stalled = warps(counted, "dependency"), warps(counted, "throttle")
        return formulas.score_gpumem(*stalled, warps(counted, "active"))

    def over_all(made: Callable[[_Counted], Floats]) -> Scored:
        scored = _empty(len(of_gpus))
        first(scored.codes, ~of_gpus, reasons.code(NO_GPU_COUNTERS))
        counted = _Counted(counters, places, reasons)
        mine = counted.scored(made(counted), NO_WARPS)
        scored.unclipped[places], scored.codes[places] = mine.unclipped, mine.codes
        return scored

    return over_all(gpu), over_all(gpumem)
