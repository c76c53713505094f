"""One fixture, every engine: a contract test names what it needs and runs once per engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from esjobs.store.base import JobStore
from tests.contract.engines import ENGINES, Engine


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Engine:
    """An engine; a test that it is known to fail must fail."""
    return _graded(request)


@pytest.fixture(params=[name for name, engine in ENGINES.items() if engine.durable])
def durable(request: pytest.FixtureRequest) -> Engine:
    """An engine that keeps what is written after it is closed."""
    return _graded(request)


def _graded(request: pytest.FixtureRequest) -> Engine:
    found = ENGINES[request.param]
    reason = found.gaps.get(request.node.originalname)
    if reason is not None:
        request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    return found


@pytest.fixture
def store(engine: Engine, tmp_path: Path) -> Iterator[JobStore]:
    """An empty store of the engine."""
    opened = engine.open(tmp_path)
    yield opened
    opened.close()
