"""The scores of one job in plain Python, written from the paper's formulas: a second implementation."""

import math
from collections.abc import Mapping, Sequence

CYCLES = (
    "cpu_clk_unhalted_thread",
    "cpu_clk_unhalted_thread_p",
    "cpu_clk_unhalted_core",
    "cpu_cycles",
    "cycles",
    "papi_tot_cyc",
)
ANY = ("cpu_clk_unhalted_thread_any", "cpu_clk_unhalted_thread_p_any")
WARPS = {
    "eligible": (
        ("gpu_eligible_warps", 1),
        ("eligible_warps_per_cycle", 1),
        ("smsp_warps_eligible_avg_per_cycle_active", 4),
    ),
    "theoretical": (("gpu_theoretical_warps", 1), ("sm_maximum_warps_avg_per_active_cycle", 1)),
    "active": (
        ("gpu_active_warps", 1),
        ("sm_warps_active_avg_per_cycle_active", 1),
        ("smsp_warps_active_avg_per_cycle_active", 4),
    ),
    "dependency": (
        ("gpu_memory_dependency_warps", 1),
        ("smsp_warps_issue_stalled_long_scoreboard_avg_per_cycle_active", 4),
    ),
    "throttle": (
        ("gpu_memory_throttle_warps", 1),
        ("smsp_warps_issue_stalled_lg_throttle_avg_per_cycle_active", 4),
    ),
}


class _NoScoreError(Exception):
    """Something that the score needs is missing or impossible."""


def scores_of_job(
    counters: Mapping[str, float] | None, model: str | None, smt: bool | None
) -> dict[str, float | None]:
    """The four scores that counters make, in 0 to 100; None where a job has none."""
    counts = {name: value for name, value in (counters or {}).items() if not math.isnan(value)}
    made: dict[str, float | None] = {}
    for name, formula in (("score_cpu", _cpu), ("score_mem", _mem)):
        try:
            made[name] = _clipped(formula(counts, model or "", smt))
        except (_NoScoreError, ZeroDivisionError):
            made[name] = None
    try:
        made["score_gpu"] = _clipped(100 - 100 * _warps(counts, "eligible") / _warps(counts, "theoretical"))
    except (_NoScoreError, ZeroDivisionError):
        made["score_gpu"] = None
    try:
        stalled = _warps(counts, "dependency") + _warps(counts, "throttle")
        made["score_gpumem"] = _clipped(100 * stalled / _warps(counts, "active"))
    except (_NoScoreError, ZeroDivisionError):
        made["score_gpumem"] = None
    return made


def _cpu(counts: Mapping[str, float], model: str, smt: bool | None) -> float:
    if "E5-" in model or "Gold 61" in model:
        retired = _one(counts, ["uops_retired_retire_slots"])
    elif "EPYC 9" in model:
        retired = _one(counts, ["ex_ret_ops", "retiring"])
    elif "Platinum" in model:
        retired = _one(counts, ["uops_retired_slots", "topdown_retiring"])
    else:
        raise _NoScoreError
    return 100 * (1 - retired / _slots(counts, model, smt))


def _mem(counts: Mapping[str, float], model: str, smt: bool | None) -> float:
    if "8480" in model:
        memory = _one(counts, ["topdown_memory_bound_slots", "topdown_mem_bound"])
        return 100 * memory / _slots(counts, model, smt)
    if "EPYC 9" in model:
        backend = _one(counts, ["de_no_dispatch_per_slot_backend_stalls", "backend"])
        loads = _one(counts, ["ex_no_retire_load_not_complete"])
        waiting = _one(counts, ["ex_no_retire_not_complete"])
        return 100 * backend / _slots(counts, model, smt) * (loads / waiting)
    if "E5-" in model:
        stalls, stores = ["cycle_activity_stalls_ldm_pending"], ["resource_stalls_sb"]
    elif "Gold 61" in model:
        stalls = ["cycle_activity_stalls_mem_any"]
        stores = ["resource_stalls_sb", "exe_activity_bound_on_stores"]
    elif "8360Y" in model:
        stalls, stores = ["cycle_activity_stalls_mem_any"], ["exe_activity_bound_on_stores"]
    else:
        raise _NoScoreError
    cycles = _one(counts, CYCLES)
    return 100 * (min(cycles, _one(counts, stalls)) + _one(counts, stores)) / cycles


def _slots(counts: Mapping[str, float], model: str, smt: bool | None) -> float:
    direct: Sequence[str]
    per_core: Sequence[str]
    if "EPYC 9" in model:
        width = 8 if model.endswith("5") else 6
        direct, per_core = ("slots",), ("ls_not_halted_cyc", "cpu_cycles", "cycles", "papi_tot_cyc")
    elif "Platinum" in model:
        width = 5 if "8360Y" in model else 6
        direct, per_core = ("topdown_slots", "slots"), ("cpu_clk_unhalted_distributed",)
    else:
        _possible(counts, ANY)
        _possible(counts, CYCLES)
        if smt is None:
            raise _NoScoreError
        if any(name in counts for name in ANY):
            return 4 * _one(counts, ANY) / (2 if smt else 1)
        if smt:
            raise _NoScoreError
        return 4 * _one(counts, CYCLES)
    _possible(counts, direct)
    _possible(counts, per_core)
    if any(name in counts for name in direct):
        return _one(counts, direct)
    return width * _one(counts, per_core)


def _possible(counts: Mapping[str, float], names: Sequence[str]) -> None:
    """A job with an impossible count of its cycles is not assessed, whichever of them is used."""
    if any(name in counts for name in names):
        _one(counts, names)


def _one(counts: Mapping[str, float], names: Sequence[str]) -> float:
    for name in names:
        if name in counts:
            if counts[name] < 0 or math.isinf(counts[name]):
                raise _NoScoreError
            return counts[name]
    raise _NoScoreError


def _warps(counts: Mapping[str, float], what: str) -> float:
    factors = dict(WARPS[what])
    names = tuple(factors)
    value = _one(counts, names)
    return value * next(factors[name] for name in names if name in counts)


def _clipped(score: float) -> float:
    return min(100.0, max(0.0, score))
