"""Results in the cluster: generations of rows behind filtered aliases.

One request switches the aliases of all tables; `published` records it. Empty monthly indices are dropped.
"""

import contextlib
import secrets
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import table_schema
from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import StoreError, UsageError
from esjobs.core.query import Days, Filter, In, Query
from esjobs.core.tables import Table
from esjobs.store.base import Aggregate, Change, Generation, Hide, PointLatest
from esjobs.store.batches import blocks
from esjobs.store.books import books_table
from esjobs.store.checks import KnownTables, require_known, require_publishable
from esjobs.store.duck.compile_sql import compile_aggregate
from esjobs.store.elastic.asking.days import days_between
from esjobs.store.elastic.asking.row_groups import VisibleRows, aggregate_rows
from esjobs.store.elastic.asking.row_pages import row_pages
from esjobs.store.elastic.asking.scratch import scratch_of_rows
from esjobs.store.elastic.indices import ensure_index
from esjobs.store.elastic.layout import (
    LONGEST_TERM,
    USUAL,
    IndexSettings,
    Names,
    day_of,
    groups,
    is_monthly,
    listed,
    month_of,
    months_of,
    rows_index,
)
from esjobs.store.elastic.results.aliases import (
    Location,
    Partitions,
    aliases_after,
    aliases_by_table,
    filter_of,
    published_in,
)
from esjobs.store.elastic.results.differences import Difference, difference_error
from esjobs.store.elastic.results.garbage import GarbageMonths
from esjobs.store.elastic.results.lines import PIECE_BYTES, PIECE_ROWS, create_lines
from esjobs.store.elastic.results.markers import Marker, Markers
from esjobs.store.elastic.results.pieces import Packer, packed_rows
from esjobs.store.elastic.results.published import Published
from esjobs.store.elastic.results.records import Records
from esjobs.store.elastic.results.repair import Repair
from esjobs.store.elastic.results.sweep import Sweep, remove
from esjobs.store.elastic.state import State
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import parts, refresh, sent
from esjobs.store.lease import Lease
from esjobs.store.process import Process

# Of the random number of a generation, which each of its rows has twice
_NUMBER_BYTES = 8
# Values asked for in one clause; the limit of both products is 65 536
_MOST_VALUES = 10_000


