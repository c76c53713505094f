"""The servers of the tests start, answer, survive and disappear."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.messages import raised
from tests.servers.indices import remove_all
from tests.servers.missing import MissingToolError, skip_or_fail
from tests.servers.plugin import server_params
from tests.servers.pool import Servers
from tests.servers.processes import alive, server_pids
from tests.servers.products import PRODUCTS
from tests.servers.security import Role, Security
from tests.servers.server import Server, ServerError

DOCUMENT = {"queue": "CERN-PROD", "cpu_s": 3600}
_GONE_S = 15.0

LAST = pytest.mark.parametrize("server", server_params("elasticsearch9", "opensearch2"), indirect=True)
"""One version of each vendor, whose few tests wait less for a server that is cold again; the kills of the
others are in ``tests/elastic``. Users and their rights are in ``test_access.py`` there."""


def put(server: Server, index: str, number: int) -> None:
    server.json("PUT", f"{index}/_doc/{number}?refresh=true", {**DOCUMENT, "number": number})


def count(server: Server, index: str) -> int:
    server.json("POST", f"{index}/_refresh")
    query = {"query": {"match": {"queue": "CERN-PROD"}}}
    found: int = server.json("POST", f"{index}/_count", query)["count"]
    return found


def test_it_is_the_version_that_it_should_be(server: Server) -> None:
    (node,) = server.json("GET", "_nodes/_local")["nodes"].values()
    assert node["version"] == server.product.version
    root = server.request("GET", "/")
    if server.product.answers_root:
        assert root.json["version"]["number"] == server.product.version
    else:
        assert root.status == 405


def test_a_document_is_found(server: Server, index_prefix: str) -> None:
    put(server, f"{index_prefix}jobs", 1)
    assert count(server, f"{index_prefix}jobs") == 1


def test_many_documents_arrive_by_one_request(server: Server, index_prefix: str) -> None:
    lines = '{"index": {}}\n{"queue": "CERN-PROD"}\n' * 100
    assert server.json("POST", f"{index_prefix}jobs/_bulk?refresh=true", lines)["errors"] is False
    assert count(server, f"{index_prefix}jobs") == 100


def test_a_test_removes_what_is_its_own(server: Server, index_prefix: str) -> None:
    mine, others = f"{index_prefix}mine-", f"{index_prefix}others-"
    for prefix in (mine, others):
        put(server, f"{prefix}jobs", 1)
        server.json("PUT", f"{prefix}jobs/_alias/{prefix}readers")
        server.json("PUT", f"_component_template/{prefix}part", {"template": {}})
        template = {"index_patterns": [f"{prefix}new-*"], "composed_of": [f"{prefix}part"]}
        server.json("PUT", f"_index_template/{prefix}jobs", template)
    remove_all(server, mine)
    left = server.json("GET", f"_resolve/index/{index_prefix}*?expand_wildcards=all")
    assert {entry["name"] for kind in left.values() for entry in kind} == {
        f"{others}jobs",
        f"{others}readers",
    }
    assert server.request("GET", f"_component_template/{mine}part").status == 404
    assert server.request("GET", f"_index_template/{mine}jobs").status == 404


@pytest.mark.matrix
@LAST
def test_documents_survive_a_kill(server: Server, index_prefix: str) -> None:
    put(server, f"{index_prefix}jobs", 1)
    url, processes = server.url, server_pids(server)
    server.kill()
    assert not server.running
    assert not alive(processes)
    server.start()
    assert server.url == url
    assert count(server, f"{index_prefix}jobs") == 1


@pytest.mark.parametrize("server", server_params("opensearch2"), indirect=True)
def test_documents_survive_a_restart(server: Server, index_prefix: str) -> None:
    put(server, f"{index_prefix}jobs", 1)
    assert count(server.restart(), f"{index_prefix}jobs") == 1


@LAST
def test_nothing_is_left_of_a_server(server: Server) -> None:
    processes = server_pids(server)
    assert len(alive(processes)) >= 2
    assert server.folder.is_dir()
    server.stop()
    assert not alive(processes)
    assert "closed" in server.nodes[0].log_tail()
    server.close()
    assert not server.folder.exists()


@pytest.mark.parametrize("name", server_params("opensearch2"))
def test_a_server_dies_with_the_process_that_started_it(name: str) -> None:
    program = (
        "import sys, time\n"
        "from tests.servers.processes import server_pids\n"
        "from tests.servers.products import PRODUCTS\n"
        "from tests.servers.server import Server\n"
        "server = Server(PRODUCTS[sys.argv[1]]).start()\n"
        "print(server.folder, *server_pids(server), flush=True)\n"
        "time.sleep(600)\n"
    )
    try:
        Server(PRODUCTS[name]).close()  # here a missing tool is noticed
    except MissingToolError as problem:
        skip_or_fail(problem)
    with subprocess.Popen(
        [sys.executable, "-c", program, name],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as parent:
        assert parent.stdout is not None
        folder, *pids = parent.stdout.readline().split()
        processes = {int(pid) for pid in pids}
        assert len(alive(processes)) >= 2
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + _GONE_S
    while (alive(processes) or Path(folder).exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(processes)
    assert not Path(folder).exists()


@pytest.mark.parametrize("name", server_params(matrix=("elasticsearch9",)))
def test_who_may_only_read_may_not_write(servers: Servers, name: str) -> None:
    security = Security(roles={"reader": Role({"jobs*": ["read"]})}, users={"reader": ["reader"]})
    with servers.of_its_own(name, security=security) as server:
        put(server, "jobs", 1)
        put(server, "secrets", 1)
        reader = security.login("reader")
        assert server.request("POST", "jobs/_search", login=reader).json["hits"]["total"]["value"] == 1
        assert server.request("PUT", "jobs/_doc/2", DOCUMENT, login=reader).status == 403
        assert server.request("POST", "secrets/_search", login=reader).status == 403
        assert server.request("GET", "_nodes/_local", login=reader).status == 403
        assert server.request("POST", "jobs/_search", login=("reader", "wrong")).status == 401


@pytest.mark.parametrize("name", server_params(matrix=("opensearch2",)))
def test_a_server_that_does_not_start_shows_its_log(servers: Servers, name: str) -> None:
    with (
        raised(ServerError) as caught,
        servers.of_its_own(name, settings={"no.such.setting": 1}),
    ):
        pytest.fail("it started")
    assert "unknown setting [no.such.setting]" in str(caught.value)


def test_security_is_refused_where_there_is_none() -> None:
    with pytest.raises(ValueError, match="OpenSearch 3 has no security"):
        Server(PRODUCTS["opensearch3"], security=Security({}, {}))
