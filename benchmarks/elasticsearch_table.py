"""The numbers of the benchmark of clusters as a page: what must be reached, and what was."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.store_table import Target, table

Measured = dict[str, Any]

_TITLES = {
    "composite": "buckets of a day by hand: composite, pages of 10 000, one thread",
    "aggregate": "buckets of a day through the store, with books",
    "bulk": "`helpers.parallel_bulk` of the rows of Arrow batches",
    "bulk-orjson": "the same, serializer orjson",
    "bulk-alike": "the same, into an index with the settings of the store's",
    "bulk-ready": "the same of documents made before: neither time nor types to be written",
    "put": "`put_jobs` of the same batches",
    "step": "aggregate step of a day with a million buckets, buckets written",
    "scan": "stored buckets by hand: 4 slices, 2 threads, dictionaries",
    "read": "stored buckets through the store: {long} days, as columns",
    "night-long": "a night after {long} days: jobs stored, aggregated, published, buckets read",
    "night-short": "the same after {short} days",
}

_RULES = (
    "Jobs are Arrow batches in memory before the clock starts; the client gets their rows by `to_pylist`, "
    "with the id of the job as that of the document. Its index has two shards and default settings, but for "
    "the row that says so; the store's has one shard and is refreshed at the end. Seconds are of the way, "
    "without the start of Python; peak memory is of its whole process. Processor seconds are of the client "
    "and, next to them, of the server; targets hold the sum of both against that of the peer, which other "
    "programs on the machine change less than seconds. Processors that all other programs, the server among "
    "them, kept busy stand last."
)

Ways = Mapping[str, Sequence[Measured]]


def targets(ways: Ways) -> list[Target]:
    """What the measurement has to show."""
    return [
        _ratio("a day of jobs into buckets: store / by hand", ways, "aggregate", "composite", 0.4, 0.3),
        _ratio(
            "bulk: `put_jobs` / `parallel_bulk` with orjson, same settings",
            ways,
            "put",
            "bulk-alike",
            0.65,
            0.5,
        ),
        _ratio("bulk: `put_jobs` / `parallel_bulk` with orjson", ways, "put", "bulk-orjson", 0.7, 0.4),
        _ratio("bulk: `put_jobs` / `parallel_bulk`", ways, "put", "bulk", 0.7, 0.4),
        Target("peak memory, 1 M buckets, MB", _peak_mb(ways["step"]), 350, 250, "", at_least=False),
        _ratio("a night with long / short history", ways, "night-long", "night-short", 1.2, 1.0),
        _ratio("stored buckets back: store / by hand", ways, "read", "scan", 0.6, 0.5),
    ]


def render(measured: Measured) -> str:
    """The page in Markdown."""
    machine, sizes, ways, load = (measured[name] for name in ("machine", "sizes", "ways", "load"))
    names = ("esjobs", "python", "elasticsearch", "opensearch-py", "orjson", "msgspec", "pyarrow", "duckdb")
    versions = ", ".join(f"{name} {machine[name]}" for name in names if name in machine)
    by_hand, by_store = ways["composite"][-1], ways["aggregate"][-1]
    setting = (
        f"`{measured['command']}`; {measured['server']} with {sizes['heap_mb']} MB of heap on the same "
        f"machine; {versions}; {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_b'] / 2**30:.0f} GiB, {machine['system']}. Medians of {sizes['repeat']} "
        "in turns, one process each; where there are several, after one that is not counted. "
        "Load average before "
        f"{load['before'][0]:.1f}, after {load['after'][0]:.1f}."
    )
    amounts = (
        f"Jobs of the day {sizes['jobs']:,}, of the day with many buckets {sizes['wide']:,}; jobs written "
        f"{sizes['bulk']:,}; jobs of a night {sizes['night']:,}; buckets read {sizes['buckets']:,}. {_RULES}"
    )
    answers = (
        f"Through the store {by_store['buckets']:,} buckets of {by_store['sum_n_jobs']:,.0f} jobs, by hand "
        f"{by_hand['buckets']:,} of {by_hand['sum_n_jobs']:,.0f}; the sums over all buckets differ by "
        f"{_difference(by_hand, by_store):.0e} of themselves at most."
    )
    goals = [target.row() for target in targets(ways)]
    rows = [_row(title.format(**sizes), ways[way]) for way, title in _TITLES.items() if way in ways]
    parts = [
        "# Clusters: beside the official client",
        setting,
        "## Targets",
        table(("what", "measured", "must", "aim", "reached"), goals),
        "## Measured",
        amounts,
        table(
            ("way", "rows", "seconds (min to max)", "processor s", "of the server", "peak memory", "others"),
            rows,
        ),
        answers,
    ]
    return "\n\n".join(parts) + "\n"


def _row(title: str, runs: Sequence[Measured]) -> tuple[str, ...]:
    wall = [run["wall_s"] for run in runs]
    return (
        title,
        f"{runs[0].get('rows', runs[0].get('buckets', 0)):,}",
        f"{median(wall):.2f} ({min(wall):.2f} to {max(wall):.2f})",
        f"{_middle(runs, 'cpu_s'):.2f}",
        f"{_middle(runs, 'server_s'):.2f}",
        f"{_peak_mb(runs):,.0f} MB",
        f"{_middle(runs, 'others'):.1f}",
    )


def _ratio(what: str, ways: Ways, over: str, under: str, must: float, aim: float) -> Target:
    ratio = _processor_s(ways[over]) / _processor_s(ways[under])
    return Target(what, ratio, must, aim, "", at_least=False)


def _difference(one: Measured, other: Measured) -> float:
    sums = [name for name in one if name.startswith("sum_")]
    return max(abs(float(one[name]) / float(other[name]) - 1) for name in sums)


def _processor_s(runs: Sequence[Measured]) -> float:
    return float(median(run["cpu_s"] + run["server_s"] for run in runs))


def _peak_mb(runs: Sequence[Measured]) -> float:
    return float(max(run["peak_b"] for run in runs) / 1e6)


def _middle(runs: Sequence[Measured], name: str) -> float:
    return float(median(run[name] for run in runs))
