"""A store with a published run that the scenes of a product share as long as each ends well, and more."""

from typing import Any

import pytest

from esjobs.core.query import Query
from esjobs.store.elastic.asking import aggregation, reading
from esjobs.store.elastic.asking.clauses import EVERY
from tests.elastic.stage import Stage
from tests.servers.server import Server


@pytest.fixture(scope="session")
def stages() -> dict[str, Stage]:
    """By product."""
    return {}


@pytest.fixture
def stage(server: Server, stages: dict[str, Stage], tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """What is in the cluster and what should be. A scene that ends well says that it is not spoilt."""
    name = server.product.name
    found = stages.get(name)
    if found is None or found.spoilt:
        folder = tmp_path_factory.mktemp("stage")
        found = Stage(f"faults-{folder.name}", folder)
        found.begin(server.url)
        stages[name] = found
    found.spoilt = True
    return found


@pytest.fixture
def whole_reads(monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    """The questions for which every document was read."""
    found: list[Query] = []
    inner = reading.documents_of

    def noted(unread: Any, query: Query) -> Any:
        if any(some.clause == EVERY for some in unread):
            found.append(query)
        return inner(unread, query)

    monkeypatch.setattr(aggregation, "documents_of", noted)
    return found
