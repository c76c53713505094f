"""Checks and errors common to all stores."""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.errors import ReadOnlyError, StoreError, UsageError
from esjobs.core.tables import Table
from esjobs.store.base import PART, Change, PointLatest

SUPERSEDED = pa.schema([PUT_SCHEMA.field(n) for n in ("source", "job_id", "origin_file", "origin_line")])
"""Incoming rows that lost, as ``put_jobs`` names them."""

FINGERPRINTS = pa.schema([("day", pa.date32()), ("n_jobs", pa.int64()), ("fingerprint", pa.string())])
"""Schema of ``day_fingerprints``."""

LOAD_FINGERPRINTS = pa.schema(
    [("day", pa.date32()), ("load", pa.int64()), ("n_jobs", pa.int64()), ("fingerprint", pa.string())]
)
"""Schema of ``load_fingerprints``."""


_Method = TypeVar("_Method", bound=Callable[..., Any])


def writes(method: _Method) -> _Method:
    """Decorate a method that writes: :class:`ReadOnlyError` in read-only stores and sessions."""

    @wraps(method)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        if self.read_only:
            raise ReadOnlyError(
                f"{method.__name__} writes, but the store was opened for reading; open it without read_only: "
                "esjobs.open(URL)"
            )
        return method(self, *args, **named)

    return cast("_Method", checked)


def not_undoable(load_id: str) -> StoreError:
    """Return the error for a load whose replaced versions were removed."""
    return StoreError(
        f"load {load_id} cannot be undone: the rows that it replaced were removed after undo_days "
        "([retention]); load the correct records, which replace those of the load"
    )


KnownTables = Mapping[str, Table]
"""The result tables that a store was opened with, by name: the only ones that it reads and writes."""


def by_name(tables: Iterable[Table]) -> KnownTables:
    """Return tables by name."""
    return {table.name: table for table in tables}


def require_known(existing: KnownTables, *requested: Table) -> None:
    """Raise :class:`UsageError` for any other table: names become identifiers only through here."""
    for table in requested:
        if table.name not in existing:
            raise UsageError(f"unknown table '{table.name}'; use one of: {', '.join(existing)}")
        # the same name with other columns: rows of another version
        if existing[table.name] != table:
            raise UsageError(f"table '{table.name}' is not the table of that name in the catalogue")


def of_days(table: Table) -> bool:
    """True if the partitions of a table are days."""
    return table.column(table.partition).type == "day"


def new_part(table: Table, day: str) -> str:
    """Return the partition of rows added to a day; :class:`UsageError` where none is replaced by the day."""
    if not of_days(table):
        raise UsageError(f"'{table.name}' is replaced per {table.partition}; rows are added to days only")
    # unique: two processes may add to one day
    return f"{day}{PART}{uuid.uuid4().hex}"


def require_publishable(existing: KnownTables, changes: Sequence[Change]) -> None:
    """Raise :class:`UsageError` for unknown tables, invalid lengths and repeated partitions."""
    require_known(existing, *(change.table for change in changes))
    latest = [change for change in changes if isinstance(change, PointLatest)]
    for change in latest:
        _require_latest(change)
    places = [("", c.table.name, c.partition) for c in changes if not isinstance(c, PointLatest)]
    places += [("latest", change.table.name, change.length) for change in latest]
    # the engines would apply two changes of one place in different orders
    if len(set(places)) < len(places):
        raise UsageError("a partition is published twice in one step; publish each partition once")


def _require_latest(change: PointLatest) -> None:
    if not change.table.has_latest:
        raise UsageError(
            f"'{change.table.name}' is replaced per {change.table.partition}; only tables of runs have "
            "a latest run"
        )
    # a length becomes part of the name of a view or an alias
    if change.length and not LENGTH.fullmatch(change.length):
        raise UsageError(f"'{change.length}' is not a window length; expected days, such as 30d")


LENGTH = re.compile(r"[0-9]{1,9}d")
"""Spelling of the length of windows in the latest name of their kind."""
