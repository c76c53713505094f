"""Text about efficiencies of a job for terminal, HTML and dashboards: a tree with grades, and a sentence."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esjobs.core.numbers import many
from esjobs.core.text import visible
from esjobs.core.words import FAIR, GOOD
from esjobs.pop.worst import TREE

Row = Mapping[str, Any]

# shown of a job; ``esjobs show pop`` has all
_LAUNCHES, _REGIONS = 5, 12

_COLOURS = {"good": "\x1b[32m", "fair": "\x1b[33m", "poor": "\x1b[31m"}
_PLAIN = "\x1b[0m"


@dataclass(frozen=True)
class Branch:
    """Efficiency in the tree, with its grade ``good``, ``fair`` or ``poor``."""

    depth: int
    label: str
    value: float
    grade: str


@dataclass(frozen=True)
class Launch:
    """Launch of a job: the tree of its main region, and one row per other region.

    ``regions``: name, elapsed time, parallel efficiency, worst branch; empty if unknown.
    """

    title: str
    branches: Sequence[Branch]
    sentence: str
    notes: Sequence[str]
    regions: Sequence[tuple[str, str, str, str]]
    n_left_out: int


def grade(value: float) -> str:
    """Return the grade of a value as shown, to two decimals.

    >>> grade(0.95), grade(0.9), grade(0.85), grade(0.796), grade(0.79)
    ('good', 'good', 'fair', 'fair', 'poor')
    """
    value = round(value, 2)  # A shown 0.80 must not be called poor
    return "good" if value >= GOOD else "fair" if value >= FAIR else "poor"


def launches(rows: Sequence[Row]) -> tuple[list[Launch], int]:
    """Return the launches of a job, earliest first, and the number omitted."""
    reports: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["time"], row["step"], row["report"])):
        if row["level"] == "application":
            reports[row["report"]].append(row)
    shown = [_launch(each) for each in list(reports.values())[:_LAUNCHES]]
    return shown, max(0, len(reports) - _LAUNCHES)


def _launch(rows: list[Row]) -> Launch:
    rows = sorted(rows, key=lambda row: (not row["main"], -(row["elapsed_s"] or 0.0), row["region"]))
    first, others = rows[0], rows[1:]
    step = f"Launch {visible(first['step'])}: " if first["step"] else ""
    size = ", ".join([*_sizes(first), _elapsed(first)])
    branches = [
        Branch(each.depth, each.label, first[name], grade(first[name]))
        for name, each in TREE.items()
        if first[name] is not None
    ]
    return Launch(
        f"{step}{visible(first['region'])}, {size}",
        branches,
        sentence(first),
        list(_notes(first)),
        [_region(row) for row in others[:_REGIONS]],
        max(0, len(others) - _REGIONS),
    )


def _sizes(row: Row) -> Iterator[str]:
    for name, noun in (("ranks", "rank"), ("cpus", "CPU"), ("nodes", "node"), ("gpus", "GPU")):
        if row[name]:
            yield many(row[name], noun)


def _elapsed(row: Row) -> str:
    return f"{row['elapsed_s']:,.2f} s" if row["elapsed_s"] else "never entered"


def sentence(row: Row) -> str:
    """Return the largest loss of a region and the usual remedy."""
    if row["status"] == "no_data":
        return "No measurement: the region was never entered."
    overall = row["parallel_efficiency"]
    if row["worst"] is None:
        if overall is not None and overall < GOOD:
            return "No single factor costs much; the losses add up."
        return f"All factors are at {GOOD} or better; parallelism can gain little."
    worst, value = TREE[row["worst"]], f"{row[row['worst']]:.2f}"
    return f"Largest loss: {worst.name} ({value}); {worst.means}. Usual remedy: {worst.helps}."


def _notes(row: Row) -> Iterator[str]:
    if row["ipc"] is not None:
        frequency = f", {row['frequency_ghz']:.2f} GHz" if row["frequency_ghz"] is not None else ""
        yield f"{row['ipc']:.2f} instructions per cycle{frequency}, in useful time"
    if row["ipc_status"] == "bad_counters":
        yield "The counters of cycles and instructions overflowed and are ignored."
    unsound = [each.label for name, each in TREE.items() if row.get(f"{name}_status") == "inconsistent"]
    if unsound:
        yield f"Inconsistent times, therefore omitted: {', '.join(unsound)}."
    if row["remark"]:
        yield f"Note: {visible(row['remark'])}."


def _region(row: Row) -> tuple[str, str, str, str]:
    value = row["parallel_efficiency"]
    return (
        visible(row["region"]),
        _elapsed(row),
        "" if value is None else f"{value:.2f} {grade(value)}",
        TREE[row["worst"]].name if row["worst"] else "",
    )


def tree_lines(rows: Sequence[Row], *, colour: bool = False) -> Iterator[str]:
    """Yield the launches of a job for a terminal."""
    shown, left_out = launches(rows)
    if shown:
        yield "parallel efficiency (1 best; docs/talp.md)"
    for launch in shown:
        yield from _launch_lines(launch, colour)
    if left_out:
        yield f"  and {left_out:,} more launches: esjobs show pop"


def _launch_lines(launch: Launch, colour: bool) -> Iterator[str]:
    yield f"  {launch.title}"
    for branch in launch.branches:
        mark = f"{branch.value:.2f} {branch.grade}"
        text = f"{_COLOURS[branch.grade]}{mark}{_PLAIN}" if colour else mark
        yield f"    {text}  {'  ' * branch.depth}{branch.label}"
    for line in (launch.sentence, *launch.notes):
        yield f"    {line}"
    widths = [max((len(row[column]) for row in launch.regions), default=0) for column in range(3)]
    for row in launch.regions:
        cells = [f"{cell:<{width}}" for cell, width in zip(row[:3], widths, strict=True)]
        yield f"      {'  '.join([*cells, row[3]])}".rstrip()
    if launch.n_left_out:
        yield f"      and {launch.n_left_out:,} more regions: esjobs show pop"
