"""The POP metrics of a region from its raw times: pure functions on a row.

A row is a mapping with the names of :mod:`esjobs.schema.pop`; times in s, missing ones None. Which formulas
hold follows from the times that a row has (``model``), not from the version that wrote it:

- ``minimum``: since 3.6, with the least time in MPI of a process and of a node;
- ``normalised``: 3.5, with the most useful time of a process and of a node, per CPU;
- ``summed``: 3.3 and 3.4, sums over CPUs and those of the busiest process and node;
- ``printed``: no raw times but the elapsed one; what was printed, to two decimals, is all there is.

Efficiencies are from 0 to 1. Where a formula divides by nothing there is no value, which is not 0.
"""

import math
from collections.abc import Mapping
from typing import Any

from esjobs.schema.pop import EFFICIENCIES, METRICS, RATES, UNMEASURED

Row = Mapping[str, Any]
Values = dict[str, float | None]

_TOLERANCE = 0.02
"""By how much an efficiency may pass 1 (clocks of nodes differ) before it is not believed."""


def efficiencies(row: Row) -> Values:
    """Every efficiency that the raw times of a region give; None where there is none."""
    if row["model"] == "printed":
        return {name: row.get(name) for name in EFFICIENCIES}
    values: Values = dict.fromkeys(EFFICIENCIES)
    if row["model"] == "summed":
        values |= _of_sums(row)
    else:
        values |= _of_cpus(row)
        values |= _of_minimum(row) if row["model"] == "minimum" else _of_normalised(row)
    return values


def rates(row: Row) -> Values:
    """Instructions per cycle and frequency, of useful time; None without counters."""
    cycles, instructions = row.get("gigacycles"), row.get("gigainstructions")
    if not cycles or not instructions or cycles < 0 or instructions < 0:
        return dict.fromkeys(RATES)
    return {"ipc": _ratio(instructions, cycles), "frequency_ghz": _ratio(cycles, row.get("useful_s"))}


def judged(row: Row) -> dict[str, Any]:
    """Every metric of a region and why it has its value or none; what is never measured among them."""
    values: Values = {**efficiencies(row), **dict.fromkeys(UNMEASURED), **rates(row)}
    told: dict[str, Any] = {}
    for name in METRICS:
        status = _status(row, name, values[name])
        told[name] = values[name] if status in ("computed", "printed") else None
        told[f"{name}_status"] = status
    return told


def active_time(row: Row) -> float | None:
    """The time of CPUs, in s, of which the parallel efficiency is the useful part; None where it has none."""
    if row["model"] == "printed" or is_empty(row):
        return None
    if row["model"] == "summed":
        return float(row["elapsed_s"] * row["cpus"]) if row["elapsed_s"] and row["cpus"] else None
    parts = ("useful_s", "mpi_s", "gpu_runtime_s")
    openmp = ("omp_load_imbalance_s", "omp_scheduling_s", "omp_serialization_s")
    return sum(_time(row, name) for name in (*parts, *openmp)) or None


def is_empty(row: Row) -> bool:
    """Whether a region was never entered: it is in the report all the same, with zeros."""
    if row["model"] == "printed":
        return not row.get("elapsed_s")
    return not any(row.get(name) for name in ("elapsed_s", "useful_s", "mpi_s", "gpu_runtime_s"))


def _of_cpus(row: Row) -> Values:
    """What all CPUs did, whatever the model of MPI: the parallel efficiency, OpenMP and GPU branches."""
    useful, mpi, gpu = _time(row, "useful_s"), _time(row, "mpi_s"), _time(row, "gpu_runtime_s")
    balance, scheduling, serial = (
        _time(row, f"omp_{name}_s") for name in ("load_imbalance", "scheduling", "serialization")
    )
    outside = useful + mpi + gpu
    active = outside + balance + scheduling + serial
    host = useful + balance + scheduling + serial
    return {
        "parallel_efficiency": _ratio(useful, active),
        "omp_parallel_efficiency": _ratio(outside, active),
        "omp_serialization_efficiency": _ratio(outside, outside + serial),
        "omp_load_balance": _ratio(outside + serial, outside + serial + balance),
        "omp_scheduling_efficiency": _ratio(outside + serial + balance, active),
        "device_offload_efficiency": _ratio(host, host + gpu),
        **_of_gpus(row),
    }


def _of_gpus(row: Row) -> Values:
    elapsed, gpus = row.get("elapsed_s"), row.get("gpus")
    if not gpus or not elapsed:
        return {}
    useful, most = row.get("gpu_useful_s"), row.get("max_gpu_useful_s")
    active = row.get("max_gpu_active_s")
    return {
        "gpu_parallel_efficiency": _ratio(useful, elapsed * gpus),
        "gpu_load_balance": _ratio(useful, None if most is None else most * gpus),
        "gpu_communication_efficiency": _ratio(most, active),
        "gpu_orchestration_efficiency": _ratio(active, elapsed),
    }


