"""The store benchmark's numbers as a page: what must be reached, what was, and on which machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

Measured = dict[str, Any]

MEMORY_MUST_B = 2e9
_TITLES = {
    "store": "a. bucket query through the store, as Arrow, with books",
    "sql": "b. hand-written SQL, as Arrow, without books",
    "step": "c. whole aggregate step: books, CPU models, written, published, file closed",
    "sql-table": "d. hand-written `CREATE TABLE AS`, CPU models given, file closed",
}
_INGESTS = {
    "jobs": "`esjobs ingest jobs`, canonical Parquet, empty store",
    "panda": "`esjobs ingest panda`, CSV, into the store that holds all jobs",
}


@dataclass(frozen=True)
class Target:
    """A number with its limit; ``at_least``: whether more is better."""

    what: str
    value: float
    must: float
    aim: float | None
    unit: str
    at_least: bool = True

    def row(self) -> tuple[str, ...]:
        """One row of the table of targets."""
        sign = "≥" if self.at_least else "≤"
        aim = "" if self.aim is None else f"{sign} {_short(self.aim)}"
        return (
            self.what,
            f"{_short(self.value)}{self.unit}",
            f"{sign} {_short(self.must)}",
            aim,
            self.verdict,
        )

    @property
    def verdict(self) -> str:
        """Whether the limit is kept, and the aim."""
        if not self._reaches(self.must):
            return "**missed**"
        return "must" if self.aim is not None and not self._reaches(self.aim) else "yes"

    def _reaches(self, limit: float) -> bool:
        return self.value >= limit if self.at_least else self.value <= limit


def targets(measured: Measured) -> list[Target]:
    """What the measurement has to show."""
    wall = {way: _middle(runs, "wall_s") for way, runs in measured["aggregations"].items()}
    parquet, panda = (_rows_per_s(measured["ingests"][form]) for form in ("jobs", "panda"))
    ratio = wall["store"] / wall["sql"]
    return [
        Target("ingest from canonical Parquet, rows/s", parquet, 300_000, 500_000, ""),
        Target("ingest from PanDA CSV, rows/s", panda, 150_000, 250_000, ""),
        Target("aggregation: through the store over by hand (a / b)", ratio, 1.25, None, "", at_least=False),
        Target(
            "peak memory of all of it, GB",
            peak_b(measured) / 1e9,
            MEMORY_MUST_B / 1e9,
            None,
            "",
            at_least=False,
        ),
    ]


def peak_b(measured: Measured) -> int:
    """The largest resident memory of any process that ran esjobs."""
    runs = [*measured["ingests"]["jobs"], *measured["ingests"]["panda"]]
    runs += [*measured["aggregations"]["store"], *measured["aggregations"]["step"]]
    return max(int(run["peak_b"]) for run in runs)


def render(measured: Measured) -> str:
    """The page in Markdown."""
    machine, inputs, load = measured["machine"], measured["inputs"], measured["load"]
    ways = measured["aggregations"]
    versions = ", ".join(
        f"{name} {machine[name]}" for name in ("esjobs", "python", "duckdb", "pyarrow", "numpy")
    )
    equality = measured["equality"]
    parts = [
        "# Store: ingest and aggregation at full size",
        f"`python -m benchmarks.store --jobs {inputs['jobs']}`; {versions}; {machine['cpu']}, "
        f"{machine['cores']} cores, {machine['memory_b'] / 2**30:.0f} GiB, {machine['system']}. "
        f"{inputs['jobs']:,} jobs ({inputs['first_day']} to {inputs['last_day']}, Parquet "
        f"{inputs['parquet_b'] / 1e6:,.0f} MB, store {measured['store_b'] / 1e6:,.0f} MB); PanDA CSV of "
        f"{inputs['panda_rows']:,} rows ({inputs['csv_b'] / 1e6:,.0f} MB), one in a thousand dirty. Medians "
        f"of {measured['repeat']} repetitions in turns, one process each. Load average before "
        f"{load['before'][0]:.1f}, after {load['after'][0]:.1f}; how many processors other programs kept "
        "busy meanwhile stands in the last column.",
        *_warning(measured),
        "## Targets",
        table(("what", "measured", "must", "aim", "reached"), [target.row() for target in targets(measured)]),
        "## Ingest",
        "The whole command: start of Python, opening, reading, rejects, duplicates, books, closing.",
        table(
            (
                "command",
                "rows",
                "rows/s",
                "seconds (min to max)",
                "processor s",
                "peak memory",
                "refused",
                "updated",
                "others",
            ),
            [_ingest_row(_INGESTS[form], runs) for form, runs in measured["ingests"].items()],
        ),
        "## Aggregation",
        table(
            ("way", "buckets", "seconds (min to max)", "processor s", "peak memory", "others"),
            [_aggregation_row(_TITLES[way], runs) for way, runs in ways.items()],
        ),
        table(
            ("ratio", "seconds, medians", "seconds, fastest", "processor s, medians"),
            [
                ("a / b", *_ratios(ways["store"], ways["sql"])),
                ("c / d", *_ratios(ways["step"], ways["sql-table"])),
            ],
        ),
        f"Answers of a and b: {_said(equality['sql'])} Of c and d: {_said(equality['sql-table'])}",
    ]
    return "\n\n".join(parts) + "\n"


def _ratios(over: Sequence[Measured], under: Sequence[Measured]) -> tuple[str, ...]:
    medians, cpu = (_middle(over, name) / _middle(under, name) for name in ("wall_s", "cpu_s"))
    fastest = min(run["wall_s"] for run in over) / min(run["wall_s"] for run in under)
    return (f"{medians:.2f}", f"{fastest:.2f}", f"{cpu:.2f}")


def _said(found: Measured) -> str:
    return (
        f"{found['buckets']:,.0f} buckets of {found['jobs_binned']:,.0f} jobs, "
        f"{found['unmatched']:.0f} without a counterpart, {found['unequal_counts']:.0f} with another count, "
        f"the largest relative difference of a sum {found['largest_relative_difference']:.0e}."
    )


def _ingest_row(title: str, runs: Sequence[Measured]) -> tuple[str, ...]:
    return (
        title,
        f"{runs[0]['rows']:,}",
        f"{_rows_per_s(runs):,.0f}",
        *_cost(runs),
        f"{sum(runs[0]['dropped'].values()):,}",
        f"{runs[0]['counts']['updated']:,}",
        _others(runs),
    )


def _aggregation_row(title: str, runs: Sequence[Measured]) -> tuple[str, ...]:
    return (title, f"{runs[0]['buckets']:,}", *_cost(runs), _others(runs))


def _cost(runs: Sequence[Measured]) -> tuple[str, str, str]:
    wall = [run["wall_s"] for run in runs]
    return (
        f"{median(wall):.2f} ({min(wall):.2f} to {max(wall):.2f})",
        f"{_middle(runs, 'cpu_s'):.2f}",
        f"{max(run['peak_b'] for run in runs) / 1e9:.2f} GB",
    )


def _warning(measured: Measured) -> list[str]:
    runs = [run for part in ("ingests", "aggregations") for way in measured[part].values() for run in way]
    busy = _middle(runs, "others")
    if busy < 0.1 * measured["machine"]["cores"]:
        return []
    return [
        f"**The machine was not quiet**: other programs kept {busy:.1f} cores busy. "
        "Seconds and rows/s are of what they left; processor seconds and memory are our own."
    ]


def _others(runs: Sequence[Measured]) -> str:
    return f"{_middle(runs, 'others'):.1f}"


def _rows_per_s(runs: Sequence[Measured]) -> float:
    return float(runs[0]["rows"] / _middle(runs, "wall_s"))


def _middle(runs: Sequence[Measured], name: str) -> float:
    return float(median(run[name] for run in runs))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
