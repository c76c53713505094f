"""Allocated, requested and used resources of jobs: hours, efficiency, shares.

Columns of doubles in and out, NaN where missing; a share with a missing term is missing.
"""

from collections.abc import Mapping

import numpy as np

from esjobs.core.arrays import Floats
from esjobs.scores.formulas import cpu_efficiency
from esjobs.scores.reasons import Reasons, codes_of, first
from esjobs.scores.scoring import Scored

BEYOND = "CPU time above wall time x cores"
"""Reason of jobs with a wrong record; they are shown, but excluded from means."""
_LACKING = (("cpu_s", "no CPU time"), ("wall_s", "no wall time"), ("cores", "no cores"))
_HOUR = 3600.0


def efficiency(recorded: Mapping[str, Floats], reasons: Reasons) -> Scored:
    """Return CPU efficiency (as ``unclipped``) and the reason if it is unusable."""
    codes = codes_of(len(recorded["wall_s"]))
    for name, why in _LACKING:
        # a job without CPU time may have waited all the time: 0 is a value
        absent = np.isnan(recorded[name]) | ((recorded[name] <= 0) & (name != "cpu_s"))
        first(codes, absent, reasons.code(why))
    value = cpu_efficiency(recorded["cpu_s"], recorded["wall_s"], recorded["cores"])
    with np.errstate(invalid="ignore"):
        first(codes, value > 1, reasons.code(BEYOND))
    return Scored(value, codes)


def hours(recorded: Mapping[str, Floats], cores_per_node: Floats) -> dict[str, Floats]:
    """Return node-hours, core-hours and GPU-hours.

    ``cores_per_node`` is used where the record has no number of nodes.
    """
    wall_h = recorded["wall_s"] / _HOUR
    core_h = wall_h * recorded["cores"]
    by_cores = core_h / cores_per_node
    return {
        "node_h": np.where(np.isnan(recorded["nodes"]), by_cores, wall_h * recorded["nodes"]),
        "core_h": core_h,
        "gpu_h": wall_h * recorded["gpus"],
    }


def used_memory(recorded: Mapping[str, Floats]) -> Floats:
    """Return the proportional memory (PSS), else the resident one; NaN without both."""
    return _else(recorded["max_pss_b"], recorded["max_rss_b"])


PAST_REQUEST = "more than twice the requested time"
"""Reason of jobs whose requested time cannot have been their limit; excluded from means."""
NO_REQUEST = "no requested time"
# Jobs run past their request by the grace that a system gives, never by as much again
_MOST_PAST = 2.0


def time_used(recorded: Mapping[str, Floats], reasons: Reasons) -> Scored:
    """Return wall-clock over requested time (as ``unclipped``) and the reason if it is unusable.

    Jobs are stopped at their limit: one that ran far longer had another limit than recorded.
    """
    codes = codes_of(len(recorded["wall_s"]))
    for name, why in (("wall_s", "no wall time"), ("requested_wall_s", NO_REQUEST)):
        first(codes, ~(recorded[name] > 0), reasons.code(why))
    value = _share(recorded["wall_s"], recorded["requested_wall_s"])
    with np.errstate(invalid="ignore"):
        first(codes, value > _MOST_PAST, reasons.code(PAST_REQUEST))
    return Scored(value, codes)


def shares(recorded: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return used over requested memory and cores.

    Memory is proportional (PSS) if recorded: resident memory counts shared pages once per process. Jobs
    without requested cores count with those allocated.
    """
    memory = used_memory(recorded)
    requested = _else(recorded["requested_cores"], recorded["cores"])
    return {
        "memory_used_frac": _share(memory, recorded["requested_memory_b"]),
        "cores_used_frac": _share(recorded["cpu_s"], recorded["wall_s"] * requested),
    }


def gpu_share(recorded: Mapping[str, Floats], load: Floats) -> Floats:
    """Return busy over requested GPUs (allocated ones if none were requested); ``load``: their mean load."""
    # load is a mean over allocated GPUs, whether asked for or not
    return _share(load * recorded["gpus"], _else(recorded["requested_gpus"], recorded["gpus"]))


def _else(values: Floats, others: Floats) -> Floats:
    return np.where(np.isnan(values), others, values)


def _share(used: Floats, requested: Floats) -> Floats:
    """Return a quotient; NaN if nothing was requested."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(requested > 0, used / requested, np.nan)
