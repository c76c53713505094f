"""A cluster that loses its master, and one whose disk is full."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from esjobs.core.errors import BlockedError, EsjobsError
from tests.elastic.faults import FACTORS, writes_jobs
from tests.elastic.stage import Stage, act, assert_after, assert_before, opened, visible
from tests.elastic.table import BEFORE, SAME, scene
from tests.messages import raised
from tests.servers.pool import Servers
from tests.servers.proxy import Proxy, first
from tests.servers.server import Server


# a node that is lost is below, a cluster that answers 503 in ``faults.py``
@pytest.mark.matrix
@scene(
    "`kill -9` of the master of three nodes under a bulk request of jobs",
    "waited for the next master, went on with the two that are left",
    SAME,
    "elasticsearch8",
    own=True,
)
def test_a_master_is_lost(servers: Servers, name: str, tmp_path: Path) -> None:
    with servers.of_its_own(name, nodes=3) as cluster:
        stage = Stage("faults", tmp_path)
        stage.begin(cluster.url)
        master = cluster.master()
        other = next(node for node in cluster.nodes if node is not master)
        file = stage.next_file()
        with Proxy(other.url) as proxy, opened(proxy.url, stage.prefix, retries=5) as session:
            lost = proxy.on(writes_jobs, first(lambda _: cluster.kill(master)))
            for step in ("ingest", "run"):
                act(session, step, file)
                act(stage.embedded, step, file)
            assert lost.hits == 1
            assert not master.running
            assert cluster.master() is not master
            assert_after(session, stage.expected(), reported=True)
        assert cluster.start().running


@scene(
    "`kill -9` of the first of three addresses (`cluster.addresses`) in the middle of a load",
    "sent this request and all others to the next address",
    SAME,
    "elasticsearch8",
    own=True,
)
def test_a_node_with_an_address_is_lost(servers: Servers, name: str, tmp_path: Path) -> None:
    with servers.of_its_own(name, nodes=3) as cluster:
        stage = Stage("faults", tmp_path)
        stage.begin(cluster.url)
        master = cluster.master()
        first_node = next(node for node in cluster.nodes if node is not master)
        others = tuple(node.url for node in cluster.nodes if node is not first_node)
        file = stage.next_file()
        with Proxy(first_node.url) as proxy, opened(proxy.url, stage.prefix, addresses=others) as session:
            lost = proxy.on(lambda _: True, first(lambda _: cluster.kill(first_node)), skip=10)
            act(session, "ingest", file)
            assert lost.hits == 1
            act(session, "run", file)
            for step in ("ingest", "run"):
                act(stage.embedded, step, file)
            assert not first_node.running
            assert_after(session, stage.expected(), reported=True)


@pytest.fixture
def rare_looks_at_the_disk(server: Server) -> Iterator[None]:
    """The cluster, which would find the disk empty and lift the block by itself, does not look."""

    def look(every: str | None) -> None:
        server.json("PUT", "_cluster/settings", {"persistent": {"cluster.info.update.interval": every}})

    look("1d")
    yield
    look(None)


@scene(
    "a disk above the flood stage under a bulk request, and after it: `index.blocks.read_only_allow_delete`",
    "gave up at once, went on when the block was lifted",
    BEFORE,
)
def test_a_disk_is_full(server: Server, rare_looks_at_the_disk: None, stage: Stage) -> None:
    def block(on: bool | None) -> None:
        server.json("PUT", f"{stage.prefix}-*/_settings", {"index.blocks.read_only_allow_delete": on})

    file = stage.next_file()
    before = stage.expected()
    with Proxy(server.url) as proxy, opened(proxy.url, stage.prefix) as session:
        for step, when in (("ingest", writes_jobs), ("run", FACTORS)):
            act(stage.embedded, step, file)
            after = stage.expected()
            filled = proxy.on(when, first(lambda _: block(True)))
            for again in (False, True):
                if again:
                    # a look at the disk that was due before the setting may have lifted it meanwhile
                    block(True)
                with raised(EsjobsError) as caught:
                    act(session, step, file)
                assert isinstance(caught.value, BlockedError)
                assert_before(visible(session), before, after)
            assert filled.hits == 1
            block(None)
            act(session, step, file)
            assert_after(session, after, reported=False)
            before = after
    stage.spoilt = False
