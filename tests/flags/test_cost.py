"""What a night reads and writes does not grow with the nights before it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from esjobs.core.query import Filter, Query
from esjobs.core.tables import Table
from esjobs.publish.publication import count_rows
from esjobs.publish.retention import Keep, prune
from esjobs.schema.catalogue import KINDS, TABLES
from esjobs.schema.flags import FLAG_EVENTS, FLAG_HISTORY, FLAG_STATES
from esjobs.store.base import Aggregate, Change, Generation
from esjobs.store.duck.store import DuckStore
from tests.flags.verdict_nights import LONG, VerdictNights, verdict


class CountingStore(DuckStore):
    """Counts requests, and the rows that come and go."""

    def __init__(self) -> None:
        super().__init__(None, tables=TABLES)
        self.requests = self.rows_read = self.rows_written = 0

    def read(
        self, table: Table, where: Sequence[Filter] = (), columns: Sequence[str] = (), **options: Any
    ) -> Iterator[pa.RecordBatch]:
        self.requests += 1
        for batch in super().read(table, where, columns, **options):
            self.rows_read += batch.num_rows
            yield batch

    def aggregate(self, query: Query) -> Aggregate:
        self.requests += 1
        answer = super().aggregate(query)
        self.rows_read += answer.table.num_rows
        return answer

    def replace(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        listed = list(batches)
        self.rows_written += sum(batch.num_rows for batch in listed)
        return super().replace(table, partition, listed)

    def publish(self, changes: Sequence[Change], also: Callable[[], Sequence[Change]] | None = None) -> None:
        self.requests += 1
        super().publish(changes, also)


def cost_of(nights: VerdictNights, number: int) -> tuple[int, int, int]:
    """Requests, rows read, rows written of a night that was published."""
    store = nights.store
    assert isinstance(store, CountingStore)
    store.requests = store.rows_read = store.rows_written = 0
    nights.watch(number, replay_nights=12)
    return store.requests, store.rows_read, store.rows_written


def test_a_night_costs_the_same_however_many_were_before() -> None:
    store = CountingStore()
    nights = VerdictNights(store)
    rows = [verdict("A", -0.35), verdict("B", 0.0), *(verdict(f"C{n}", 0.01) for n in range(20))]
    costs = {}
    for number in range(46):
        nights.publish(number, rows, rows)
        costs[number] = cost_of(nights, number)
        prune(store, KINDS, Keep(daily=3 * LONG))
    # 13 nights are remembered from the 13th on, and runs kept from the 27th on
    assert costs[45] == costs[30]
    assert costs[45][0] <= 12
    assert sum(count_rows(store, table) for table in (FLAG_HISTORY, FLAG_STATES, FLAG_EVENTS)) <= 20
    store.close()
