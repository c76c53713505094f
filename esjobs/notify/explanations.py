"""What is known of why a name deviates, beside the events that tell of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from esjobs.core.query import In
from esjobs.core.tables import Table
from esjobs.drift.tables import DRIFTS
from esjobs.reasons.tables import REASONS
from esjobs.runs.publication import read_table
from esjobs.store.base import JobStore

Flag = tuple[str, str, str, str]
"""Run of speed factors, level, processing type, name."""


_FLAG = ("speed_run", "level", "processing_type", "name")


def reasons_of(store: JobStore, events: Sequence[Mapping[str, Any]]) -> dict[Flag, tuple[str, ...]]:
    """By flag, sentences about why it deviates, then when it changed, of the runs that the events follow."""
    runs = sorted({event["run"] for event in events if event["run"] is not None})
    if not runs:
        return {}
    told: dict[Flag, dict[str, None]] = defaultdict(dict)
    for row in _rows(store, REASONS, runs, "largest", "reason"):
        # the largest part has the sentence about all of them
        if row["largest"] and row["reason"]:
            told[_flag(row)][row["reason"]] = None
    for row in sorted(_rows(store, DRIFTS, runs, "day", "sentence"), key=lambda row: row["day"]):
        if row["sentence"]:
            told[_flag(row)][row["sentence"]] = None
    return {flag: tuple(sentences) for flag, sentences in told.items()}


def _rows(store: JobStore, table: Table, runs: Sequence[str], *columns: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(
        store, table, [In("speed_run", tuple(runs))], [*_FLAG, *columns]
    ).to_pylist()
    return rows


def _flag(row: Mapping[str, Any]) -> Flag:
    return row["speed_run"], row["level"], row["processing_type"], row["name"]
