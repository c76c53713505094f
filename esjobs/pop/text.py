"""What people read of the efficiencies of a job: a tree with colours, and a sentence about its worst branch.

Terminal, HTML and dashboards say the same from here.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esjobs.core.text import visible
from esjobs.core.words import FAIR, GOOD
from esjobs.pop.worst import ADVICE

Row = Mapping[str, Any]

TREE: tuple[tuple[int, str, str], ...] = (
    (0, "parallel_efficiency", "Parallel efficiency"),
    (1, "mpi_parallel_efficiency", "MPI"),
    (2, "mpi_communication_efficiency", "communication"),
    (2, "mpi_load_balance", "load balance"),
    (3, "mpi_load_balance_in", "inside nodes"),
    (3, "mpi_load_balance_out", "between nodes"),
    (1, "omp_parallel_efficiency", "OpenMP"),
    (2, "omp_load_balance", "load balance of threads"),
    (2, "omp_scheduling_efficiency", "scheduling"),
    (2, "omp_serialization_efficiency", "serialization"),
    (1, "device_offload_efficiency", "Offloading to GPUs (host)"),
    (0, "gpu_parallel_efficiency", "Parallel efficiency of GPUs"),
    (1, "gpu_load_balance", "load balance of GPUs"),
    (1, "gpu_communication_efficiency", "communication of GPUs"),
    (1, "gpu_orchestration_efficiency", "orchestration"),
)
"""Depth, name and label of each efficiency. MPI and OpenMP stand beside each other: they are no factors."""

_LABELS = {
    "mpi_load_balance_in": "MPI load balance inside nodes",
    "mpi_load_balance_out": "MPI load balance between nodes",
    "mpi_load_balance": "MPI load balance",
    "mpi_communication_efficiency": "MPI communication",
    "omp_load_balance": "OpenMP load balance",
    "omp_scheduling_efficiency": "OpenMP scheduling",
    "omp_serialization_efficiency": "OpenMP serialization",
    "device_offload_efficiency": "offloading to GPUs",
    "gpu_load_balance": "load balance of GPUs",
    "gpu_communication_efficiency": "communication of GPUs",
    "gpu_orchestration_efficiency": "orchestration of GPUs",
}

_LAUNCHES, _REGIONS = 5, 12
"""So many are shown of a job; ``esjobs show pop`` has all."""

_COLOURS = {"good": "\x1b[32m", "fair": "\x1b[33m", "poor": "\x1b[31m"}
_PLAIN = "\x1b[0m"


@dataclass(frozen=True)
class Branch:
    """An efficiency in the tree: how deep it stands, and whether it is ``good``, ``fair`` or ``poor``."""

    depth: int
    label: str
    value: float
    grade: str


@dataclass(frozen=True)
class Launch:
    """One launch of a job as a page has it: the tree of its main region, and a row for each other.

    ``regions``: name, elapsed time, parallel efficiency, worst branch; empty cells where nothing is known.
    """

    title: str
    branches: Sequence[Branch]
    sentence: str
    notes: Sequence[str]
    regions: Sequence[tuple[str, str, str, str]]
    n_left_out: int


def grade(value: float) -> str:
    """The usual limits in a word, of the value as it is shown: to two decimals.

    >>> grade(0.95), grade(0.9), grade(0.85), grade(0.796), grade(0.79)
    ('good', 'good', 'fair', 'fair', 'poor')
    """
    value = round(value, 2)
    return "good" if value >= GOOD else "fair" if value >= FAIR else "poor"


def launches(rows: Sequence[Row]) -> tuple[list[Launch], int]:
    """The launches of a job from its rows of ``pop``, the earliest first, and how many are left out."""
    reports: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["time"], row["step"], row["report"])):
        if row["level"] == "application":
            reports[row["report"]].append(row)
    told = [_launch(each) for each in list(reports.values())[:_LAUNCHES]]
    return told, max(0, len(reports) - _LAUNCHES)


def _launch(rows: list[Row]) -> Launch:
    rows = sorted(rows, key=lambda row: (not row["main"], -(row["elapsed_s"] or 0.0), row["region"]))
    first, others = rows[0], rows[1:]
    step = f"Launch {visible(first['step'])}: " if first["step"] else ""
    sizes = [f"{first[name]:,} {name}" for name in ("ranks", "cpus", "nodes", "gpus") if first[name]]
    sizes = [size.removesuffix("s") if size.startswith("1 ") else size for size in sizes]
    sizes = [size.replace("cpu", "CPU").replace("gpu", "GPU") for size in sizes]
    elapsed = f"{first['elapsed_s']:,.2f} s" if first["elapsed_s"] else "never entered"
    region = visible(first["region"])
    return Launch(
        f"{step}{region}, {', '.join([*sizes, elapsed])}",
        [
            Branch(depth, label, first[name], grade(first[name]))
            for depth, name, label in TREE
            if first[name] is not None
        ],
        sentence(first),
        list(_notes(first)),
        [_region(row) for row in others[:_REGIONS]],
        max(0, len(others) - _REGIONS),
    )


def sentence(row: Row) -> str:
    """What costs most in a region, and what usually helps."""
    if row["status"] == "no_data":
        return "Nothing was measured: the region was never entered."
    overall = row["parallel_efficiency"]
    if row["worst"] is None:
        if overall is not None and overall < GOOD:
            return "No branch of the tree alone costs much; the losses add up."
        return f"Every branch is at {GOOD} or better: there is little to gain from parallelism."
    means, helps = ADVICE[row["worst"]]
    value = f"{row[row['worst']]:.2f}"
    return f"Most is lost by {_LABELS[row['worst']]} ({value}): {means}. What usually helps: {helps}."


def _notes(row: Row) -> Iterator[str]:
    if row["ipc"] is not None:
        frequency = f", {row['frequency_ghz']:.2f} GHz" if row["frequency_ghz"] is not None else ""
        yield f"{row['ipc']:.2f} instructions per cycle{frequency}, in useful time"
    if row["ipc_status"] == "bad_counters":
        yield "The counters of cycles and instructions passed the end of their range; they are left out."
    unsound = [label for _, name, label in TREE if row.get(f"{name}_status") == "inconsistent"]
    if unsound:
        yield f"Times contradict each other, so these are left out: {', '.join(unsound)}."
    if row["remark"]:
        yield f"Note: {visible(row['remark'])}."


def _region(row: Row) -> tuple[str, str, str, str]:
    value = row["parallel_efficiency"]
    return (
        visible(row["region"]),
        f"{row['elapsed_s']:,.2f} s" if row["elapsed_s"] else "never entered",
        "" if value is None else f"{value:.2f} {grade(value)}",
        _LABELS.get(row["worst"] or "", ""),
    )


def tree_lines(rows: Sequence[Row], *, colour: bool = False) -> Iterator[str]:
    """The launches of a job for a terminal; nothing where it has none."""
    told, left_out = launches(rows)
    if not told:
        return
    yield "parallel efficiency (1 best; docs/talp.md)"
    for launch in told:
        yield f"  {launch.title}"
        for branch in launch.branches:
            mark = f"{branch.value:.2f} {branch.grade}"
            shown = f"{_COLOURS[branch.grade]}{mark}{_PLAIN}" if colour else mark
            yield f"    {shown}  {'  ' * branch.depth}{branch.label}"
        for line in (launch.sentence, *launch.notes):
            yield f"    {line}"
        if launch.regions:
            widths = [max(len(row[place]) for row in launch.regions) for place in range(3)]
            for row in launch.regions:
                cells = [f"{cell:<{width}}" for cell, width in zip(row[:3], widths, strict=True)]
                yield f"      {'  '.join([*cells, row[3]])}".rstrip()
        if launch.n_left_out:
            yield f"      and {launch.n_left_out:,} more regions: esjobs show pop"
    if left_out:
        yield f"  and {left_out:,} more launches: esjobs show pop"
