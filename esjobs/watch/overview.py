"""What stands open, one row a name, and what happened to one name, in the order in which it did."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.query import In
from esjobs.core.tables import columns
from esjobs.core.words import ALL_TYPES
from esjobs.names.spelling import chosen_rows
from esjobs.runs.publication import read_table
from esjobs.store.base import JobStore
from esjobs.watch.tables import FLAG_EVENTS, FLAG_STATES, STANDING_OPEN

_FACTS = columns(
    "level name rc_site state since nights deviation deviation_low deviation_high corepower proposal "
    "acknowledged_by acknowledged_until note sentence night"
)


def open_flags(store: JobStore, states: Collection[str] = STANDING_OPEN) -> pa.Table:
    """The names with flags in these states, a row each: that of all types together where it is among them.

    Else the row of the kind of work with the largest deviation. ``kinds``: of all that are in these states.
    Open ones come first, then acknowledged ones, candidates and resolved ones; the longest since first.
    """
    rows = read_table(store, FLAG_STATES, [In("state", tuple(states))]).to_pylist()
    of_name: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        of_name.setdefault((row["level"], row["name"]), []).append(row)
    found = [
        {**{name: first[name] for name in _FACTS}, "kinds": ", ".join(_kinds(alike))}
        for alike in of_name.values()
        for first in [min(alike, key=_rank)]
    ]
    found.sort(
        key=lambda row: (_ORDER.index(row["state"]), row["level"] != "site", row["since"], row["name"])
    )
    schema = table_schema(FLAG_STATES)
    fields = [schema.field(name) for name in _FACTS]
    return pa.Table.from_pylist(found, schema=pa.schema([*fields, pa.field("kinds", pa.string())]))


_ORDER = ("open", "acknowledged", "new", "resolved")


def _rank(row: Mapping[str, Any]) -> tuple[bool, bool, float, str]:
    return (
        row["state"] != "open",
        row["processing_type"] != ALL_TYPES,
        -abs(row["deviation"] or 0.0),
        row["processing_type"],
    )


def _kinds(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted((row["processing_type"] for row in rows), key=lambda kind: (kind != ALL_TYPES, kind))


def flag_history(
    store: JobStore,
    name: str,
    levels: Sequence[str] = (),
    processing_types: Sequence[str] = (),
) -> pa.Table:
    """Everything that happened to the flags of a name: rows of ``flag_events``, oldest first.

    Raises :class:`esjobs.core.errors.UsageError` for a name that was never flagged, with what is close to it.
    """

    def read(chosen: Mapping[str, Sequence[str]]) -> pa.Table:
        return read_table(store, FLAG_EVENTS, [In(column, tuple(chosen[column])) for column in chosen])

    chosen = {"name": (name,), "level": tuple(levels), "processing_type": tuple(processing_types)}
    rows = chosen_rows(FLAG_EVENTS, chosen, read)
    order = [(column, "ascending") for column in ("night", "level", "processing_type", "place")]
    return rows.sort_by(order)
