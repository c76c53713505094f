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
    *("mpi_parallel_efficiency", "mpi_communication_efficiency", "mpi_load_balance"),
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
        # the first, smallest size is the reference of all
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
    # the largest size tells: between near sizes the growth is within the noise
    growth = _ratio(last["gigainstructions"], first["gigainstructions"])
    if growth is None:
        return "unknown"
    return "strong" if growth < STRONG_BELOW * last["cpus"] / first["cpus"] else "weak"


def _size(cpus: int, runs: Sequence[Row]) -> dict[str, Any]:
    names = (*_MEASURED, *_KEPT)
    present = {name: [run[name] for run in runs if run[name] is not None] for name in names}
    return {
        "cpus": cpus,
        "n_runs": len(runs),
        "last_time": max(run["time"] for run in runs),
        "main": any(run["main"] for run in runs),
        **{name: median(values) if values else None for name, values in present.items()},
    }


def _against(size: Row, first: Row, mode: str) -> dict[str, Any]:
    growth = size["cpus"] / first["cpus"]
    instructions = _ratio(first["gigainstructions"], size["gigainstructions"])
    # weak scaling grows the work with the CPUs: instructions per CPU are compared
    if mode == "weak" and instructions is not None:
        instructions *= growth
    ipc, frequency = (_ratio(size[name], first[name]) for name in ("ipc", "frequency_ghz"))
    computation = _product(instructions, ipc, frequency)
    speedup = _ratio(first["elapsed_s"], size["elapsed_s"])
    # without a mode the work of a run is unknown, and so is the speedup that it should have
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
        # the same from clocks alone, for runs without counters
        "global_from_times": _product(first["parallel_efficiency"], efficiency),
        "reason": None if computation is not None else "no counters of cycles and instructions",
    }


def _ratio(part: float | None, total: float | None) -> float | None:
    if part is None or not total:
        return None
    ratio = part / total
    return ratio if math.isfinite(ratio) and ratio > 0 else None


def _product(*factors: float | None) -> float | None:
    present = [factor for factor in factors if factor is not None]
    return math.prod(present) if len(present) == len(factors) else None
