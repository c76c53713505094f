"""The engines that keep the store's promises, and what each of them cannot do yet or never will."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from esjobs.store.base import JobStore
from esjobs.store.duck import DuckStore


@dataclass(frozen=True)
class Engine:
    """A way to open a store.

    ``open``: the store kept at a place; opening the same place again finds what was written, if ``durable``.
    ``gaps``: name of a test -> why this engine fails it; such a test must fail, or its entry goes.
    """

    name: str
    open: Callable[[Path], JobStore]
    durable: bool
    gaps: Mapping[str, str] = field(default_factory=dict)


def _memory(_: Path) -> JobStore:
    return DuckStore(None)


def _file(place: Path) -> JobStore:
    return DuckStore(place / "jobs.duckdb")


import hashlib

from esjobs.store.elastic.access import Access
from esjobs.store.elastic.elasticsearch_client import ElasticsearchCluster
from esjobs.store.elastic.opensearch_client import OpenSearchCluster
from esjobs.store.elastic.store import ElasticStore


def _prefix(place: Path) -> str:
    return "t" + hashlib.sha1(str(place).encode()).hexdigest()[:12]


def _es(place: Path) -> JobStore:
    return ElasticStore(ElasticsearchCluster(Access("http://127.0.0.1:9208")), _prefix(place))


def _os(place: Path) -> JobStore:
    return ElasticStore(OpenSearchCluster(Access("http://127.0.0.1:9203")), _prefix(place))


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("duckdb-memory", _memory, durable=False),
        Engine("duckdb-file", _file, durable=True),
        Engine("es", _es, durable=True),
        Engine("os", _os, durable=True),
    )
}
