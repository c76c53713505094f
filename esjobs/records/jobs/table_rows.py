"""Rows of result tables that a load brings beside jobs: kept aside, then written into their partitions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import given_schema, table_schema
from esjobs.core.errors import UsageError
from esjobs.core.query import Count, Days, Filter, In, Query
from esjobs.core.tables import LOAD_TIMES, Table
from esjobs.publish.publication import read_table
from esjobs.records.jobs.row_spool import RowSpool
from esjobs.schema.jobs import LOAD_COUNTS, LOADS, REJECTS
from esjobs.store.base import Change, Hide, JobStore
from esjobs.store.batches import conformed

_ACCOUNTS = (LOADS, REJECTS, LOAD_COUNTS)
_PARTITIONS = ("keyword", "integer", "day")


@dataclass(frozen=True)
class Put:
    """Counts of stored rows of one table; see :data:`esjobs.schema.jobs.LOAD_COUNTS`."""

    stored: int
    updated: int
    unchanged: int | None = None


class TableRows:
    """The rows that a source gives of one table.

    A table partitioned by load (``load_id``, ``import_id``) gets a partition of its own; of another table
    every partition that the rows name is replaced. Raises :class:`UsageError` for a table whose loads cannot
    be undone.
    """

    def __init__(self, table: Table) -> None:
        if table.load_column is None or table in _ACCOUNTS:
            why = "ingest writes it" if table in _ACCOUNTS else "no column names the load they came with"
            raise UsageError(f"a source cannot provide rows of '{table.name}': {why}")
        if table.column(table.partition).type not in _PARTITIONS:
            raise UsageError(
                f"a source cannot provide rows of '{table.name}', which are replaced by {table.partition}; "
                f"accepted are columns of the types {', '.join(_PARTITIONS)}"
            )
        self.table = table
        self.spool = RowSpool(given_schema(table), f"rows of '{table.name}'")
        self._per_load = table.partition == table.load_column

    def conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows in the columns of the table; :class:`UsageError` when theirs are others."""
        return conformed(batch, self.spool.schema, f"rows of '{self.table.name}'")

    def add(self, rows: pa.RecordBatch) -> None:
        """Keep rows that are in the columns of the table."""
        if self._per_load:
            self.spool.add(rows)
            return
        column = rows.column(self.table.partition)
        if column.null_count:
            raise UsageError(
                f"rows of '{self.table.name}' have no {self.table.partition}, by which they are replaced"
            )
        for value in pc.unique(column):
            self.spool.add(rows.filter(pc.equal(column, value)), str(value.as_py()))

    def write(self, store: JobStore, load_id: str, now: datetime) -> tuple[list[Change], Put, list[str]]:
        """Write the rows, invisible until the changes are published; what they are, and notes."""
        changes: list[Change] = []
        updated = replaced = 0
        # without rows a load still replaces those of an earlier attempt
        parts = self.spool.rows or ({"": 0} if self._per_load else {})
        for part, rows in parts.items():
            partition = load_id if self._per_load else part
            before = _count(store, self.table, of_partition(self.table, partition))
            # which rows are the same is not looked at: as many as there were count as updated
            updated += min(before, rows)
            replaced += before > 0
            if rows or before:
                changes.append(store.replace(self.table, partition, self._stamped(part, load_id, now)))
        notes = []
        if replaced and not self._per_load:
            what = f"{replaced:,} of {len(parts):,} partitions by {self.table.partition}"
            notes.append(f"{self.table.name}: {what} replaced; --undo cannot restore them")
        return changes, Put(self.spool.rows.total() - updated, updated), notes

    def _stamped(self, part: str, load_id: str, now: datetime) -> Iterator[pa.RecordBatch]:
        schema = table_schema(self.table)
        # an index knows moments to the millisecond; rows with finer ones would have to be read to be counted
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        of_load: dict[str | None, object] = {
            self.table.load_column: load_id,
            **dict.fromkeys(LOAD_TIMES, now),
        }
        for batch in self.spool.batches(part):
            columns = [
                batch.column(item.name)
                if item.name in batch.schema.names
                else pa.repeat(pa.scalar(of_load[item.name], item.type), batch.num_rows)
                for item in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def of_partition(table: Table, partition: str) -> Filter:
    """Return the filter of the rows of a partition."""
    kind = table.column(table.partition).type
    if kind == "day":
        day = date.fromisoformat(partition)
        return Days(table.partition, day, day)
    return In(table.partition, (int(partition) if kind == "integer" else partition,))


def retired_rows(store: JobStore, tables: Iterable[Table], load_id: str) -> tuple[list[Hide], int]:
    """Return the changes that remove the rows of a load from all tables, and the number of rows."""
    removed: list[Hide] = []
    rows = 0
    for table in tables:
        column = table.load_column
        if column is None or table in _ACCOUNTS:
            continue
        of_load = In(column, (load_id,))
        count = _count(store, table, of_load)
        if not count:
            continue
        rows += count
        names = {load_id}
        if table.partition != column:
            partitions = read_table(store, table, [of_load], [table.partition])
            names = {str(value) for value in partitions.column(table.partition).unique().to_pylist()}
        removed.extend(Hide(table, name) for name in sorted(names))
    return removed, rows


def _count(store: JobStore, table: Table, where: Filter) -> int:
    answer = store.aggregate(Query((), (Count("n"),), where=(where,), over=table)).table
    return int(answer.column("n")[0].as_py())
