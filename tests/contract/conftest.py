"""One fixture, every engine: a contract test names what it needs and runs once per engine."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from esjobs.store.base import JobStore
from tests.contract.engines import ENGINES, PREFIX, Engine, variable
from tests.servers.indices import remove_all
from tests.servers.plugin import server_params


def _params(*, durable: bool = False) -> list[Any]:
    chosen = [engine for engine in ENGINES.values() if engine.durable or not durable]
    embedded = [engine.name for engine in chosen if engine.server is None]
    return embedded + server_params(*(engine.server for engine in chosen if engine.server is not None))


@pytest.fixture(params=_params())
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine; a test that it is known to fail must fail."""
    yield from _graded(request)


@pytest.fixture(params=_params(durable=True))
def durable(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine that keeps what is written after it is closed."""
    yield from _graded(request)


def _graded(request: pytest.FixtureRequest) -> Iterator[Engine]:
    found = ENGINES[request.param]
    reason = found.gaps.get(request.node.originalname)
    if reason is not None:
        request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    if found.server is None:
        yield found
        return
    server = request.getfixturevalue("servers").running(found.server)
    os.environ[variable(found.server)] = server.url
    yield found
    remove_all(server.start(), PREFIX)


@pytest.fixture
def store(engine: Engine, tmp_path: Path) -> Iterator[JobStore]:
    """An empty store of the engine."""
    opened = engine.open(tmp_path)
    yield opened
    opened.close()
