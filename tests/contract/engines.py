"""The engines that keep the store's promises, and what each of them cannot do yet or never will."""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import duckdb

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
class Engine:
    """A way to open a store.

    ``open``: the store kept at a place; opening the same place again finds what was written, if ``durable``.
    ``server``: the product whose server must run. ``rows``: jobs enough for a write to be in its middle.
    ``latest``: what others read of a table under its latest name, of a length if one is given; a function
    that may be called from another thread. None: there is no such name. ``gaps``: name of a test -> why this
    engine fails it; such a test must fail, or its entry goes.
    """

    name: str
    open: Callable[[Path], JobStore]
    latest: Callable[[JobStore, Path], Latest]
    durable: bool
    server: str | None = None
    rows: int = 130_000
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
        Engine("duckdb-memory", _memory, _views, durable=False),
        Engine("duckdb-file", _file, _views, durable=True),
        *(
            Engine(
                product,
                partial(_cluster, product),
                partial(_aliases, product),
                durable=True,
                server=product,
                rows=3000,
            )
            for product in PRODUCTS
        ),
    )
}
