"""What a job was given, asked for and used: hours, efficiency, shares. Columns in, columns out.

Numbers come as doubles, NaN where missing, and go out alike; a share that lacks one of its terms is missing.
"""

from collections.abc import Mapping

import numpy as np

from esjobs.scores.formulas import Floats, cpu_efficiency
from esjobs.scores.reasons import Reasons, codes_of, first
from esjobs.scores.scoring import Scored

BEYOND = "CPU time beyond wall-clock time x cores"
"""The reason of a job whose record is at fault: it is counted and shown, and enters no mean."""
_LACKING = (("cpu_s", "no CPU time"), ("wall_s", "no wall-clock time"), ("cores", "no cores"))
_HOUR = 3600.0


def efficiency(given: Mapping[str, Floats], reasons: Reasons) -> Scored:
    """CPU time over wall-clock time x cores, as ``unclipped``, and why it is not to be used."""
    codes = codes_of(len(given["wall_s"]))
    for name, why in _LACKING:
        absent = np.isnan(given[name]) | ((given[name] <= 0) & (name != "cpu_s"))
        first(codes, absent, reasons.code(why))
    value = cpu_efficiency(given["cpu_s"], given["wall_s"], given["cores"])
    with np.errstate(invalid="ignore"):
        first(codes, value > 1, reasons.code(BEYOND))
    return Scored(value, codes)


def hours(given: Mapping[str, Floats], cores_per_node: Floats) -> dict[str, Floats]:
    """Node-hours, core-hours and GPU-hours.

    ``cores_per_node``: of the node that a job ran on, where the record names no number of nodes.
    """
    wall_h = given["wall_s"] / _HOUR
    core_h = wall_h * given["cores"]
    by_cores = core_h / cores_per_node
    return {
        "node_h": np.where(np.isnan(given["nodes"]), by_cores, wall_h * given["nodes"]),
        "core_h": core_h,
        "gpu_h": wall_h * given["gpus"],
    }


def used_memory(given: Mapping[str, Floats]) -> Floats:
    """The largest memory that jobs used, in bytes."""
    return _else(given["max_pss_b"], given["max_rss_b"])


PAST_REQUEST = "more than twice the time that was asked for"
"""The reason of a job whose requested time cannot be what it was stopped by: it enters no mean."""
_MOST_PAST = 2.0
"""Jobs run past their request by the grace that a system gives, never by as much again."""


def time_used(given: Mapping[str, Floats], reasons: Reasons) -> Scored:
    """Wall-clock time over that requested, as ``unclipped``, and why it is not to be used.

    A job is stopped when its time is over; one that ran far longer had another limit than its record says.
    """
    codes = codes_of(len(given["wall_s"]))
    for name, why in (("wall_s", "no wall-clock time"), ("requested_wall_s", "no requested time")):
        first(codes, ~(given[name] > 0), reasons.code(why))
    value = _share(given["wall_s"], given["requested_wall_s"])
    with np.errstate(invalid="ignore"):
        first(codes, value > _MOST_PAST, reasons.code(PAST_REQUEST))
    return Scored(value, codes)


def shares(given: Mapping[str, Floats]) -> dict[str, Floats]:
    """What was used of what was asked for.

    Memory is the proportional one where it is known: resident memory counts pages that processes share once
    for each of them. A job that asked for no cores of its own counts by those that it was given.
    """
    memory = used_memory(given)
    asked = _else(given["requested_cores"], given["cores"])
    return {
        "memory_used_frac": _share(memory, given["requested_memory_b"]),
        "cores_used_frac": _share(given["cpu_s"], given["wall_s"] * asked),
    }


def _else(values: Floats, others: Floats) -> Floats:
    return np.where(np.isnan(values), others, values)


def _share(used: Floats, asked: Floats) -> Floats:
    """A quotient; NaN where nothing was asked for."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(asked > 0, used / asked, np.nan)
