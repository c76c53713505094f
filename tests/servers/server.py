"""A real search server on this machine, of one node or of several, that leaves nothing behind."""

import atexit
import http.client
import random
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.servers import security as security_files
from tests.servers.account import server_account
from tests.servers.fetch import unpacked
from tests.servers.java import java_home
from tests.servers.node import QUICK_START, Node, Program
from tests.servers.products import Product, Setting
from tests.servers.rest import Answer, Body, Login, call
from tests.servers.security import Security

HEAP_MB = 512
HEAP_OF_MANY_MB = 384
_START_TIMEOUT_S = 180.0
_POLL_S = 0.1
_PORTS = range(20_000, 32_768)
"""Below the ports of outgoing connections, which could otherwise take one while its server is down."""


class ServerError(Exception):
    """A server did not start, or ended by itself; the message ends with its log."""


class Server:
    """A server with data of its own. Ports and data outlive ``stop`` and ``kill``.

    ``nodes``: how many processes; several form a cluster. 0.74 GB of memory for one, 0.6 GB each for several.
    ``settings``: added to the settings of each node, or instead of ours.
    ``security``: users and roles; without it everybody may do everything.
    ``heap_mb``: of each node; None: enough for tests. ``java_options``: for the JVM; the default starts
    quickly and is slow afterwards. ``parent``: where its folder is made; None: among temporary files.

    Raises ``MissingToolError`` without Maven or a suitable JDK, ``ValueError`` for security where there is
    none.
    """

    def __init__(
        self,
        product: Product,
        *,
        nodes: int = 1,
        settings: Mapping[str, Setting] | None = None,
        security: Security | None = None,
        heap_mb: int | None = None,
        java_options: Sequence[str] = QUICK_START,
        parent: Path | None = None,
    ) -> None:
        if security is not None and not product.has_security:
            raise ValueError(f"the minimal distribution of {product.title} has no security")
        account = server_account()
        program = Program(product, unpacked(product, account), java_home(product, account), account)
        self.product = product
        self.security = security
        self.folder = Path(tempfile.mkdtemp(prefix=f"esjobs-{product.name}-", dir=parent))
        atexit.register(self.close)
        self.nodes = tuple(
            Node(
                program,
                self.folder / f"node-{number}",
                {**_settings(product, security), **ports, **(settings or {})},
                heap_mb or (HEAP_MB if nodes == 1 else HEAP_OF_MANY_MB),
                guarded=self.folder,
                java_options=java_options,
            )
            for number, ports in enumerate(_ports(nodes))
        )

    @property
    def url(self) -> str:
        """Where the first node that lives answers."""
        return next((node.url for node in self.nodes if node.running), self.nodes[0].url)

    @property
    def urls(self) -> list[str]:
        """Where the nodes answer, those that are down included."""
        return [node.url for node in self.nodes]

    @property
    def running(self) -> bool:
        """Whether every process lives."""
        return all(node.running for node in self.nodes)

    def start(self) -> Self:
        """Start what does not run and wait until all nodes answer as one and have their data: 5 to 30 s.

        Raises ``ServerError`` with the end of the log when it ends by itself or takes more than 3 minutes.
        """
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o711)
        for node in self.nodes:
            if not node.folder.exists():
                node.prepare(self.security)
            node.start()
        self._wait_until_ready()
        return self

    def stop(self) -> None:
        """End all processes gracefully."""
        for node in self.nodes:
            node.stop()

    def kill(self, node: Node | None = None) -> None:
        """End one process, or all, with signal 9."""
        for victim in self.nodes if node is None else (node,):
            victim.kill()

    def restart(self) -> Self:
        """Stop and start on the same ports with the same data."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Kill what runs and remove the folder; a later start begins without data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except ServerError:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(
        self, method: str, path: str, body: Body = None, *, login: Login = None, timeout_s: float = 30.0
    ) -> Answer:
        """Send a request to the first living node; as admin, if no login is given and security is on."""
        if login is None and self.security is not None:
            login = self.security.login()
        return call(method, self.url, path, body, login=login, timeout_s=timeout_s)

    def json(self, method: str, path: str, body: Body = None) -> Any:
        """The body of the answer to a request that must succeed.

        Raises ``ServerError`` with the answer for a status of 400 or more.
        """
        answer = self.request(method, path, body)
        if answer.status >= 400:
            raise ServerError(f"{method} {path}: {answer.status} {answer.json}")
        return answer.json

    def master(self) -> Node:
        """The node that the cluster elected."""
        rows = self.json("GET", "_cat/nodes?h=name,m&format=json")
        name = next(row["name"] for row in rows if row["m"] == "*")
        return next(node for node in self.nodes if node.name == name)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        health = "_cluster/health?wait_for_status=yellow&wait_for_no_initializing_shards=true&timeout=1s"
        path = f"{health}&wait_for_nodes={len(self.nodes)}"
        last = "nothing"
        while time.monotonic() < deadline:
            for node in self.nodes:
                if not node.running:
                    self._fail(node, "ended while it started")
            try:
                answers = [call("GET", url, path, login=self._admin()) for url in self.urls]
                if all(answer.status == 200 for answer in answers):
                    return
                last = str(answers)
            except (OSError, http.client.HTTPException) as error:
                last = str(error)
            time.sleep(_POLL_S)
        self._fail(self.nodes[0], f"was not ready in {_START_TIMEOUT_S:.0f} s, last answer: {last}")

    def _admin(self) -> Login:
        return None if self.security is None else self.security.login()

    def _fail(self, node: Node, what: str) -> None:
        tail = node.log_tail()
        self.kill()
        raise ServerError(
            f"{self.product.title} {self.product.version} {what} (node {node.name}, JDK"
            f" {node.program.java_home}); the end of its log:\n{tail}"
        )


def _settings(product: Product, security: Security | None) -> dict[str, Setting]:
    return {
        "cluster.name": f"esjobs-{product.name}",
        "network.host": "127.0.0.1",
        # a disk that is nearly full is nothing that a test should notice
        "cluster.routing.allocation.disk.threshold_enabled": False,
        **(product.settings if security is None else security_files.SETTINGS),
    }


def _ports(nodes: int) -> list[dict[str, Setting]]:
    """Ports of each node, and how the nodes find each other."""
    free = _free_ports(2 * nodes)
    http_ports, transport_ports = free[:nodes], free[nodes:]
    discovery: dict[str, Setting] = {"discovery.type": "single-node"}
    if nodes > 1:
        discovery = {
            "discovery.seed_hosts": [f"127.0.0.1:{port}" for port in transport_ports],
            "cluster.initial_master_nodes": [f"node-{number}" for number in range(nodes)],
        }
    return [
        {"http.port": http_port, "transport.port": transport_port, **discovery}
        for http_port, transport_port in zip(http_ports, transport_ports, strict=True)
    ]


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, at random, so that two runs of the tests do not pick the same."""
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = random.SystemRandom().choice(_PORTS)
            candidate = held.enter_context(socket.socket())
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found
