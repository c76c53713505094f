"""Application metrics from reports that have only processes, summed as DLB does."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]

_ADDED = (
    *("useful_s", "mpi_s", "mpi_worker_idle_s", "omp_load_imbalance_s", "omp_scheduling_s"),
    *("omp_serialization_s", "gpu_runtime_s", "cpus", "measurements", "mpi_calls", "omp_parallels"),
    *("gpu_runtime_calls", "gigacycles", "gigainstructions"),
)


def application_of(processes: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield one application row per region from the process rows of one launch.

    Times and counts are summed; elapsed time is the maximum; least MPI time is that of a process and of a
    node, per CPU. GPUs are omitted: processes may share one.
    """
    regions: dict[str, list[Row]] = defaultdict(list)
    for row in processes:
        regions[row["region"]].append(row)
    for region, rows in regions.items():
        yield _added(region, rows)


def _added(region: str, rows: list[Row]) -> dict[str, Any]:
    # reports list regions that a process never entered, and those of 3.3 have no CPUs
    entered = [{**row, "cpus": row["cpus"] or 1} for row in rows if _entered(row)]
    nodes: dict[Any, list[Row]] = defaultdict(list)
    for row in entered:
        nodes[row["host"]].append(row)
    counters = _counters(entered)
    sums: dict[str, Any] = {name: _sum(row[name] for row in entered) for name in _ADDED}
    if counters != "ok":  # a sum over some of the processes would pass for one over all
        sums |= {"gigacycles": None, "gigainstructions": None}
    return {
        **rows[0],
        **sums,
        "region": region,
        "level": "application",
        "unit": "",
        "host": None,
        "model": "minimum",
        "elapsed_s": max((row["elapsed_s"] or 0.0 for row in entered), default=0.0),
        "ranks": len(rows),
        "nodes": len(nodes),
        "gpus": None,
        "min_mpi_process_s": min((_mpi_per_cpu([row]) for row in entered), default=None),
        "min_mpi_node_s": min((_mpi_per_cpu(of_node) for of_node in nodes.values()), default=None),
        "counters": counters,
        "remark": f"sum of the reports of {len(rows)} processes",
    }


def _counters(rows: list[dict[str, Any]]) -> str:
    states = {row["counters"] for row in rows}
    if "bad" in states:
        return "bad"
    return "ok" if states == {"ok"} else "none"


def _entered(row: Row) -> bool:
    return bool(row["measurements"] if row["measurements"] is not None else row["elapsed_s"])


def _mpi_per_cpu(rows: list[Row]) -> float:
    mpi = sum((row["mpi_s"] or 0.0) + (row["mpi_worker_idle_s"] or 0.0) for row in rows)
    return float(mpi / sum(row["cpus"] for row in rows))


def _sum(values: Iterable[Any]) -> Any:
    present = [value for value in values if value is not None]
    return sum(present) if present else None
