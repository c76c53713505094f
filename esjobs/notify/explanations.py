"""What is known of why a name deviates, beside the events that tell of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from esjobs.core.query import In
from esjobs.drift.tables import DRIFTS
from esjobs.runs.publication import read_table
from esjobs.store.base import JobStore

Flag = tuple[str, str, str, str]
"""Run of speed factors, level, processing type, name."""


def reasons_of(store: JobStore, events: Sequence[Mapping[str, Any]]) -> dict[Flag, tuple[str, ...]]:
    """By flag, sentences about when it changed, from what was made of the runs that the events follow."""
    runs = sorted({event["run"] for event in events if event["run"] is not None})
    if not runs:
        return {}
    told: dict[Flag, dict[str, None]] = defaultdict(dict)
    columns = ["speed_run", "level", "processing_type", "name", "day", "sentence"]
    rows = read_table(store, DRIFTS, [In("speed_run", tuple(runs))], columns).to_pylist()
    for row in sorted(rows, key=lambda row: row["day"]):
        flag = (row["speed_run"], row["level"], row["processing_type"], row["name"])
        if row["sentence"]:
            told[flag][row["sentence"]] = None
    return {flag: tuple(sentences) for flag, sentences in told.items()}
