"""The engines that keep the store's promises, and what each of them cannot do yet or never will."""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import duckdb

from esjobs import testing
from esjobs.core.tables import Table
from esjobs.schema.catalogue import TABLES
from esjobs.store.base import JobStore
from esjobs.store.duck.schema import latest_name
from esjobs.store.duck.store import DuckStore
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import ask
from esjobs.store.elastic.transport.connect import connect
from tests.contract.made_up import MADE_UP, NOTES, READINGS, WEATHER
from tests.servers.products import PRODUCTS

HELD = (*TABLES, MADE_UP, READINGS, WEATHER, NOTES)
"""The result tables of the stores under test."""

PREFIX = "contract-"
"""What the names of all indices of these tests begin with."""


Latest = Callable[[Table, str], list[str] | None]
"""Gives the names that the rows of a table have."""


@dataclass(frozen=True)
class Engine(testing.Engine):
    """A way to open a store.

    ``server``: the product whose server must run. ``latest``: what others read of a table under its latest
    name, of a length if one is given; a function that may be called from another thread. None: there is no
    such name. ``gaps``: name of a test -> why this engine fails it; such a test must fail, or its entry goes.
    """

    latest: Callable[[JobStore, Path], Latest] = field(kw_only=True)
    server: str | None = None
    gaps: Mapping[str, str] = field(default_factory=dict)


def variable(product: str) -> str:
    """The environment variable that tells where the server of a product is, to other processes too."""
    return f"TEST_SERVER_{product.upper()}"


def _views(store: JobStore, _: Path) -> Latest:
    def read(table: Table, length: str) -> list[str] | None:
        # a file is made by the first write, so that a cursor of before it would see another database
        cursor = store._connection._open().cursor()  # type: ignore[attr-defined]
        try:
            found = cursor.table(latest_name(table, length)).project("name").fetchall()
        except duckdb.CatalogException:
            return None
        return sorted(name for (name,) in found)

    return read


def _aliases(product: str, _: JobStore, place: Path) -> Latest:
    cluster = connect(Access(os.environ[variable(product)]))

    def read(table: Table, length: str) -> list[str] | None:
        alias = Names(_prefix(place)).latest(table, length)
        found = ask(cluster, f"/{alias}/_search", params={"size": "1000"})
        return found and sorted(hit["_source"]["name"] for hit in found["hits"]["hits"])

    return read


def _memory(_: Path) -> JobStore:
    return DuckStore(None, tables=HELD)


def _file(place: Path) -> JobStore:
    return DuckStore(place / "jobs.duckdb", tables=HELD)


def _cluster(product: str, place: Path) -> JobStore:
    """A store under a prefix of its own; a place stands for a prefix."""
    cluster = connect(Access(os.environ[variable(product)]))
    return ElasticStore(cluster, _prefix(place), tables=HELD)


def _prefix(place: Path) -> str:
    return f"{PREFIX}{hashlib.sha256(str(place).encode()).hexdigest()[:12]}"


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("duckdb-memory", _memory, durable=False, rows=130_000, latest=_views),
        Engine("duckdb-file", _file, rows=130_000, latest=_views),
        *(
            Engine(
                product,
                partial(_cluster, product),
                latest=partial(_aliases, product),
                server=product,
            )
            for product in PRODUCTS
        ),
    )
}
