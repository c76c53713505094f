"""What every store checks and answers alike, whatever it keeps its rows in."""

from collections.abc import Sequence

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.errors import UsageError
from esjobs.core.tables import Table
from esjobs.core.tables import table as table_named
from esjobs.store.base import Generation, Retired

SUPERSEDED = pa.schema([PUT_SCHEMA.field(n) for n in ("source", "job_id", "origin_file", "origin_line")])
"""Incoming rows that lost, as ``put_jobs`` names them."""

FINGERPRINTS = pa.schema([("day", pa.date32()), ("n_jobs", pa.int64()), ("mark", pa.string())])
"""What ``day_fingerprints`` answers."""


def known(table: Table) -> Table:
    """The table itself if it is one of the catalogue's; names become identifiers only through here."""
    if table_named(table.name) != table:
        raise UsageError(f"table '{table.name}' is not the catalogue's table of that name")
    return table


def require_once(changes: Sequence[Generation | Retired]) -> None:
    """Refuse to publish a partition twice in one step."""
    places = [(change.table.name, change.partition) for change in changes]
    if len(set(places)) < len(places):
        raise UsageError("a partition is published twice in one step; publish each of them once")
