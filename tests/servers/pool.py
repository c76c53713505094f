"""The servers that tests share: of each vendor, one at a time lives."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.servers.missing import MissingToolError, skip_or_fail
from tests.servers.products import PRODUCTS, Product, Setting, Vendor
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

    def running(self, name: str) -> Server:
        """The shared server of a product, running; skips the test, or fails it on CI, when a tool is missing.

        Raises ``ServerError`` when it does not start; asked again, at once.
        """
        product = PRODUCTS[name]
        if name in self._failed:
            raise self._failed[name]
        try:
            if name not in self._known:
                self._known[name] = Server(product)
            self._stop_others(product.vendor, self._known[name])
            return self._known[name].start()
        except MissingToolError as problem:
            skip_or_fail(problem)
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
        product = PRODUCTS[name]
        try:
            server = Server(product, nodes=nodes, settings=settings, security=security)
        except MissingToolError as problem:
            skip_or_fail(problem)
        self._stop_others(product.vendor, server)
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

    def _stop_others(self, vendor: Vendor, but: Server) -> None:
        for server in self._known.values():
            if server is not but and server.product.vendor == vendor:
                server.stop()
