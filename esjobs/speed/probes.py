"""Benchmarks that ran in job slots, beside what production made of the same queues and what they declare."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.errors import NoResultError
from esjobs.core.numbers import many, number, percent, speed
from esjobs.core.query import In
from esjobs.core.tables import columns
from esjobs.core.window import Window
from esjobs.core.words import HALF_WIDTH_90
from esjobs.publish.publication import newest, read_table
from esjobs.publish.stored import StoredRun, of_headline
from esjobs.records.answer import Answer
from esjobs.schema.references import PROBES
from esjobs.schema.speed import FLAGS
from esjobs.speed.question import SpeedQuestion
from esjobs.store.base import JobStore

LOOKS_BACK = timedelta(days=90)
"""Time before the end of a window whose probes count: hardware changes."""
SCATTER, NODES_SEEN = 0.10, 5.0
"""Scatter in ln between nodes of a queue, which counts as so many nodes seen before."""
AGREE, DIFFER, UNDECIDED, NOT_COMPARABLE = "agree", "differ", "undecided", "not comparable"
"""Verdicts about production against probes."""
_LEAST_QUEUES = 3  # Queues of a correlation
_OF_MEDIAN = math.sqrt(math.pi / 2)  # Error of a median over that of a mean
_NUMBERS = columns(
    "declared probes probes_low probes_high production production_low production_high ratio ratio_low "
    "ratio_high"
)
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("queue", "site", "benchmark", "verdict")),
        *((name, pa.float64()) for name in _NUMBERS),
        ("n_probes", pa.int64()),
        ("n_nodes", pa.int64()),
        ("sentence", pa.string()),
    ]
)
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Probed:
    """Probes of a queue in one benchmark: ln of the score per core with its error, probes, and nodes."""

    ln_value: float
    error: float
    n_probes: int
    n_nodes: int


def compare_probes(store: JobStore, run: StoredRun, queues: Sequence[str] = ()) -> Answer:
    """Return a row for each queue with probes, the largest difference from production first.

    ``probes``: median over nodes of the medians of each node, with its 90 % interval; the scatter between
    nodes counts with an assumed one of 10 %, as of five nodes. ``production``: the speed factor on the scale
    of the line. ``ratio``: production over probes. Verdicts: ``agree`` if the 90 % interval of the ratio is
    within the limit of the run, ``differ`` if it is outside, else ``undecided``; ``not comparable`` without a
    speed factor on the scale of this benchmark. ``queues``: only these. Raises :class:`NoResultError` without
    probes.
    """
    rows = probe_rows(store, run, queues)
    if not rows:
        raise NoResultError(
            f"no probes of {', '.join(queues) or 'any queue'} in the 90 days to {run.window.last_day}; load "
            "them: esjobs ingest probes"
        )
    table = pa.Table.from_pylist(rows, schema=_SCHEMA)
    return Answer(table, tuple(_notes(rows)), title="probes and production", run=run)


def probe_rows(store: JobStore, run: StoredRun, queues: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the rows of :func:`compare_probes`; none without probes. Cost: the probes and their flags."""
    found = _probed(store, run.window, queues)
    if not found:
        return []
    limit = SpeedQuestion.of_run(run).fit.deviation_limit
    where = [*of_headline(run, "queue"), In("name", tuple(sorted({queue for queue, _ in found})))]
    flags = {row["name"]: row for row in read_table(store, FLAGS, where).to_pylist()}
    rows = [_row(queue, benchmark, of, flags.get(queue), limit) for (queue, benchmark), of in found.items()]
    return sorted(
        rows, key=lambda row: (row["ratio"] is None, -abs(math.log(row["ratio"] or 1.0)), row["queue"])
    )


def _probed(store: JobStore, window: Window, queues: Sequence[str]) -> dict[tuple[str, str], Probed]:
    where = [In("queue", tuple(queues))] if queues else []
    rows = newest(PROBES, read_table(store, PROBES, where).to_pylist())
    groups: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for place, row in enumerate(rows):
        if window.end - LOOKS_BACK <= row["measured_at"] < window.end:
            # a probe of an unknown node is one of its own
            node = row["node"] or f"\0{place}"
            groups[row["queue"], row["benchmark"]][node].append(math.log(row["value_per_core"]))
    return {key: _of_nodes(nodes) for key, nodes in sorted(groups.items())}