class Results:
    """Rows of all result tables."""

    def __init__(
        self,
        cluster: Cluster,
        names: Names,
        state: State,
        tables: KnownTables,
        how: IndexSettings = USUAL,
    ) -> None:
        self._cluster = cluster
        self._names = names
        self._tables = tables
        self._how = how
        self._clock: Clock = system_clock
        self._markers = Markers(cluster, names, system_clock)
        self._garbage_months = GarbageMonths(state)
        self._shown = Published(cluster, names, Records(state), self._markers, tables)
        self._pending: dict[str, Location] = {}
        _OPEN.add(self)
        self._turn = Lease(state, cluster.location, what="publishing results", request_s=cluster.longest_s())

    def replace(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        """Write rows under a new generation, all of them or none ever visible."""
        require_known(self._tables, table)
        index = self._names.rows(table, partition)
        # random: processes that write at the same time need no counter
        generation = Generation(table, partition, secrets.token_hex(_NUMBER_BYTES))
        number = generation.number
        schema = table_schema(table)
        common = {"generation": number, "partition": partition}
        alone = table.packed == "alone"
        packer = Packer(number, common if alone else {"generation": number}) if table.packed else None
        row = 0

        def requests() -> Iterator[tuple[list[bytes], None]]:
            nonlocal row
            for rows in blocks(batches, schema, f"rows of '{table.name}'", PIECE_ROWS, PIECE_BYTES):
                if packer is not None:
                    packer.add(rows)
                if alone:
                    continue
                # ids by count: a repeated request meets its own rows
                counted = pa.array(range(row + 1, row + 1 + rows.num_rows), pa.int64())
                row += rows.num_rows
                names = pc.binary_join_element_wise(number, counted.cast(pa.string()), ".")
                for _, lines in create_lines("", names, rows, common, milliseconds=True):
                    yield from ((part, None) for part in parts(lines))
            if packer is not None:
                yield from ((part, None) for part in parts(packer.lines()))

        self._begin(generation, index)
        try:
            with contextlib.closing(sent(self._cluster, requests(), index=index)) as answers:
                for _ in answers:
                    pass
            # last: without this mark nobody publishes the rows
            self._markers.end(generation, len(packer) if alone and packer is not None else row)
        except BaseException:
            # what cannot be deleted now is collected later
            with contextlib.suppress(StoreError):
                remove(self._cluster, [Location(index, number)])
            self._pending.pop(number, None)
            raise
        return generation

    def _begin(self, generation: Generation, index: str) -> None:
        """Create the index of a generation and record its writer.

        The process that has the publishing turn may drop a monthly index, so both steps happen inside it,
        unless this object is already writing there.
        """
        monthly = is_monthly(generation.table)
        guarded = monthly and any(location.index == index for location in self._pending.values())
        # before the document is there: another store of this process must not take it for a leftover
        self._pending[generation.number] = Location(index, generation.number)
        try:
            with self._alone() if monthly and not guarded else contextlib.nullcontext():
                if guarded:
                    self._markers.begin(generation)
                    return
                month = month_of(generation.partition) if monthly else None
                with self._garbage_months.mention([(generation.table, month)] if month is not None else []):
                    self._ensure(generation.table, index)
                    self._markers.begin(generation)
        except BaseException:
            self._pending.pop(generation.number)
            raise

    def _ensure(self, table: Table, index: str) -> None:
        first = self._names.rows(table)

        def make() -> bool:
            made = ensure_index(self._cluster, first, rows_index(table, self._how))
            if index == first:
                return made
            return ensure_index(self._cluster, index, rows_index(table, self._how, monthly=True)) or made

        self._shown.ensure_index(table, index, make)

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        """Exclude other publishers, writers to new monthly indices, and drops."""
        return contextlib.nullcontext() if self._turn.is_held else self._turn.turn()

    def publish(self, changes: Sequence[Change], also: Callable[[], Sequence[Change]] | None = None) -> None:
        """Switch all partitions in one request, under the publishing turn."""
        with self._alone():
            changes = [*changes, *(also() if also is not None else ())]
            require_publishable(self._tables, changes)
            self._publish(changes)

    def _publish(self, changes: Sequence[Change]) -> None:
        tables = {change.table.name: change.table for change in changes}
        written = [change for change in changes if isinstance(change, Generation)]
        self._require_written(written)
        last = self._shown.recover()
        requested = [(table, _months(changes, table)) for table in tables.values()]
        shown, wanted = self._shown.settled(requested)
        for change in written:
            if not shown[change.table.name]:
                raise StoreError(f"the indices of '{change.table.name}' are missing; run the step again")
        # a table that nothing was ever written to has nothing to take out of sight
        after = {
            name: aliases_after(wanted[name], self._names, table, changes)
            for name, table in tables.items()
            if shown[name]
        }
        # months that are written to were mentioned when that began
        with self._garbage_months.mention(_retired_months(changes)):
            self._shown.switch(last, shown, wanted, after, self._turn.keep)
        for change in written:
            self._pending.pop(change.number, None)

    def _require_written(self, written: Sequence[Generation]) -> None:
        indices = {self._names.rows(one.table, one.partition) for one in written}
        # no index refreshes by itself: rows count from here on
        for group in groups(sorted(indices)):
            refresh(self._cluster, listed(group))
        self._markers.require_written(written)

    def check(self) -> None:
        """Raise :class:`PublishedError` if aliases and record differ."""
        # again: somebody may have published between the two halves of the answer
        found = self.differences() and self.differences()
        if found:
            raise difference_error(found)

    def differences(self) -> list[Difference]:
        """Return differences, except those of a publication in progress."""
        tables = self._tables.values()
        aliases = aliases_by_table(self._cluster, self._names, dict.fromkeys(tables))
        found = self._shown.survey(tables, aliases, self._shown.records.every())
        left: list[Difference] = []
        for table in tables:
            of_table = [each for each in found if each.table == table]
            left += self._shown.without_open(of_table, aliases[table.name]) if of_table else []
        return left

    def repair(self, *, dry_run: bool, start_empty: Collection[str] = ()) -> list[str]:
        """Repair aliases from the record; return a line per index; see `Repair`.

        Raises :class:`UsageError` if ``start_empty`` names a table that is not entered.
        """
        entered = {table.name for table in self._tables.values() if table.entered}
        for name in start_empty:
            if name not in entered:
                raise UsageError(
                    f"'{name}' is not a table of entered data; use one of: {', '.join(sorted(entered))}"
                )
        with self._alone():
            repair = Repair(self._cluster, self._names, self._shown, self._markers, start_empty)
            return repair.repair(self._tables, self._turn.keep, dry_run=dry_run)

    def prepare(self) -> None:
        """Create empty aliases of tables that have never been published."""
        with self._alone():
            last = self._shown.recover()
            # undated indices only: months get their aliases with their first publication
            shown, wanted = self._shown.settled([(table, []) for table in self._tables.values()])
            after = {
                name: aliases_after(wanted[name], self._names, table, ())
                for name, table in self._tables.items()
            }
            self._shown.switch(last, shown, wanted, after, self._turn.keep)

    def published(self, table: Table, months: Collection[str] | None = None) -> Partitions:
        """Return the visible partitions of some months, or of all."""
        return published_in(self._shown.aliases(table, months), self._names, table)

    def visible(self, table: Table, where: Sequence[Filter] = ()) -> VisibleRows:
        """Return the visible rows, restricted to months and partitions that can pass the filters."""
        days = [item for item in where if isinstance(item, Days) and item.field == table.partition]
        published = {
            partition: location
            for partition, location in self.published(table, months_of(days[0]) if days else None).items()
            if _may_pass(table, partition, where)
        }
        indices = sorted({location.index for location in published.values()}) or [self._names.rows(table)]
        shown = {partition: location.number for partition, location in published.items()}
        return VisibleRows(table, self._names.target(table, indices), filter_of(shown), [*shown.values()])

    def read(
        self,
        table: Table,
        where: Sequence[Filter] = (),
        names: Sequence[str] = (),
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the visible rows as of the call; all columns if none are named."""
        clauses = {number: clause(table, item) for number, item in enumerate(where)}
        visible = self.visible(table, where)
        if not visible.generations:
            return iter(())
        requested = [visible.shown, *(one for one in clauses.values() if one is not None)]
        left = [item for number, item in enumerate(where) if clauses[number] is None]
        at = PointInTime(self._cluster, visible.index)
        visible.require_there(at)
        days = [item for item in where if isinstance(item, Days)]
        # pieces have columns and days; every other filter needs documents
        if table.packed and len(days) == len(where) and not order and limit is None:
            return _with_pieces(at, visible, requested, days, names)
        if table.packed == "alone":
            rows = _with_pieces(at, visible, [visible.shown], days, ())
            return _unpacked(table, rows, where, names, order, limit)
        return row_pages(at, table, {"bool": {"filter": requested}}, left, names, order, limit, visible.runs)

    def aggregate(self, table: Table, query: Query) -> Aggregate:
        """Group and sum the visible rows: in the cluster, or those of pieces in the embedded engine."""
        if table.packed != "alone":
            return aggregate_rows(self._cluster, self.visible(table, query.where), query)
        compile_aggregate(query)  # refuses what makes no sense before anything is asked
        with scratch_of_rows(table) as scratch:
            for batch in self.read(table, [item for item in query.where if isinstance(item, Days)]):
                scratch.add(batch)
            return Aggregate(scratch.aggregate(query).table, books_table({}))

    def sweep(self) -> int:
        """Delete rows that nobody sees or will publish; see `Sweep`."""
        sweep = Sweep(self._cluster, self._names, self._shown, self._markers, self._alone, self._is_left)
        return sweep.sweep(self._tables.values(), self._garbage_months)

    def forget(self) -> None:
        """Abandon pending generations."""
        self._pending.clear()

    def _is_left(self, marker: Marker) -> bool:
        # of any store of this process: two sessions may be open
        if any(marker.number in results._pending for results in tuple(_OPEN)):
            return False
        return marker.writer == Process.current() or marker.is_left(self._clock())


def _with_pieces(
    at: PointInTime,
    visible: VisibleRows,
    requested: Sequence[Mapping[str, Any]],
    days: Sequence[Days],
    names: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some days from pieces, or of generations without pieces from documents."""
    left: set[str] = set()
    with at:
        yield from packed_rows(at, visible.table, visible.generations, days, names, left)
        if left:
            some = replace(visible, generations=[each for each in visible.generations if each in left])
            query = {"bool": {"filter": [*requested, {"terms": {"generation": some.generations}}]}}
            yield from row_pages(at, visible.table, query, (), names, (), None, some.runs)


def _unpacked(
    table: Table,
    rows: Iterator[pa.RecordBatch],
    where: Sequence[Filter],
    names: Sequence[str],
    order: Sequence[str],
    limit: int | None,
) -> Iterator[pa.RecordBatch]:
    with scratch_of_rows(table) as scratch:
        for batch in rows:
            scratch.add(batch)
        yield from scratch.read(table, where, names, order, limit)


# The open stores of this process, which know what they are about to publish
_OPEN: weakref.WeakSet[Results] = weakref.WeakSet()


def _retired_months(changes: Sequence[Change]) -> list[tuple[Table, str]]:
    """Return tables and months from which a publication retires days."""
    hidden = [one for one in changes if isinstance(one, Hide) and is_monthly(one.table)]
    named = [(one.table, month_of(one.partition)) for one in hidden]
    return [(table, month) for table, month in named if month is not None]


def _months(changes: Sequence[Change], table: Table) -> set[str]:
    partitions = [
        change.partition
        for change in changes
        if change.table == table and not isinstance(change, PointLatest)
    ]
    return {month for month in map(month_of, partitions) if month is not None}


def _may_pass(table: Table, partition: str, where: Sequence[Filter]) -> bool:
    # an index filters documents by their columns, but not the rows of pieces
    if table.packed == "alone" and not is_monthly(table):
        runs = [item.values for item in where if isinstance(item, In) and item.field == table.partition]
        return all(partition in map(str, values) for values in runs)
    day = day_of(partition) if is_monthly(table) else None
    return day is None or all(
        item.first <= day <= item.last
        for item in where
        if isinstance(item, Days) and item.field == table.partition
    )


def clause(table: Table, item: Filter) -> dict[str, Any] | None:
    """Return a filter as clause; None if the index cannot express it."""
    if isinstance(item, Days):
        return days_between(item.field, item)
    if not isinstance(item, In) or len(item.values) > _MOST_VALUES:
        return None
    texts = [str(value) for value in item.values]
    match {column.name: column.type for column in table.columns}[item.field]:
        case "day":
            return {"terms": {item.field: [str(date.fromisoformat(text)) for text in texts]}}
        # an index counts a letter beyond the first plane twice
        case "keyword" if all(2 * len(text) <= LONGEST_TERM for text in texts):
            return {"terms": {item.field: texts}}
    return None
