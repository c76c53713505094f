"""What collectors cost, kept beside the scores that are made of what they collect."""

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esjobs.core.errors import UsageError
from esjobs.core.identity import content_id
from esjobs.core.report import RunReport
from esjobs.core.text import visible
from esjobs.noise.recorded import read_runs
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.schema.noise import NOISE_COSTS
from esjobs.store.base import JobStore

if TYPE_CHECKING:
    from esjobs.noise.analysis import Told

_LONGEST_NAME = 200


def cost_sentences(store: JobStore) -> tuple[str, ...]:
    """What collectors cost, one sentence a measurement; none where nothing was kept. Cost: one small read."""
    rows = read_table(store, NOISE_COSTS).to_pylist()
    rows.sort(key=lambda row: tuple(str(row[each]) for each in NOISE_COSTS.order))
    return tuple(_sentence(row) for row in rows)


def keep_cost(
    store: JobStore, collector: str, off: Path, on: Path, now: datetime, *, gate: float
) -> "tuple[Told, RunReport]":
    """Compare runs without and with a collector, and store what it costs; a repeated one is replaced.

    Raises :class:`InputError` for wrong files, :class:`UsageError` for an unusable name; nothing is written
    then.
    """
    from esjobs.noise.analysis import compare  # with SciPy, for which readers of sentences do not wait

    began = time.perf_counter()
    name = _readable(collector)
    told = compare(off, on, gate=gate)
    row = _row(name, off, told, now)
    identity = row["measurement"]
    store.publish([store.replace(NOISE_COSTS, identity, rows_table(NOISE_COSTS, [row]).to_batches())])
    tidy(store)
    seconds = time.perf_counter() - began
    return told, RunReport(
        "noise compare", identity, 1, 1, seconds, rows_are="measurement", rows_become="kept"
    )


def _readable(collector: str) -> str:
    name = collector.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UsageError(f"name a collector by 1 to {_LONGEST_NAME} characters that can be printed: ldms-1s")
    return name


def _row(name: str, off: Path, told: "Told", now: datetime) -> dict[str, Any]:
    collective, length, _, ranks = read_runs([off])[0].configuration
    configuration = {"collector": name, "collective": collective, "bytes": length, "ranks": ranks}
    (numbers,) = told.rows.to_pylist()
    return {
        **{key: value for key, value in numbers.items() if key in NOISE_COSTS.column_names},
        "measurement": content_id(configuration),
        "collector": name,
        "collective": collective[:_LONGEST_NAME] or None,
        "bytes": _whole(length),
        "ranks": _whole(ranks),
        "sentence": told.notes[0],
        "entered_at": now,
    }


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _sentence(row: Mapping[str, Any]) -> str:
    timed = [] if row["collective"] is None else [visible(row["collective"])]
    if row["bytes"] is not None and row["collective"] != "barrier":
        timed.append(f"of {row['bytes']:,} B")
    if row["ranks"] is not None:
        timed.append(f"on {row['ranks']:,} ranks")
    by = f", timed by {' '.join(timed)}" if timed else ""
    return f"{visible(row['collector'])}: {row['sentence']}{by}"
