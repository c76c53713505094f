"""Stored overheads of collectors."""

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from esjobs.core.errors import UsageError
from esjobs.core.identity import content_id
from esjobs.core.report import RunReport
from esjobs.core.text import visible
from esjobs.noise.recorded import read_runs
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.records.answer import Answer
from esjobs.schema.noise import NOISE_COSTS
from esjobs.store.base import JobStore

_LONGEST_NAME = 200


def cost_sentences(store: JobStore) -> tuple[str, ...]:
    """Return one sentence per stored overhead."""
    rows = read_table(store, NOISE_COSTS).to_pylist()
    rows.sort(key=lambda row: tuple(str(row[each]) for each in NOISE_COSTS.order))
    return tuple(_sentence(row) for row in rows)


def keep_cost(
    store: JobStore, collector: str, off: Path, on: Path, now: datetime, *, gate: float
) -> tuple[Answer, RunReport]:
    """Measure and store the overhead of a collector; a repeated measurement is replaced.

    Raises :class:`InputError` for invalid files, :class:`UsageError` for an invalid name.
    """
    from esjobs.noise.analysis import compare  # with SciPy, for which readers of sentences do not wait

    began = time.perf_counter()
    name = _readable(collector)
    summary = compare(off, on, gate=gate)
    row = _row(name, off, summary, now)
    identity = row["measurement"]  # Of collector and configuration: measured again, it is replaced
    store.publish([store.replace(NOISE_COSTS, identity, rows_table(NOISE_COSTS, [row]).to_batches())])
    tidy(store)
    seconds = time.perf_counter() - began
    return summary, RunReport(
        "noise compare", identity, 1, 1, seconds, rows_are="measurement", rows_become="kept"
    )


def _readable(collector: str) -> str:
    name = collector.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UsageError(
            f"a name of a collector has 1 to {_LONGEST_NAME} printable characters, such as ldms-1s"
        )
    return name


def _row(name: str, off: Path, summary: Answer, now: datetime) -> dict[str, Any]:
    collective, length, _, ranks = read_runs([off])[0].configuration
    configuration = {"collector": name, "collective": collective, "bytes": length, "ranks": ranks}
    (numbers,) = summary.rows.to_pylist()
    return {
        **{key: value for key, value in numbers.items() if key in NOISE_COSTS.column_names},
        "measurement": content_id(configuration),
        "collector": name,
        "collective": collective[:_LONGEST_NAME] or None,
        "bytes": _integer(length),
        "ranks": _integer(ranks),
        "sentence": summary.notes[0],
        "entered_at": now,
    }


def _integer(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _sentence(row: Mapping[str, Any]) -> str:
    timed = [] if row["collective"] is None else [visible(row["collective"])]
    if row["bytes"] is not None and row["collective"] != "barrier":
        timed.append(f"of {row['bytes']:,} B")
    if row["ranks"] is not None:
        timed.append(f"on {row['ranks']:,} ranks")
    by = f", timed by {' '.join(timed)}" if timed else ""
    return f"{visible(row['collector'])}: {row['sentence']}{by}"
