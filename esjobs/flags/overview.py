"""Open flags, one row per name, and the history of one name."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import table_schema
from esjobs.core.query import In
from esjobs.core.tables import columns
from esjobs.core.words import ALL_TYPES, LEVELS, NAMED_LEVELS
from esjobs.publish.publication import read_table
from esjobs.records.names.spelling import Chosen, chosen_rows
from esjobs.schema.flags import FLAG_EVENTS, FLAG_NOTES, FLAG_STATES, STANDING_OPEN
from esjobs.store.base import JobStore

_FACTS = columns(
    "level name site state since nights deviation deviation_low deviation_high corepower proposed_corepower "
    "acknowledged_by acknowledged_until note sentence night"
)


def open_flags(
    store: JobStore, states: Collection[str] = STANDING_OPEN, levels: Sequence[str] = NAMED_LEVELS
) -> pa.Table:
    """Return the names in these states, one row each; a name has the first state of any of its flags.

    The order is open, acknowledged, new, resolved: a queue that is open for all types and a candidate for one
    of them is open. The row is that of all types if in that state, else of the kind of work with the largest
    deviation; ``kinds``: of all its flags in that state. ``answered_on``, ``answer``: the last answer
    since the flag began. Sorted by state, then longest first.
    """
    answers = _answers(store, levels)
    of_name: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in read_table(store, FLAG_STATES, [In("level", tuple(levels))]).to_pylist():
        of_name.setdefault((row["level"], row["name"]), []).append(row)
    found = []
    for flags in of_name.values():
        first = min(flags, key=_rank)
        if first["state"] in states:
            similar = [row for row in flags if row["state"] == first["state"]]
            found.append(_row(first, similar, answers.get((first["level"], first["name"]))))
    found.sort(key=lambda row: (_ORDER[row["state"]], LEVELS.index(row["level"]), row["since"], row["name"]))
    schema = table_schema(FLAG_STATES)
    fields = [schema.field(name) for name in _FACTS]
    more = [("kinds", pa.string()), ("answered_on", pa.date32()), ("answer", pa.string())]
    return pa.Table.from_pylist(found, schema=pa.schema([*fields, *(pa.field(*each) for each in more)]))


def _row(
    first: Mapping[str, Any], similar: Sequence[Mapping[str, Any]], last: Mapping[str, Any] | None
) -> dict[str, Any]:
    kinds = sorted((row["processing_type"] for row in similar), key=lambda kind: (kind != ALL_TYPES, kind))
    row = {**{name: first[name] for name in _FACTS}, "kinds": ", ".join(kinds)}
    if last is not None and last["night"] >= first["since"]:
        row |= {"answered_on": last["entered_at"].date(), "answer": last["text"]}
    return row


def _answers(store: JobStore, levels: Sequence[str]) -> dict[tuple[str, str], Mapping[str, Any]]:
    where = [In("level", tuple(levels)), In("kind", ("answer",))]
    rows = read_table(store, FLAG_NOTES, where, ("level", "name", "entered_at", "night", "text")).to_pylist()
    # of several answers the last one stays
    return {(row["level"], row["name"]): row for row in sorted(rows, key=lambda row: row["entered_at"])}


_ORDER = {state: index for index, state in enumerate(("open", "acknowledged", "new", "resolved"))}


def _rank(row: Mapping[str, Any]) -> tuple[int, bool, float, str]:
    return (
        _ORDER[row["state"]],
        row["processing_type"] != ALL_TYPES,
        -abs(row["deviation"] or 0.0),
        row["processing_type"],
    )


def flag_history(
    store: JobStore, name: str, levels: Sequence[str] = (), processing_types: Sequence[str] = ()
) -> pa.Table:
    """Return the events of the flags of a name, oldest first.

    ``levels``: of these; empty: of a name that a queue and its site have, those of the queue. Raises
    :class:`esjobs.core.errors.UsageError` for a name that was never flagged, with similar names.
    """

    def read(chosen: Chosen) -> pa.Table:
        return read_table(store, FLAG_EVENTS, [In(column, tuple(chosen[column,])) for (column,) in chosen])

    chosen: Chosen = {
        ("name",): (name,),
        ("level",): tuple(levels),
        ("processing_type",): tuple(processing_types),
    }
    rows = chosen_rows(FLAG_EVENTS, chosen, read)
    if not levels:
        of_jobs = rows.filter(pc.is_in(rows["level"], value_set=pa.array(NAMED_LEVELS)))
        rows = of_jobs if of_jobs.num_rows else rows
    order = [(column, "ascending") for column in ("night", "level", "processing_type", "position")]
    return rows.sort_by(order)
