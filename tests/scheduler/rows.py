"""Everything that readers of a store see, but what tells of the time that it took."""

from typing import Any

from esjobs.publish.publication import read_table
from esjobs.schema.catalogue import TABLES
from esjobs.store.base import JobStore

OF_TIME = {
    "runs": ("at", "seconds"),
    "nights": ("seconds", "began", "finished", "attempt", "steps_done", "late_days"),
    "night_steps": (
        *("seconds", "finished", "attempt", "processor_s", "documents_read", "documents_written"),
        *("bytes_written", "documents_deleted", "requests", "requests_failed"),
    ),
}
"""Columns that differ from one time to the next, by table."""


def _without_account(row: dict[str, Any]) -> dict[str, Any]:
    """A step that is done every time, by its name: what it had to do differs from one time to the next."""
    return {name: row[name] for name in ("night", "step", "position", "state", "reason")}


def _without_work_done(row: dict[str, Any]) -> dict[str, Any] | None:
    """An account without the days that a step had still to fit: one that was killed has fitted some."""
    if row.get("name") == "days fitted":
        return None
    if row["step"] == "drift" and "counts" in row:
        return {name: value for name, value in row.items() if name != "counts"}
    return row


def visible_rows(store: JobStore, without: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """The rows of every table, in an order of their own."""
    seen: dict[str, list[str]] = {}
    for table in TABLES:
        if table.name not in without:
            left_out = OF_TIME.get(table.name, ())
            rows: list[dict[str, Any]] = read_table(store, table).to_pylist()
            if table.name in ("runs", "run_counts"):
                rows = [row for row in map(_without_work_done, rows) if row is not None]
            if table.name == "night_steps":
                rows = [row if row["inputs"] else _without_account(row) for row in rows]
            seen[table.name] = sorted(
                repr([(name, value) for name, value in row.items() if name not in left_out]) for row in rows
            )
    return seen