def _of_minimum(row: Row) -> Values:
    elapsed, cpus = row.get("elapsed_s"), row.get("cpus")
    least, of_node = row.get("min_mpi_process_s"), row.get("min_mpi_node_s")
    if not elapsed or not cpus:
        return {}
    outside = elapsed - (_time(row, "mpi_s") + _time(row, "mpi_worker_idle_s")) / cpus
    whole: Values = {"mpi_parallel_efficiency": _ratio(outside, elapsed)}
    if least is None or of_node is None:  # of one process, or one node: nothing to compare
        return whole
    return {
        **whole,
        "mpi_communication_efficiency": _ratio(elapsed - least, elapsed),
        "mpi_load_balance": _ratio(outside, elapsed - least),
        "mpi_load_balance_in": _ratio(elapsed - of_node, elapsed - least),
        "mpi_load_balance_out": _ratio(outside, elapsed - of_node),
    }


def _of_normalised(row: Row) -> Values:
    mean, most = row.get("useful_mean_s"), row.get("useful_max_process_s")
    of_node, mpi = row.get("useful_max_node_s"), row.get("mpi_of_most_useful_s")
    busy = None if most is None or mpi is None else most + mpi
    return {
        "mpi_parallel_efficiency": _ratio(mean, busy),
        "mpi_communication_efficiency": _ratio(most, busy),
        "mpi_load_balance": _ratio(mean, most),
        "mpi_load_balance_in": _ratio(of_node, most),
        "mpi_load_balance_out": _ratio(mean, of_node),
    }


def _of_sums(row: Row) -> Values:
    """3.3 and 3.4: no OpenMP, no GPU; what is useful of the elapsed time is that of MPI."""
    elapsed, cpus, nodes = row.get("elapsed_s"), row.get("cpus"), row.get("nodes")
    useful, most = row.get("useful_s"), row.get("useful_max_process_s")
    of_node = row.get("useful_max_node_s")
    if not elapsed or not cpus or not nodes:
        return {}
    per_cpu = None if most is None else most * cpus
    per_node = None if of_node is None else of_node * nodes
    parallel = _ratio(useful, elapsed * cpus)
    return {
        "parallel_efficiency": parallel,
        "mpi_parallel_efficiency": parallel,
        "mpi_communication_efficiency": _ratio(most, elapsed),
        "mpi_load_balance": _ratio(useful, per_cpu),
        "mpi_load_balance_in": _ratio(per_node, per_cpu),
        "mpi_load_balance_out": _ratio(useful, per_node),
    }


def _status(row: Row, name: str, value: float | None) -> str:
    if name in UNMEASURED:
        return "not_measurable"
    if name in RATES:
        if row.get("counters") == "bad":
            return "bad_counters"
        return "no_counters" if value is None else "computed"
    if is_empty(row):
        return "no_data"
    branch = _branch_missing(row, name)
    if branch:
        return branch
    if value is None:
        return "no_data"
    if not -_TOLERANCE <= value <= 1 + _TOLERANCE:
        return "inconsistent"
    return "printed" if row["model"] == "printed" else "computed"


def _branch_missing(row: Row, name: str) -> str:
    """Why a branch of the tree has no value: the application did not use what it is about.

    TALP prints 1 there (0 for GPUs), which would make a mean over jobs better or worse than any of them.
    """
    if row["model"] in ("printed", "summed"):
        return ""
    if name.startswith("omp_"):
        used = row.get("omp_parallels") or any(
            row.get(f"omp_{part}_s") for part in ("load_imbalance", "scheduling", "serialization")
        )
        return "" if used else "no_openmp"
    if name.startswith("gpu_"):
        return "" if row.get("gpus") else "no_gpu"
    if name == "device_offload_efficiency":
        return "" if row.get("gpus") or row.get("gpu_runtime_s") else "no_gpu"
    if name.startswith("mpi_"):
        return "" if row.get("mpi_calls") or row.get("mpi_s") or (row.get("ranks") or 0) > 1 else "no_mpi"
    return ""


def _time(row: Row, name: str) -> float:
    """A time that reports of older versions have not, and that is none then."""
    return float(row.get(name) or 0.0)


def _ratio(part: float | None, total: float | None) -> float | None:
    if part is None or not total:
        return None
    ratio = part / total
    return ratio if math.isfinite(ratio) else None
