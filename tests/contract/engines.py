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


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("duckdb-memory", _memory, durable=False),
        Engine("duckdb-file", _file, durable=True),
    )
}
