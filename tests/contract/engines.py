"""The engines that keep the store's promises, and what each of them cannot do yet or never will."""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from esjobs.capabilities import TABLES
from esjobs.store.base import JobStore
from esjobs.store.duck.store import DuckStore
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.made_up import MADE_UP, NOTES, READINGS, WEATHER
from tests.servers.products import PRODUCTS

HELD = (*TABLES, MADE_UP, READINGS, WEATHER, NOTES)
"""The result tables of the stores under test."""

PREFIX = "contract-"
"""What the names of all indices of these tests begin with."""


@dataclass(frozen=True)
class Engine:
    """A way to open a store.

    ``open``: the store kept at a place; opening the same place again finds what was written, if ``durable``.
    ``server``: the product whose server must run. ``rows``: jobs enough for a write to be in its middle.
    ``gaps``: name of a test -> why this engine fails it; such a test must fail, or its entry goes.
    """

    name: str
    open: Callable[[Path], JobStore]
    durable: bool
    server: str | None = None
    rows: int = 130_000
    gaps: Mapping[str, str] = field(default_factory=dict)


def variable(product: str) -> str:
    """The environment variable that tells where the server of a product is, to other processes too."""
    return f"TEST_SERVER_{product.upper()}"


def _memory(_: Path) -> JobStore:
    return DuckStore(None, tables=HELD)


def _file(place: Path) -> JobStore:
    return DuckStore(place / "jobs.duckdb", tables=HELD)


def _cluster(product: str, place: Path) -> JobStore:
    """A store under a prefix of its own; a place stands for a prefix."""
    digest = hashlib.sha256(str(place).encode()).hexdigest()[:12]
    cluster = connect(Access(os.environ[variable(product)]))
    return ElasticStore(cluster, f"{PREFIX}{digest}", tables=HELD)


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("duckdb-memory", _memory, durable=False),
        Engine("duckdb-file", _file, durable=True),
        *(
            Engine(product, partial(_cluster, product), durable=True, server=product, rows=3000)
            for product in PRODUCTS
        ),
    )
}
