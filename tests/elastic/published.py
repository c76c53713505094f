"""Nights that publish rows of tables of every kind, and what readers and the cluster have of them."""

from datetime import date, timedelta

from esjobs.core.tables import Table
from esjobs.schema.declared import COREPOWER
from esjobs.schema.flags import FLAG_NOTES
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.notifications import NOTIFICATIONS
from esjobs.schema.speed import FACTORS
from esjobs.store.base import Generation, PointLatest
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import table_batch, visible
from tests.elastic import publishing
from tests.servers.server import Server

HELD = publishing.HELD
FIRST = date(2026, 10, 27)


def opened(server: Server, prefix: str) -> ElasticStore:
    return ElasticStore(connect(Access(server.url)), f"{prefix}own", tables=HELD)


def written(store: ElasticStore, table: Table, partition: str, rows: int = 1) -> Generation:
    values = {table.partition: date.fromisoformat(partition) if "-" in partition else partition}
    return store.replace(table, partition, [table_batch(table, [values] * rows)])


def night(store: ElasticStore, number: int) -> None:
    """Everything that a night writes, published and swept; the first night is also made again."""
    day = str(FIRST + timedelta(days=number))
    made = [
        written(store, COREPOWER, f"import{number}"),
        written(store, FLAG_NOTES, f"note{number}"),
        written(store, NOTIFICATIONS, day),
        written(store, NOTIFICATIONS, str(FIRST), number + 1) if number else None,
        written(store, BUCKETS, day),
        written(store, FACTORS, f"run{number}"),
    ]
    store.publish([*filter(None, made), PointLatest(FACTORS, f"run{number}")])
    store.sweep()


def seen(store: ElasticStore) -> dict[str, int]:
    return {table.name: len(visible(store, table)) for table in HELD}


def stored(server: Server, names: Names) -> dict[str, int]:
    """The documents of each index."""
    found = server.json("GET", f"_resolve/index/{names.prefix}-*")["indices"]
    indices = [index["name"] for index in found if index["name"] != names.state]
    server.json("POST", f"{names.prefix}-*/_refresh")
    return {index: server.json("GET", f"{index}/_count")["count"] for index in indices}
