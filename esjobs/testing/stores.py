"""Contract of stores; the fixture ``engine`` says how one is opened (:mod:`esjobs.testing`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from esjobs.store.base import JobStore
from esjobs.testing.aggregates import *
from esjobs.testing.engine import Engine
from esjobs.testing.filters import *
from esjobs.testing.lifecycle import *
from esjobs.testing.loads import *
from esjobs.testing.results import *


@pytest.fixture
def store(engine: Engine, tmp_path: Path) -> Iterator[JobStore]:
    """An empty store."""
    opened = engine.open(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def durable(engine: Engine) -> Engine:
    """An engine that keeps what is written after it is closed; other ones skip the test."""
    if not engine.durable:
        pytest.skip("the store keeps nothing after it is closed")
    return engine
