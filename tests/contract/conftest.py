"""One fixture, every engine: a contract test names what it needs and runs once per engine."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from esjobs.store.base import JobStore
from tests.contract.engines import ENGINES, PREFIX, Engine, variable
from tests.servers.indices import remove_all
from tests.servers.plugin import asks_every_version, server_params

_ONE_OF_EACH_VENDOR = {"elasticsearch8", "opensearch3"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every engine for each test; of each vendor one version, with the mark ``every_version`` all of them.

    Versions differ in what they answer to queries and mappings: tests about these have the mark. What is
    built upon the answers (loads, publication, leases) is ours and alike. Of these engines ``make test`` runs
    some, see :mod:`tests.servers.plugin`.
    """
    for name, durable in (("engine", False), ("durable", True)):
        if name in metafunc.fixturenames:
            every = asks_every_version(metafunc.definition)
            metafunc.parametrize(name, _params(durable=durable, every=every), indirect=True)


def _params(*, durable: bool, every: bool) -> list[Any]:
    chosen = [
        engine
        for engine in ENGINES.values()
        if (engine.durable or not durable) and (every or engine.server in {None, *_ONE_OF_EACH_VENDOR})
    ]
    embedded = [engine.name for engine in chosen if engine.server is None]
    servers = [engine.server for engine in chosen if engine.server is not None]
    return embedded + (server_params(*servers) if servers else [])


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine; a test that it is known to fail must fail."""
    yield from _graded(request)


@pytest.fixture
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
