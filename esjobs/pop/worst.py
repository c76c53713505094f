"""The branch of the tree of efficiencies that costs most, and what people usually do about it."""

from collections.abc import Mapping
from typing import Any

from esjobs.core.words import GOOD

ADVICE: dict[str, tuple[str, str]] = {
    "mpi_load_balance_in": (
        "processes on the same node have unequal shares of the work",
        "divide the domain by its cost, not its size, or let processes of a node share CPUs (DLB's LeWI)",
    ),
    "mpi_load_balance_out": (
        "some nodes have more to do than others",
        "divide the domain by its cost, and look for a slow node: run again on others and compare",
    ),
    "mpi_load_balance": (
        "processes have unequal shares of the work",
        "divide the domain by its cost instead of its size",
    ),
    "mpi_communication_efficiency": (
        "even the process that communicates least spends a part of its time in MPI",
        "send fewer and larger messages, let communication run beside the work, or take fewer processes",
    ),
    "omp_load_balance": (
        "threads have unequal shares of the loops",
        "try schedule(dynamic) or schedule(guided), or smaller pieces",
    ),
    "omp_scheduling_efficiency": (
        "handing out work to threads takes a lot of time",
        "make the pieces of loops and tasks larger, or use schedule(static)",
    ),
    "omp_serialization_efficiency": (
        "threads wait while parts of the program run on one of them",
        "put OpenMP around more of the program, or take more processes with fewer threads each",
    ),
    "device_offload_efficiency": (
        "the host waits for calls of the GPU's runtime",
        "launch kernels asynchronously and let the host work meanwhile",
    ),
    "gpu_load_balance": (
        "GPUs have unequal shares of the work",
        "divide the work between GPUs by its cost",
    ),
    "gpu_communication_efficiency": (
        "GPUs move data for a large part of their time",
        "keep data on the GPU between kernels, and copy beside computing (streams)",
    ),
    "gpu_orchestration_efficiency": (
        "GPUs have nothing to do for a large part of the time",
        "give the GPU larger or more kernels, or ask for fewer GPUs",
    ),
}
"""Leaves of the tree: what it means when one is low, and what usually helps."""


def worst_branch(metrics: Mapping[str, Any]) -> str | None:
    """The leaf with the lowest efficiency; None where none is below the limit of what is good.

    Where the parts of the load balance are known, it is told by them.
    """
    parts = ("mpi_load_balance_in", "mpi_load_balance_out")
    split = all(metrics.get(name) is not None for name in parts)
    leaves = [
        (value, name)
        for name in ADVICE
        if (value := metrics.get(name)) is not None and not (split and name == "mpi_load_balance")
    ]
    value, name = min(leaves, default=(1.0, None))
    return name if value < GOOD else None
