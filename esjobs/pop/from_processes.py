"""The application, where a report has only its processes: times added up as DLB itself does it."""

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
    """A row of the application per region. ``processes``: the rows of one launch, each process once a region.

    Times and counts are added, the elapsed time is the largest, the least time in MPI that of a process and
    that of a node per CPU. GPUs are left out: processes may share one, so that theirs cannot be added.
    """
    regions: dict[str, list[Row]] = defaultdict(list)
    for row in processes:
        regions[row["region"]].append(row)
    for region, rows in regions.items():
        yield _added(region, rows)


def _added(region: str, rows: list[Row]) -> dict[str, Any]:
    # a region that a process never entered is in its report all the same; reports of 3.3 say no CPUs
    entered = [{**row, "cpus": row["cpus"] or 1} for row in rows if _entered(row)]
    first = rows[0]
    nodes: dict[Any, list[Row]] = defaultdict(list)
    for row in entered:
        nodes[row["host"]].append(row)
    bad = any(row["counters"] == "bad" for row in entered)
    counted = bool(entered) and all(row["counters"] == "ok" for row in entered)
    made: dict[str, Any] = {name: _sum(row[name] for row in entered) for name in _ADDED}
    if not counted:
        made |= {"gigacycles": None, "gigainstructions": None}
    return {
        **first,
        **made,
        "region": region,
        "level": "application",
        "unit": "",
        "host": None,
        "model": "minimum",
        "main": first["main"],
        "elapsed_s": max((row["elapsed_s"] or 0.0 for row in entered), default=0.0),
        "ranks": len(rows),
        "nodes": len(nodes),
        "gpus": None,
        "min_mpi_process_s": min((_mpi_per_cpu([row]) for row in entered), default=None),
        "min_mpi_node_s": min((_mpi_per_cpu(of_node) for of_node in nodes.values()), default=None),
        "counters": "bad" if bad else "ok" if counted else "none",
        "remark": f"added up from the reports of {len(rows)} processes",
    }


def _entered(row: Row) -> bool:
    return bool(row["measurements"] if row["measurements"] is not None else row["elapsed_s"])


def _mpi_per_cpu(rows: list[Row]) -> float:
    mpi = sum((row["mpi_s"] or 0.0) + (row["mpi_worker_idle_s"] or 0.0) for row in rows)
    return float(mpi / sum(row["cpus"] for row in rows))


def _sum(values: Iterable[Any]) -> Any:
    """The sum of what is there; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
