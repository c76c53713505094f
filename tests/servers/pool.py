"""The servers that tests share: of each vendor, one at a time lives."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.servers.memory import in_memory
from tests.servers.missing import MissingToolError, skip_or_fail
from tests.servers.products import PRODUCTS, Product, Setting
from tests.servers.security import Security
from tests.servers.server import Server, ServerError


class Servers:
    """Shared servers by the name of their product, started when first asked for.

    Tests of one product share one server; a request for another version of the same vendor stops it, to save
    memory.
    """

    def __init__(self) -> None:
        self._known: dict[str, Server] = {}
        self._failed: dict[str, ServerError] = {}
        self._missing: dict[str, MissingToolError] = {}

    def running(self, name: str) -> Server:
        """The shared server of a product, running; skips the test, or fails it on CI, when a tool is missing.

        Raises ``ServerError`` when it does not start; asked again, at once.
        """
        if name in self._failed:
            raise self._failed[name]
        if name not in self._known:
            self._known[name] = self._make(PRODUCTS[name])
        server = self._known[name]
        self._stop_others(server)
        try:
            return server.start()
        except ServerError as error:
            self._failed[name] = error
            raise

    @contextmanager
    def of_its_own(
        self,
        name: str,
        *,
        nodes: int = 1,
        settings: Mapping[str, Setting] | None = None,
        security: Security | None = None,
    ) -> Iterator[Server]:
        """A server for one test, running, for what the shared one cannot do; gone at the end of the block.

        The shared one of the vendor stops and starts again, with its data, when the next test wants it.
        """
        server = self._make(PRODUCTS[name], nodes=nodes, settings=settings, security=security)
        self._stop_others(server)
        with server:
            yield server

    def wake(self, name: str) -> None:
        """Start a shared server again that another test stopped, so that a session's fixture stays usable."""
        if name in self._known:
            self.running(name)

    def close_others(self, product: Product | None) -> None:
        """Close every shared server but the one of this product."""
        for name, server in self._known.items():
            if product is None or name != product.name:
                server.close()

    def _make(
        self,
        product: Product,
        *,
        nodes: int = 1,
        settings: Mapping[str, Setting] | None = None,
        security: Security | None = None,
    ) -> Server:
        """A server that was not started; what was missing once is not looked for again."""
        try:
            if product.name in self._missing:
                raise self._missing[product.name]
            return Server(product, nodes=nodes, settings=settings, security=security, parent=in_memory())
        except MissingToolError as problem:
            self._missing[product.name] = problem
            skip_or_fail(problem)

    def _stop_others(self, but: Server) -> None:
        for server in self._known.values():
            if server is not but and server.product.vendor == but.product.vendor:
                server.stop()
