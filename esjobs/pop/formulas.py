"""POP metrics of a region from its raw times: pure functions on a row.

A row has the names of :mod:`esjobs.schema.pop`, times in s, None if missing. The formulas (``model``) follow
from the times present:

- ``minimum`` (3.6): least MPI time of a process and of a node;
- ``normalised`` (3.5): largest useful time of a process and of a node, per CPU;
- ``summed`` (3.3, 3.4): sums over CPUs, and those of the busiest process and node;
- ``printed``: only printed values, to two decimals.

Efficiencies are 0 to 1; None, not 0, if the divisor is 0.
"""

import math
from collections.abc import Mapping
from typing import Any

from esjobs.schema.pop import EFFICIENCIES, METRICS, RATES, UNMEASURED

Row = Mapping[str, Any]
Values = dict[str, float | None]

_TOLERANCE = 0.02  # By how much an efficiency may pass 1, as clocks of nodes differ


def efficiencies(row: Row) -> Values:
    """Return every efficiency of a region, None if undefined."""
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
    """Return instructions per cycle and frequency in useful time, None without counters."""
    cycles, instructions = row.get("gigacycles"), row.get("gigainstructions")
    # counters that overflowed are negative
    if not cycles or not instructions or cycles < 0 or instructions < 0:
        return dict.fromkeys(RATES)
    return {"ipc": _ratio(instructions, cycles), "frequency_ghz": _ratio(cycles, row.get("useful_s"))}


def judged(row: Row) -> dict[str, Any]:
    """Return every metric with its status, including those that are never measured."""
    values: Values = {**efficiencies(row), **dict.fromkeys(UNMEASURED), **rates(row)}
    metrics: dict[str, Any] = {}
    for name in METRICS:
        status = _status(row, name, values[name])
        metrics[name] = values[name] if status in ("computed", "printed") else None
        metrics[f"{name}_status"] = status
    return metrics


def active_time(row: Row) -> float | None:
    """Return CPU time in s, of which parallel efficiency is the useful share; None if undefined."""
    if row["model"] == "printed" or is_empty(row):
        return None
    if row["model"] == "summed":
        return float(row["elapsed_s"] * row["cpus"]) if row["elapsed_s"] and row["cpus"] else None
    parts = ("useful_s", "mpi_s", "gpu_runtime_s")
    openmp = ("omp_load_imbalance_s", "omp_scheduling_s", "omp_serialization_s")
    return sum(_time(row, name) for name in (*parts, *openmp)) or None


def is_empty(row: Row) -> bool:
    """True if the region was never entered; reports list it with zeros."""
    if row["model"] == "printed":
        return not row.get("elapsed_s")
    return not any(row.get(name) for name in ("elapsed_s", "useful_s", "mpi_s", "gpu_runtime_s"))


def _of_cpus(row: Row) -> Values:
    """Return parallel efficiency, OpenMP and GPU branches, which hold for every MPI model."""
    useful, mpi, gpu = _time(row, "useful_s"), _time(row, "mpi_s"), _time(row, "gpu_runtime_s")
    balance, scheduling, serial = (
        _time(row, f"omp_{name}_s") for name in ("load_imbalance", "scheduling", "serialization")
    )
    # what is not OpenMP's overhead; each loss below is taken off one after the other, so that the branch's
    # efficiencies multiply to its parallel efficiency
    outside = useful + mpi + gpu
    active = outside + balance + scheduling + serial
    host = useful + balance + scheduling + serial  # Time in MPI belongs to the other branch
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
    # mean time outside MPI per CPU: what of the elapsed time an MPI call did not take
    outside = elapsed - (_time(row, "mpi_s") + _time(row, "mpi_worker_idle_s")) / cpus
    total: Values = {"mpi_parallel_efficiency": _ratio(outside, elapsed)}
    if least is None or of_node is None:  # of one process, or one node: nothing to compare
        return total
    # the process with least MPI time waits for no other: its MPI time is what communication itself takes
    return {
        **total,
        "mpi_communication_efficiency": _ratio(elapsed - least, elapsed),
        "mpi_load_balance": _ratio(outside, elapsed - least),
        "mpi_load_balance_in": _ratio(elapsed - of_node, elapsed - least),
        "mpi_load_balance_out": _ratio(outside, elapsed - of_node),
    }


def _of_normalised(row: Row) -> Values:
    mean, most = row.get("useful_mean_s"), row.get("useful_max_process_s")
    of_node, mpi = row.get("useful_max_node_s"), row.get("mpi_of_most_useful_s")
    # the process with most useful time spans the run: with its MPI time it stands for the elapsed time
    busy = None if most is None or mpi is None else most + mpi
    return {
        "mpi_parallel_efficiency": _ratio(mean, busy),
        "mpi_communication_efficiency": _ratio(most, busy),
        "mpi_load_balance": _ratio(mean, most),
        "mpi_load_balance_in": _ratio(of_node, most),
        "mpi_load_balance_out": _ratio(mean, of_node),
    }


def _of_sums(row: Row) -> Values:
    """Return metrics of 3.3 and 3.4: without OpenMP and GPU, MPI alone."""
    elapsed, cpus, nodes = row.get("elapsed_s"), row.get("cpus"), row.get("nodes")
    useful, most = row.get("useful_s"), row.get("useful_max_process_s")
    of_node = row.get("useful_max_node_s")
    if not elapsed or not cpus or not nodes:
        return {}
    # were all as busy as the busiest
    per_cpu = None if most is None else most * cpus
    per_node = None if of_node is None else of_node * nodes
    parallel = _ratio(useful, elapsed * cpus)  # These versions measure MPI alone: it is all of it
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
    # before the value: a branch that was not used has one, by which means over jobs would be biased
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
    """Return the status of a branch that the application does not use, else "".

    TALP prints 1 there (0 for GPUs), which would bias means over jobs.
    """
    if row["model"] in ("printed", "summed"):
        return ""
    openmp = ("omp_parallels", "omp_load_imbalance_s", "omp_scheduling_s", "omp_serialization_s")
    mpi = row.get("mpi_calls") or row.get("mpi_s") or (row.get("ranks") or 0) > 1
    branches = {
        "omp_": ("no_openmp", any(row.get(each) for each in openmp)),
        "gpu_": ("no_gpu", row.get("gpus")),
        "device_offload_efficiency": ("no_gpu", row.get("gpus") or row.get("gpu_runtime_s")),
        "mpi_": ("no_mpi", mpi),
    }
    for prefix, (status, used) in branches.items():
        if name.startswith(prefix) and not used:
            return status
    return ""


def _time(row: Row, name: str) -> float:
    return float(row.get(name) or 0.0)


def _ratio(part: float | None, total: float | None) -> float | None:
    if part is None or not total:
        return None
    ratio = part / total
    return ratio if math.isfinite(ratio) else None