def _of_nodes(nodes: Mapping[str, Sequence[float]]) -> Probed:
    # nodes count, not probes: ten on one node tell one machine
    values = [median(of_node) for of_node in nodes.values()]
    centre = median(values)
    square = NODES_SEEN * SCATTER**2 + sum((value - centre) ** 2 for value in values)
    scatter = math.sqrt(square / (NODES_SEEN + len(values) - 1))
    of_median = _OF_MEDIAN if len(values) > 2 else 1.0
    error = of_median * scatter / math.sqrt(len(values))
    return Probed(centre, error, sum(map(len, nodes.values())), len(values))


def _row(queue: str, benchmark: str, of: Probed, flag: Row | None, limit: float) -> dict[str, Any]:
    half = HALF_WIDTH_90 * of.error
    row: dict[str, Any] = {
        "queue": queue,
        "benchmark": benchmark,
        "probes": math.exp(of.ln_value),
        "probes_low": math.exp(of.ln_value - half),
        "probes_high": math.exp(of.ln_value + half),
        "n_probes": of.n_probes,
        "n_nodes": of.n_nodes,
        "verdict": NOT_COMPARABLE,
        "ratio": None,
    }
    if flag is not None:
        row["site"] = flag["site"]
        row["declared"] = flag["corepower"] if flag["benchmark"] == benchmark else None
        if flag["estimate"] and flag["estimate_benchmark"] == benchmark:
            row |= _against_production(of, flag, limit)
    return row | {
        "sentence": _sentence(row, math.log1p(limit) + half, None if flag is None else flag["benchmark"])
    }


def _against_production(of: Probed, flag: Row, limit: float) -> dict[str, Any]:
    low, value, high = (flag[name] for name in ("estimate_low", "estimate", "estimate_high"))
    ratio = math.log(value) - of.ln_value
    half = math.hypot(HALF_WIDTH_90 * of.error, math.log(high / low) / 2)
    inside = (math.log1p(-limit), math.log1p(limit))
    if inside[0] < ratio - half and ratio + half < inside[1]:
        verdict = AGREE
    else:
        verdict = DIFFER if ratio + half < inside[0] or ratio - half > inside[1] else UNDECIDED
    return {
        "production": value,
        "production_low": low,
        "production_high": high,
        "ratio": math.exp(ratio),
        "ratio_low": math.exp(ratio - half),
        "ratio_high": math.exp(ratio + half),
        "verdict": verdict,
    }


def _sentence(row: Row, far: float, declared_in: str | None) -> str:
    declared = "Nothing declared, " if declared_in is None else f"Declared in {declared_in}, "
    if row.get("declared"):
        declared = f"Declared {number(row['declared'])}, "
    probes = (
        f"probes {number(row['probes'])} ({number(row['probes_low'])} to {number(row['probes_high'])}; "
        f"{many(row['n_probes'], 'probe')} on {many(row['n_nodes'], 'node')})"
    )
    off = row["declared"] / row["probes"] - 1 if row.get("declared") else 0.0
    beside = ""
    if abs(math.log1p(off)) > far:
        beside = f"; the declared value is {percent(abs(off))} {'above' if off > 0 else 'below'} the probes"
    if row["ratio"] is None:
        return (
            f"{declared}{probes}; production has no speed factor on the scale of {row['benchmark']}{beside}."
        )
    production = f"production {number(row['production'])}"
    said = {
        AGREE: "production agrees with the probes",
        DIFFER: f"production runs {speed(row['ratio'] - 1)} than the probes",
        UNDECIDED: "too few probes or jobs to tell production from the probes",
    }
    return f"{declared}{probes}, {production}: {said[row['verdict']]}{beside}."


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    pairs = [(math.log(row["probes"]), math.log(row["production"])) for row in rows if row["ratio"]]
    if len(pairs) >= _LEAST_QUEUES:
        probes, production = np.array(pairs).T
        if probes.std() and production.std():
            r = float(np.corrcoef(probes, production)[0, 1])
            yield f"correlation of probes and production (logarithms): {r:.2f} over {len(pairs)} queues"
