"""Tree of the efficiencies: branches with their labels, the meaning of a low value and the usual remedy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from esjobs.core.words import GOOD


@dataclass(frozen=True)
class Efficiency:
    """Efficiency in the tree: depth and label there; leaves have a name for sentences and advice."""

    depth: int
    label: str
    name: str = ""
    means: str = ""
    helps: str = ""


TREE: dict[str, Efficiency] = {
    "parallel_efficiency": Efficiency(0, "Parallel efficiency"),
    "mpi_parallel_efficiency": Efficiency(1, "MPI"),
    "mpi_communication_efficiency": Efficiency(
        2,
        "communication",
        "MPI communication",
        "even the process that communicates least spends part of its time in MPI",
        "send fewer and larger messages, overlap communication with computation, or use fewer processes",
    ),
    "mpi_load_balance": Efficiency(
        2,
        "load balance",
        "MPI load balance",
        "processes have unequal shares of the work",
        "divide the domain by its cost instead of its size",
    ),
    "mpi_load_balance_in": Efficiency(
        3,
        "inside nodes",
        "MPI load balance inside nodes",
        "processes on the same node have unequal shares of the work",
        "divide the domain by its cost, not its size, or let processes of a node share CPUs (DLB's LeWI)",
    ),
    "mpi_load_balance_out": Efficiency(
        3,
        "between nodes",
        "MPI load balance between nodes",
        "some nodes have more work than others",
        "divide the domain by its cost, and check for a slow node: run on other nodes and compare",
    ),
    "omp_parallel_efficiency": Efficiency(1, "OpenMP"),
    "omp_load_balance": Efficiency(
        2,
        "load balance of threads",
        "OpenMP load balance",
        "threads have unequal shares of the loops",
        "try schedule(dynamic), schedule(guided) or smaller chunks",
    ),
    "omp_scheduling_efficiency": Efficiency(
        2,
        "scheduling",
        "OpenMP scheduling",
        "distributing work to threads takes much of the time",
        "use larger chunks of loops and tasks, or schedule(static)",
    ),
    "omp_serialization_efficiency": Efficiency(
        2,
        "serialization",
        "OpenMP serialization",
        "threads wait while one of them runs serial parts of the program",
        "parallelise more of the program with OpenMP, or use more processes with fewer threads each",
    ),
    "device_offload_efficiency": Efficiency(
        1,
        "Offloading to GPUs (host)",
        "offloading to GPUs",
        "the host waits for calls of the GPU's runtime",
        "launch kernels asynchronously, and let the host work meanwhile",
    ),
    "gpu_parallel_efficiency": Efficiency(0, "Parallel efficiency of GPUs"),
    "gpu_load_balance": Efficiency(
        1,
        "load balance of GPUs",
        "load balance of GPUs",
        "GPUs have unequal shares of the work",
        "divide the work between GPUs by its cost",
    ),
    "gpu_communication_efficiency": Efficiency(
        1,
        "communication of GPUs",
        "communication of GPUs",
        "GPUs move data for a large part of their time",
        "keep data on the GPU between kernels, and overlap copies with computation (streams)",
    ),
    "gpu_orchestration_efficiency": Efficiency(
        1,
        "orchestration",
        "orchestration of GPUs",
        "GPUs are idle for a large part of the time",
        "use larger or more kernels, or request fewer GPUs",
    ),
}
"""Efficiencies by name. MPI and OpenMP are no factors of each other."""


def worst_branch(metrics: Mapping[str, Any]) -> str | None:
    """Return the leaf with the lowest efficiency, None if all are good.

    The parts of the load balance take precedence over it.
    """
    parts = ("mpi_load_balance_in", "mpi_load_balance_out")
    split = all(metrics.get(name) is not None for name in parts)
    leaves = [name for name, each in TREE.items() if each.name and not (split and name == "mpi_load_balance")]
    values = [(metrics[name], name) for name in leaves if metrics.get(name) is not None]
    value, worst = min(values, default=(1.0, None))
    return worst if value < GOOD else None
