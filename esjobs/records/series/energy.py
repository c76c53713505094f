"""Energy of jobs by their power series, from the footprints of these."""

from collections.abc import Mapping, Sequence
from typing import Any

LEAST_COVERED = 0.8
"""Share of its time in which the power of a job must have been sampled."""
CPU_POWER, GPU_POWER = "power_w", "gpu_power_w"
POWERS = (CPU_POWER, "mem_power_w", GPU_POWER)
"""Metrics whose totals add up to the energy of a job."""

Row = Mapping[str, Any]


def joules(footprints: Sequence[Row], wall_s: float | None) -> dict[str, float]:
    """Return the energy of a job by metric, from its footprints; empty where none is known.

    The mean power holds for the time without samples, of at most 20 %. Power of sockets, memory and GPUs adds
    up; power of nodes that is not less than that of their GPUs is taken for a meter that sees them. Empty for
    jobs with a part of their nodes, without totals: the power is that of all jobs there.

    >>> cpu = {"metric": "power_w", "scope": "node", "total": 9e5, "gap_frac": 0.1, "series_s": 900.0}
    >>> joules([cpu, {**cpu, "metric": "gpu_power_w"}], 1000.0)
    {'power_w': 1000000.0}
    """
    totals: dict[str, float] = {}
    of_nodes = False
    for row in footprints:
        if row["metric"] not in POWERS:
            continue
        covered = row["series_s"] * (1 - row["gap_frac"])
        long = wall_s or row["series_s"]
        if row["total"] is None or covered < LEAST_COVERED * long:
            return {}
        totals[row["metric"]] = row["total"] * long / row["series_s"]
        of_nodes |= row["metric"] == CPU_POWER and row["scope"] == "node"
    if of_nodes and totals.get(GPU_POWER, 0.0) <= totals[CPU_POWER] and "mem_power_w" not in totals:
        totals.pop(GPU_POWER, None)
    return totals
