"""Fixtures and hooks of tests that need a real search server.

A test names what it needs by a fixture or by a marker:

- ``server``: runs once per product, with the running server that all tests of the product share;
- the same for some products only:
  ``@pytest.mark.parametrize("server", server_params("elasticsearch8"), indirect=True)``;
- ``index_prefix``: a prefix for the names of indices and templates, all of them removed after the test;
- ``servers`` and ``@pytest.mark.parametrize("name", server_params("elasticsearch8"))``: a server of its own,
  as a cluster or with users.

The tests of one vendor run one after the other in one process, version by version; no server idles beside
tests that need none. Tests with the mark ``matrix`` repeat on further versions what runs on one version of
each vendor: ``make test-all`` runs them. Tests with the mark ``one_vendor`` are about what is ours above the
answers of a server: of all servers that they name, one is chosen by their name, the others are of the matrix.
"""

import uuid
import zlib
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import pytest

from tests.servers.indices import remove_all
from tests.servers.pool import Servers
from tests.servers.products import PRODUCTS, Product
from tests.servers.server import Server
from tests.servers.vendors import vendor_of

_POOL = pytest.StashKey[Servers]()
_FIRST_OF_VENDORS = ("elasticsearch8", "opensearch3")


def server_params(*names: str, matrix: tuple[str, ...] = ()) -> list[Any]:
    """Return parameters, marked for the product they name, for a fixture or a test.

    Without names, all products. Tests of the products in ``matrix`` run with ``make test-all`` only.
    """
    return [
        pytest.param(
            name, marks=[pytest.mark.server(name), *([pytest.mark.matrix] * (name in matrix))], id=name
        )
        for name in ((names or tuple(PRODUCTS)) if not matrix else (*names, *matrix))
    ]


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """All shared servers, and the way to one of a test's own."""
    pool = _pool(request.config)
    yield pool
    pool.close_others(None)


@pytest.fixture(scope="session", params=server_params())
def server(request: pytest.FixtureRequest, servers: Servers) -> Server:
    """The shared server of each product in turn, running."""
    return servers.running(request.param)


@pytest.fixture
def index_prefix(server: Server) -> Iterator[str]:
    """The beginning of the names that a test may give to indices and templates; removed afterwards."""
    prefix = f"test-{uuid.uuid4().hex[:12]}-"
    yield prefix
    remove_all(server.start(), prefix)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep the tests of a vendor together in one process; their names have to tell the product."""
    product = _product(item)
    if product is None:
        return
    if vendor_of(item.nodeid) != product.vendor.name:
        raise pytest.UsageError(f"{item.nodeid}: mark it by a parameter, server_params({product.name!r})")
    if item.config.pluginmanager.hasplugin("xdist"):
        item.add_marker(pytest.mark.xdist_group(product.vendor.name))


def chosen_product(function: str, products: Sequence[str]) -> str:
    """Return the product for a test of one vendor; every second function has that of the other vendor."""
    names = [name for name in _FIRST_OF_VENDORS if name in products] or products
    return names[zlib.crc32(function.encode()) % len(names)]


@pytest.hookimpl(tryfirst=True, specname="pytest_collection_modifyitems")
def pytest_mark_repetitions(items: list[pytest.Item]) -> None:
    """Put tests of one vendor into the matrix, but for one product each, before markers select."""
    by_function: dict[str, list[tuple[str, pytest.Item]]] = defaultdict(list)
    for item in items:
        product = _product(item)
        if product is not None and item.get_closest_marker("one_vendor"):
            by_function[item.nodeid.partition("[")[0]].append((product.name, item))
    for function, found in by_function.items():
        chosen = chosen_product(function, [name for name, _ in found])
        for name, item in found:
            if name != chosen:
                item.add_marker(pytest.mark.matrix)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Distribute by vendor where groups are asked for."""
    if config.getoption("dist") != "loadgroup":
        return None
    from tests.servers.scheduler import VendorScheduling

    return VendorScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests of one version side by side.

    Tests without a server come first, as the fastest to fail. Then each of several processes takes a vendor;
    files with tests marked ``slow`` come last and fill the time of the process that is done first.
    """
    items.sort(key=_visit)
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if _product(item) is None and item.get_closest_marker("slow")}
        items.sort(key=lambda item: _product(item) is None and item.path in slow)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start the shared server again if a test before this one stopped it."""
    product = _product(item)
    if product is not None and "server" in getattr(item, "fixturenames", ()):
        _pool(item.config).wake(product.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Close the shared server when the next test does not need it."""
    try:
        return (yield)
    finally:
        if _product(item) is not None:
            _pool(item.config).close_others(_product(nextitem) if nextitem is not None else None)


def _pool(config: pytest.Config) -> Servers:
    return config.stash.setdefault(_POOL, Servers())


def _product(item: pytest.Item) -> Product | None:
    marker = item.get_closest_marker("server")
    return None if marker is None else PRODUCTS[marker.args[0]]


def _visit(item: pytest.Item) -> tuple[int, bool]:
    """When an item comes: those without server first, then by product, the shared server before others."""
    product = _product(item)
    if product is None:
        return -1, False
    return list(PRODUCTS).index(product.name), "server" not in getattr(item, "fixturenames", ())
