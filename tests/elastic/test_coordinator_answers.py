"""The questions of coordinators, asked of a cluster: the rows of the embedded store with the same demo."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from esjobs.api.session import Session
from tests.elastic.demos import Both, demo_in_both
from tests.servers.plugin import server_params
from tests.servers.pool import Servers
from tests.test_questions import QUESTIONS, Asked, add_tables

pytestmark = pytest.mark.slow
EVERY_NODE: Callable[[Session], Any] = lambda session: session.errors.nodes(every=True)  # noqa: E731


@pytest.fixture(scope="module", params=server_params("elasticsearch8", "opensearch3"))
def both(
    request: pytest.FixtureRequest,
    servers: Servers,
    demo_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Both]:
    """The demo in DuckDB and in a cluster, each run for itself, with what the questions need beside jobs."""
    folder = tmp_path_factory.mktemp("answers")
    with demo_in_both(servers.running(request.param), folder, "answers", jobs=20_000) as sessions:
        for session in sessions:
            add_tables(session, demo_folder / "corepower.csv", folder)
        yield sessions


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_cluster_answers_as_the_embedded_store(question: Asked, both: Both) -> None:
    # so few jobs show no failing node: all of them are compared
    ask = EVERY_NODE if question.name == "black-hole nodes" else question.ask
    rows, others = (ask(session).rows.to_pylist() for session in both)
    assert len(rows) == len(others) > 0
    for row, other in zip(rows, others, strict=True):
        assert row.keys() == other.keys()
        for name, value in row.items():
            assert same(value, other[name]), (name, value, other[name], row)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (
            math.isnan(one) and math.isnan(other)
        )
    return bool(one == other)
