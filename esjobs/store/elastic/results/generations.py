"""Results in the cluster: rows are written under a generation, readers follow an alias with a filter.

The alias of a table says which generations readers see, Kibana as well as esjobs; one request changes the
aliases of all tables at once, and a record in the state follows (`published`). The days of a month are in an
index of their own, which is dropped when nothing of it is seen.
"""

import contextlib
import uuid
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import table_schema
from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import StoreError, UsageError
from esjobs.core.query import Days, Filter, In
from esjobs.core.tables import Table
from esjobs.store.base import Change, Generation, Pointed, Retired
from esjobs.store.batches import blocks
from esjobs.store.checks import KnownTables, require_known, require_publishable
from esjobs.store.elastic.asking.days import days_between
from esjobs.store.elastic.asking.row_groups import VisibleRows
from esjobs.store.elastic.asking.row_pages import row_pages
from esjobs.store.elastic.indices import ensure_index
from esjobs.store.elastic.layout import (
    LONGEST_TERM,
    USUAL,
    IndexSettings,
    Names,
    is_monthly,
    month_of,
    months_of,
    rows_index,
)
from esjobs.store.elastic.results.aliases import (
    Partitions,
    Place,
    aliases_after,
    aliases_of,
    filter_of,
    published_in,
)
from esjobs.store.elastic.results.differences import Difference, difference_error
from esjobs.store.elastic.results.lines import PIECE_BYTES, PIECE_ROWS, create_lines
from esjobs.store.elastic.results.markers import Marker, Markers
from esjobs.store.elastic.results.mend import Mend
from esjobs.store.elastic.results.published import Published
from esjobs.store.elastic.results.records import Records
from esjobs.store.elastic.results.sweep import Sweep, remove
from esjobs.store.elastic.results.untidy import UntidyMonths
from esjobs.store.elastic.state import State
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import parts, refresh, sent
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
        how: IndexSettings = USUAL,
    ) -> None:
        self._cluster = cluster
        self._names = names
        self._tables = tables
        self._clock = clock
        self._how = how
        self._markers = Markers(cluster, names, clock)
        self._untidy = UntidyMonths(state)
        self._shown = Published(cluster, names, Records(state), self._markers, tables)
        self._pending: dict[str, Place] = {}
        _OPEN.add(self)
        self._turn = Lease(state, cluster.location, what="publishing results", request_s=cluster.longest_s())

    def replace(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        """Write rows under a new generation, all of them or none that will ever be seen."""
        require_known(self._tables, table)
        index = self._names.rows(table, partition)
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

        self._begin(generation, index)
        try:
            with contextlib.closing(sent(self._cluster, requests())) as answers:
                for _ in answers:
                    pass
            self._markers.end(generation, row)
        except BaseException:
            # what cannot be deleted now is swept later
            with contextlib.suppress(StoreError):
                remove(self._cluster, [Place(index, number)])
            self._pending.pop(number, None)
            raise
        return generation

    def _begin(self, generation: Generation, index: str) -> None:
        """Make the index of a generation, and say there who begins to write.

        An index of a month goes when nothing in it is seen and nobody writes: by whoever has the turn to
        publish, and so not between these two steps. One that this object writes to already stays for that.
        """
        monthly = is_monthly(generation.table)
        guarded = monthly and any(place.index == index for place in self._pending.values())
        # before the document is there: another store of this process must not take it for a leftover
        self._pending[generation.number] = Place(index, generation.number)
        try:
            with self._alone() if monthly and not guarded else contextlib.nullcontext():
                if guarded:
                    self._markers.begin(generation)
                    return
                month = month_of(generation.partition) if monthly else None
                with self._untidy.mention([(generation.table, month)] if month is not None else []):
                    self._ensure(generation.table, index)
                    self._markers.begin(generation)
        except BaseException:
            self._pending.pop(generation.number)
            raise

    def _ensure(self, table: Table, index: str) -> None:
        first = self._names.rows(table)

        def make() -> None:
            ensure_index(self._cluster, first, rows_index(table, self._how))
            if index != first:
                ensure_index(self._cluster, index, rows_index(table, self._how, monthly=True))

        self._shown.ensure_index(table, index, make)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else publishes, begins to write to an index of a month, or drops one."""
        if self._turn.held:
            yield
            return
        with self._turn.turn():
            yield

    def publish(self, changes: Sequence[Change], also: Callable[[], Sequence[Change]] | None = None) -> None:
        """Switch readers of every named partition in one request.

        What an alias shows is read, changed and written: one process at a time, or one would undo what
        another has just published.
        """
        with self._alone():
            changes = [*changes, *(also() if also is not None else ())]
            require_publishable(self._tables, changes)
            self._publish(changes)

    def _publish(self, changes: Sequence[Change]) -> None:
        tables = {change.table.name: change.table for change in changes}
        for table in tables.values():
            written = [one for one in changes if isinstance(one, Generation) and one.table == table]
            if written:
                indices = {self._names.rows(table, generation.partition) for generation in written}
                refresh(self._cluster, self._names.target(table, sorted(indices)))
                self._markers.require_written(table, written)
        last = self._shown.recover()
        asked = [(table, _months(changes, table)) for table in tables.values()]
        shown, wanted = self._shown.settled(asked)
        for change in changes:
            if isinstance(change, Generation) and not shown[change.table.name]:
                raise StoreError(f"the indices of '{change.table.name}' are gone; run the step again")
        # a table that nothing was ever written to has nothing to take out of sight
        after = {
            name: aliases_after(wanted[name], self._names, table, changes)
            for name, table in tables.items()
            if shown[name]
        }
        # months that are written to were mentioned when that began
        with self._untidy.mention(_retired_months(changes)):
            self._shown.switch(last, shown, wanted, after, self._turn.keep)
        for change in changes:
            if isinstance(change, Generation):
                self._pending.pop(change.number, None)

    def check(self) -> None:
        """Raise :class:`PublishedError` if aliases and record of any index differ."""
        # again: somebody may have published between the two halves of the answer
        found = self.differences() and self.differences()
        if found:
            raise difference_error(found)

    def differences(self) -> list[Difference]:
        """The indices of all tables whose aliases and record differ, but by a publication under way."""
        tables = self._tables.values()
        aliases = {table.name: aliases_of(self._cluster, self._names, table) for table in tables}
        found = self._shown.survey(tables, aliases, self._shown.records.every())
        left: list[Difference] = []
        for table in tables:
            of_table = [each for each in found if each.table == table]
            left += self._shown.without_open(of_table, aliases[table.name]) if of_table else []
        return left

    def mend(self, *, dry_run: bool, start_empty: Collection[str] = ()) -> list[str]:
        """Put aliases right from the record; a line for each index; see `Mend`.

        Raises :class:`UsageError` if ``start_empty`` names a table that people do not enter.
        """
        entered = {table.name for table in self._tables.values() if table.entered}
        for name in start_empty:
            if name not in entered:
                raise UsageError(f"'{name}' is not a table that people enter: {', '.join(sorted(entered))}")
        with self._alone():
            mend = Mend(self._cluster, self._names, self._shown, self._markers, start_empty)
            return mend.mend(self._tables, self._turn.keep, dry_run=dry_run)

    def prepare(self) -> None:
        """Give tables that have never been published aliases that show nothing; the indices are there."""
        with self._alone():
            last = self._shown.recover()
            shown, wanted = self._shown.settled([(table, []) for table in self._tables.values()])
            after = {
                name: aliases_after(wanted[name], self._names, table, ())
                for name, table in self._tables.items()
            }
            self._shown.switch(last, shown, wanted, after, self._turn.keep)

    def published(self, table: Table, months: Collection[str] | None = None) -> Partitions:
        """Where the rows are that readers of a table see of each partition, of some months or of all."""
        return published_in(self._shown.aliases(table, months), self._names, table)

    def visible(self, table: Table, where: Sequence[Filter] = ()) -> VisibleRows:
        """The rows of a table that readers see now, but those of partitions that the filters exclude.

        Of a table with months only the indices of those that may have such rows are named: a day among two
        years of days costs what it costs among a week's.
        """
        days = [item for item in where if isinstance(item, Days) and item.field == table.partition]
        published = {
            partition: place
            for partition, place in self.published(table, months_of(days[0]) if days else None).items()
            if _may_pass(table, partition, where)
        }
        indices = sorted({place.index for place in published.values()}) or [self._names.rows(table)]
        shown = {partition: place.number for partition, place in published.items()}
        return VisibleRows(table, self._names.target(table, indices), filter_of(shown), [*shown.values()])

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
        visible = self.visible(table, where)
        asked = [visible.shown, *(one for one in clauses.values() if one is not None)]
        left = [item for number, item in enumerate(where) if clauses[number] is None]
        at = PointInTime(self._cluster, visible.index)
        visible.require_there(at)
        return row_pages(at, table, {"bool": {"filter": asked}}, left, names, order, limit, visible.runs)

    def sweep(self) -> int:
        """Delete the rows of generations that nobody sees and nobody will publish; see `Sweep`."""
        sweep = Sweep(self._cluster, self._names, self._shown, self._markers, self._alone, self._is_left)
        return sweep.sweep(self._tables.values(), self._untidy)

    def forget(self) -> None:
        """Nothing that was written and not published will be: let it be swept."""
        self._pending.clear()

    def _is_left(self, marker: Marker) -> bool:
        """True if nobody will publish a generation; of this process' own its open stores know."""
        if any(marker.number in results._pending for results in tuple(_OPEN)):
            return False
        return marker.writer == Process.current() or marker.is_left(self._clock())


_OPEN: weakref.WeakSet[Results] = weakref.WeakSet()
"""The open stores of this process, which know what they are about to publish."""


def _retired_months(changes: Sequence[Change]) -> list[tuple[Table, str]]:
    """The tables and months of which a publication takes days out of sight."""
    retired = [one for one in changes if isinstance(one, Retired) and is_monthly(one.table)]
    named = [(one.table, month_of(one.partition)) for one in retired]
    return [(table, month) for table, month in named if month is not None]


def _months(changes: Sequence[Change], table: Table) -> set[str]:
    """The months of a table in which a publication changes something."""
    partitions = [
        change.partition for change in changes if change.table == table and not isinstance(change, Pointed)
    ]
    return {month for month in map(month_of, partitions) if month is not None}


def _may_pass(table: Table, partition: str, where: Sequence[Filter]) -> bool:
    """Whether rows of a partition may pass the filters, as far as the partition is the day of its rows."""
    if not is_monthly(table):
        return True
    try:
        day = date.fromisoformat(partition)
    except ValueError:
        return True
    return all(
        item.first <= day <= item.last
        for item in where
        if isinstance(item, Days) and item.field == table.partition
    )


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
