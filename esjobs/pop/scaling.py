"""Scaling of applications over numbers of CPUs; pure functions.

The smallest size is the reference. Scaling is ``strong`` if instructions grow by less than three quarters of
the growth of CPUs, else ``weak`` (as in talp-pages); unknown without counters.

- instruction scalability: I_ref / I (strong), (I_ref / P_ref) / (I / P) (weak);
- IPC scalability: IPC / IPC_ref; frequency scalability: f / f_ref;
- computation scalability: the product of the three;
- global efficiency: parallel efficiency x computation scalability;
- speedup: T_ref / T; its efficiency: T_ref P_ref / (T P) (strong), T_ref / T (weak).

Nothing is clipped to 1.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

Row = Mapping[str, Any]

STRONG_BELOW = 0.75
"""Growth of instructions over that of CPUs below which scaling is strong."""

_MEASURED = ("elapsed_s", "gigainstructions", "ipc", "frequency_ghz", "parallel_efficiency")
_KEPT = (
    "mpi_parallel_efficiency",
    "mpi_communication_efficiency",
    "mpi_load_balance",
    "omp_parallel_efficiency",
)


def scaling_rows(runs: Iterable[Row]) -> list[dict[str, Any]]:
    """Return one row per source, application, region and number of CPUs, from rows of ``pop``.

    Medians over runs of one size.
    """
    sets: dict[tuple[str, str, str], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run["application"] is not None and run["cpus"] and run["parallel_efficiency"] is not None:
            sets[run["source"], run["application"], run["region"]][run["cpus"]].append(run)
    made = []
    for (source, application, region), sizes in sorted(sets.items()):
        measured = [_size(cpus, sizes[cpus]) for cpus in sorted(sizes)]
        mode = scaling_mode(measured)
        named = {"source": source, "application": application, "region": region}
        made += [{**named, **size, **_against(size, measured[0], mode)} for size in measured]
    return made


def scaling_mode(sizes: Sequence[Row]) -> str:
    """Return ``strong``, ``weak``, ``single`` (one size) or ``unknown``, by the largest size."""
    first, last = sizes[0], sizes[-1]
    if len(sizes) == 1:
        return "single"
    # instructions, not times: those of a strong scaling stay the same however badly it scales
    growth = _ratio(last["gigainstructions"], first["gigainstructions"])
    if growth is None:
        return "unknown"
    return "strong" if growth < STRONG_BELOW * last["cpus"] / first["cpus"] else "weak"


def _size(cpus: int, runs: Sequence[Row]) -> dict[str, Any]:
    return {
        "cpus": cpus,
        "n_runs": len(runs),
        "last_time": max(run["time"] for run in runs),
        "main": any(run["main"] for run in runs),
        **{name: _median(run[name] for run in runs) for name in (*_MEASURED, *_KEPT)},
    }


def _against(size: Row, first: Row, mode: str) -> dict[str, Any]:
    growth = size["cpus"] / first["cpus"]
    instructions = _ratio(first["gigainstructions"], size["gigainstructions"])
    if mode == "weak" and instructions is not None:
        # per CPU
        instructions *= growth
    ipc, frequency = (_ratio(size[name], first[name]) for name in ("ipc", "frequency_ghz"))
    computation = _product(instructions, ipc, frequency)
    speedup = _ratio(first["elapsed_s"], size["elapsed_s"])
    efficiency = None
    if speedup is not None and mode != "unknown":
        efficiency = speedup / growth if mode == "strong" else speedup
    return {
        "mode": mode,
        "reference_cpus": first["cpus"],
        "instruction_scalability": instructions,
        "ipc_scalability": ipc,
        "frequency_scalability": frequency,
        "computation_scalability": computation,
        "global_efficiency": _product(size["parallel_efficiency"], computation),
        "speedup": speedup,
        "speedup_efficiency": efficiency,
        "global_from_times": _product(first["parallel_efficiency"], efficiency),
        "reason": None if computation is not None else "no counters of cycles and instructions",
    }


def _median(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return median(present) if present else None


def _ratio(part: float | None, total: float | None) -> float | None:
    if part is None or not total:
        return None
    ratio = part / total
    return ratio if math.isfinite(ratio) and ratio > 0 else None


def _product(*factors: float | None) -> float | None:
    made = 1.0
    for factor in factors:
        if factor is None:
            return None
        made *= factor
    return made
