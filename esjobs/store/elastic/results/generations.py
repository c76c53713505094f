"""Results in the cluster: rows are written under a generation, readers follow an alias with a filter.

The alias of a table says which generations readers see; one request changes the aliases of all tables at
once. The filter of an alias is the only record of what is published, so that Kibana and esjobs cannot
disagree.
"""

import contextlib
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import table_schema
from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import StoreError
from esjobs.core.query import Days, Filter, In
from esjobs.core.tables import Table
from esjobs.store.base import Change, Generation
from esjobs.store.batches import blocks
from esjobs.store.checks import KnownTables, require_known, require_publishable
from esjobs.store.elastic.asking.days import days_between
from esjobs.store.elastic.asking.row_groups import VisibleRows
from esjobs.store.elastic.asking.row_pages import row_pages
from esjobs.store.elastic.indices import ensure_index
from esjobs.store.elastic.layout import LONGEST_TERM, Names, rows_index
from esjobs.store.elastic.results.aliases import (
    Shown,
    aliases_after,
    aliases_of,
    filter_of,
    published_in,
    switch,
)
from esjobs.store.elastic.results.lines import PIECE_BYTES, PIECE_ROWS, create_lines
from esjobs.store.elastic.results.markers import Marker, Markers, chunks
from esjobs.store.elastic.state import State
from esjobs.store.elastic.transport.cluster import Cluster, ask
from esjobs.store.elastic.transport.patience import PassingError
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import delete, parts, refresh, sent, write
from esjobs.store.lease import Lease
from esjobs.store.process import Process

_MOST_VALUES = 10_000
"""Values asked for in one clause; the limit of both products is 65 536."""


