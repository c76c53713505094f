"""Results in the cluster: rows are written under a generation, readers follow an alias with a filter.

The alias of a table says which generations readers see; one request changes the aliases of all tables at
once. The filter of an alias is the only record of what is published, so that Kibana and esjobs cannot
disagree.
"""

import contextlib
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import table_schema
from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import StoreError
from esjobs.core.query import Days, Filter, In
from esjobs.core.tables import Table
from esjobs.store.base import Generation, Retired
from esjobs.store.batches import blocks
from esjobs.store.checks import KnownTables, require_known, require_once
from esjobs.store.elastic.asking.days import days_between
from esjobs.store.elastic.asking.row_groups import VisibleRows
from esjobs.store.elastic.asking.row_pages import row_pages
from esjobs.store.elastic.indices import ensure_index
from esjobs.store.elastic.layout import LONGEST_TERM, Names, rows_index
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

_NOTHING = "none"
"""Stands in the filter of an alias that shows nothing."""


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
                for _, lines in create_lines(index, names, rows, common):
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

    def publish(self, changes: Sequence[Generation | Retired]) -> None:
        """Switch readers of every named partition in one request.

        What an alias shows is read, changed and written: one process at a time, or one would undo what
        another has just published.
        """
        require_known(self._tables, *(change.table for change in changes))
        require_once(changes)
        with self._turn.turn():
            self._publish(changes)

    def _publish(self, changes: Sequence[Generation | Retired]) -> None:
        tables = {change.table.name: change.table for change in changes}
        for table in tables.values():
            mine = [one for one in changes if isinstance(one, Generation) and one.table == table]
            if mine:
                refresh(self._cluster, self._names.rows(table))
                self._markers.require_written(table, mine)
        before = {name: self.published(table) for name, table in tables.items() if self._exists(table)}
        wanted = {name: _after(tables[name], shown, changes) for name, shown in before.items()}
        actions = [_alias(self._names, tables[name], shown) for name, shown in wanted.items()]
        if not actions:
            return
        try:
            self._cluster.call("POST", "/_aliases", {"actions": actions})
        except PassingError as error:
            if not error.passing:
                raise
            # the answer may be lost and the switch made
            if any(self.published(tables[name]) != shown for name, shown in wanted.items()):
                raise
        self._pending -= {change.number for change in changes if isinstance(change, Generation)}
        # who is switched over is switched over, also when this fails: then they are left to a later sweep
        with contextlib.suppress(StoreError):
            for name, shown in wanted.items():
                gone = set(before[name].values()) - set(shown.values())
                self._markers.end_of(tables[name], sorted(gone))

    def published(self, table: Table) -> dict[str, str]:
        """The generation that readers of a table see of each partition."""
        index, alias = self._names.rows(table), self._names.alias(table)
        found = ask(self._cluster, f"/{index}/_alias/{alias}")
        if found is None:
            return {}
        numbers, partitions = found[index]["aliases"][alias]["filter"]["bool"]["filter"]
        pairs = zip(partitions["terms"]["partition"], numbers["terms"]["generation"], strict=True)
        return {partition: number for partition, number in pairs if number != _NOTHING}

    def visible(self, table: Table) -> VisibleRows:
        """The rows of a table that readers see now."""
        return VisibleRows(table, self._names.rows(table), _shown(self.published(table)))

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


def _after(table: Table, shown: Mapping[str, str], changes: Sequence[Generation | Retired]) -> dict[str, str]:
    """The generation of each partition that readers of a table are to see after a switch."""
    after = dict(shown)
    for change in changes:
        if change.table == table:
            after.pop(change.partition, None)
            if isinstance(change, Generation):
                after[change.partition] = change.number
    return after


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


def has_alias(cluster: Cluster, names: Names, table: Table) -> bool:
    """Whether a table has the alias that readers ask."""
    return ask(cluster, f"/{names.rows(table)}/_alias/{names.alias(table)}") is not None


def ensure_alias(cluster: Cluster, names: Names, table: Table) -> None:
    """Give a table that has never been published an alias that shows nothing."""
    if not has_alias(cluster, names, table):
        cluster.call("POST", "/_aliases", {"actions": [_alias(names, table, {})]})


def _alias(names: Names, table: Table, published: Mapping[str, str]) -> dict[str, Any]:
    """The action that makes an alias show these generations, whatever it showed before."""
    alias = {"index": names.rows(table), "alias": names.alias(table), "is_write_index": False}
    return {"add": alias | {"filter": _shown(published)}}


def _shown(published: Mapping[str, str]) -> dict[str, Any]:
    """The rows that readers see, as the filter of an alias: two lists in the same order.

    The document that says that a generation was written has no partition and so is never shown.
    """
    shown = published or {_NOTHING: _NOTHING}
    generations = {"terms": {"generation": list(shown.values())}}
    return {"bool": {"filter": [generations, {"terms": {"partition": list(shown)}}]}}
