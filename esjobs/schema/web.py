"""Acts of people on pages over HTTP."""

from esjobs.core.columns import LEVEL
from esjobs.core.tables import Table, column, columns

ACT_KINDS = ("answer", "ack")
"""Kinds of acts."""

ACTS = Table(
    "acts",
    "acts of people on pages; never removed",
    "act",
    (
        column("act", "keyword", "id"),
        column("entered_at", "time", "time", "UTC"),
        column("kind", "keyword", ", ".join(ACT_KINDS), values=ACT_KINDS),
        column("entered_by", "keyword", "reader, or holder of a link"),
        column("route", "keyword", "address"),
        LEVEL,
        column("processing_type", "keyword", "null: all"),
        column("name", "keyword", "of the flag"),
        # what the person saw when they acted: the state may have changed since
        column("before", "text", "state before"),
        column("after", "text", "state after"),
        column("request", "keyword", "request in the log"),
    ),
    entered=True,
    made_by="serve",
    shown=columns("entered_at kind name entered_by before after"),
    order=columns("-entered_at act"),
)

TABLES: tuple[Table, ...] = (ACTS,)