class Results:
    """The rows of all result tables."""

    def __init__(
        self,
        cluster: Cluster,
        names: Names,
        state: State,
        tables: KnownTables,
        clock: Clock = system_clock,
    ) -> None:
        self._cluster = cluster
        self._names = names
        self._tables = tables
        self._clock = clock
        self._markers = Markers(cluster, names, clock)
        self._pending: set[str] = set()
        _OPEN.add(self)
        self._turn = Lease(state, cluster.location, what="publishing results", request_s=cluster.longest_s())

    def replace(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        """Write rows under a new generation, all of them or none that will ever be seen."""
        require_known(self._tables, table)
        index = self._names.rows(table)
        generation = Generation(table, partition, uuid.uuid4().hex)
        number = generation.number
        schema = table_schema(table)
        common = {"generation": number, "partition": partition}
        row = 0

        def requests() -> Iterator[tuple[list[bytes], None]]:
            nonlocal row
            for rows in blocks(batches, schema, f"rows of '{table.name}'", PIECE_ROWS, PIECE_BYTES):
                counted = pa.array(range(row + 1, row + 1 + rows.num_rows), pa.int64())
                row += rows.num_rows
                names = pc.binary_join_element_wise(number, counted.cast(pa.string()), ".")
                for _, lines in create_lines(index, names, rows, common, milliseconds=True):
                    yield from ((part, None) for part in parts(lines))

        ensure_index(self._cluster, index, rows_index(table))
        self._pending.add(number)
        try:
            self._markers.begin(generation)
            with contextlib.closing(sent(self._cluster, requests())) as answers:
                for _ in answers:
                    pass
            self._markers.end(generation, row)
        except BaseException:
            self._pending.discard(number)
            # what cannot be deleted now is swept later
            with contextlib.suppress(StoreError):
                self._delete(table, [number])
            raise
        return generation

    def publish(self, changes: Sequence[Change], also: Callable[[], Sequence[Change]] | None = None) -> None:
        """Switch readers of every named partition in one request.

        What an alias shows is read, changed and written: one process at a time, or one would undo what
        another has just published.
        """
        with self._turn.turn():
            changes = [*changes, *(also() if also is not None else ())]
            require_publishable(self._tables, changes)
            self._publish(changes)

    def _publish(self, changes: Sequence[Change]) -> None:
        tables = {change.table.name: change.table for change in changes}
        for table in tables.values():
            written = [one for one in changes if isinstance(one, Generation) and one.table == table]
            if written:
                refresh(self._cluster, self._names.rows(table))
                self._markers.require_written(table, written)
        tables = {name: table for name, table in tables.items() if self._exists(table)}
        before = {name: aliases_of(self._cluster, self._names, table) for name, table in tables.items()}
        after = {
            name: aliases_after(before[name], self._names, table, changes) for name, table in tables.items()
        }
        actions = [
            action
            for name, table in tables.items()
            for action in switch(self._names.rows(table), before[name], after[name])
        ]
        if not actions:
            return
        try:
            self._cluster.call("POST", "/_aliases", {"actions": actions})
        except PassingError as error:
            if not error.passing:
                raise
            # the answer may be lost and the switch made
            made = (aliases_of(self._cluster, self._names, table) for table in tables.values())
            if list(made) != list(after.values()):
                raise
        self._pending -= {change.number for change in changes if isinstance(change, Generation)}
        # who is switched over is switched over, also when this fails: then they are left to a later sweep
        with contextlib.suppress(StoreError):
            for name, table in tables.items():
                seen = (published_in(aliases[name], self._names, table) for aliases in (before, after))
                gone, still = (set(shown.values()) for shown in seen)
                self._markers.end_of(table, sorted(gone - still))

    def published(self, table: Table) -> Shown:
        """The generation that readers of a table see of each partition."""
        return published_in(aliases_of(self._cluster, self._names, table), self._names, table)

    def visible(self, table: Table) -> VisibleRows:
        """The rows of a table that readers see now."""
        return VisibleRows(table, self._names.rows(table), filter_of(self.published(table)))

    def read(
        self,
        table: Table,
        where: Sequence[Filter] = (),
        names: Sequence[str] = (),
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the rows that readers see, as of the moment of the call; all columns when none are named.

        With a year of history a day costs what it costs with a week's.
        """
        clauses = {number: clause(table, item) for number, item in enumerate(where)}
        asked = [self.visible(table).shown, *(one for one in clauses.values() if one is not None)]
        left = [item for number, item in enumerate(where) if clauses[number] is None]
        at = PointInTime(self._cluster, self._names.rows(table))
        return row_pages(at, table, {"bool": {"filter": asked}}, left, names, order, limit)

    def sweep(self) -> int:
        """Delete the rows of generations that nobody sees and nobody will publish; the number of rows.

        What another process has written and not published yet stays: as long as it lives where this machine
        can see that, and for a day where it cannot.
        """
        return sum(self._sweep(table) for table in self._tables.values() if self._exists(table))

    def forget(self) -> None:
        """Nothing that was written and not published will be: let it be swept."""
        self._pending.clear()

    def _sweep(self, table: Table) -> int:
        refresh(self._cluster, self._names.rows(table))
        unseen = list(self._markers.unseen(table, self.published(table).values()))
        over = [marker.number for marker in unseen if marker.over]
        left = [marker.number for marker in unseen if not marker.over and self._is_left(marker)]
        if left:
            # nobody publishes meanwhile, and afterwards nobody can
            with self._turn.turn():
                seen = set(self.published(table).values())
                left = [number for number in left if number not in seen]
                self._markers.end_of(table, left)
        return self._delete(table, [*over, *left])

    def _is_left(self, marker: Marker) -> bool:
        """Whether nobody will publish a generation; of this process' own its open stores know."""
        if any(marker.number in results._pending for results in _OPEN):
            return False
        return marker.writer == Process.current() or marker.is_left(self._clock())

    def _delete(self, table: Table, numbers: Sequence[str]) -> int:
        """Delete the rows of generations, after them the documents about these; the number of rows."""
        index = self._names.rows(table)
        deleted = 0
        for some in chunks(numbers):
            refresh(self._cluster, index)
            chosen = [{"terms": {"generation": some}}, {"exists": {"field": "partition"}}]
            with PointInTime(self._cluster, index) as at:
                for hits in at.pages({"bool": {"filter": chosen}}, False):
                    write(self._cluster, (delete(index, hit["_id"]) for hit in hits))
                    deleted += len(hits)
            write(self._cluster, (delete(index, number) for number in some))
        if deleted:
            refresh(self._cluster, index)
        return deleted

    def _exists(self, table: Table) -> bool:
        only = {"filter_path": "*.aliases"}
        return ask(self._cluster, f"/{self._names.rows(table)}", params=only) is not None


_OPEN: weakref.WeakSet[Results] = weakref.WeakSet()
"""The open stores of this process, which know what they are about to publish."""


def clause(table: Table, item: Filter) -> dict[str, Any] | None:
    """A filter that names values of an indexed text, or days, as part of a query; None for any other."""
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
