"""Commands at once on a cluster, one request at a time in the order of a seed: nothing is lost."""

from collections.abc import Iterator

import pytest

from tests.races.commands import Place
from tests.races.rounds import Installation
from tests.servers.indices import remove_all
from tests.servers.plugin import server_params
from tests.servers.server import Server

ROUNDS = [
    (("ingest", "rebuild"), "mixed", 11),
    (("rebuild", "rebuild"), "stands still", 12),
    (("run", "undo"), "killed", 13),
    (("ingest", "corepower", "flag", "prune"), "mixed", 14),
]
"""Some of the rounds; ``benchmarks.races`` plays every pair in every mode."""

PREFIX = "races"

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)


@pytest.fixture(scope="module")
def installations(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, tuple[Server, Installation]]]:
    """By product, what its rounds are played on."""
    made: dict[str, tuple[Server, Installation]] = {}
    yield made
    for server, installation in made.values():
        installation.close()
        remove_all(server.start(), PREFIX)


@pytest.mark.slow
@pytest.mark.parametrize(("commands", "mode", "seed"), ROUNDS, ids=str)
def test_at_once(
    server: Server,
    installations: dict[str, tuple[Server, Installation]],
    tmp_path_factory: pytest.TempPathFactory,
    commands: tuple[str, ...],
    mode: str,
    seed: int,
) -> None:
    name = server.product.name
    if name not in installations:
        place = Place(server.url, PREFIX)
        installations[name] = server, Installation(place, tmp_path_factory.mktemp(name))
    assert installations[name][1].play(commands, mode, seed).faults == []
