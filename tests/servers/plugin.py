"""Fixtures and hooks of tests that need a real search server.

A test names what it needs by a fixture or by a marker:

- ``server``: runs once per product, with the running server that all tests of the product share;
- the same for some products only:
  ``@pytest.mark.parametrize("server", server_params("elasticsearch8"), indirect=True)``;
- ``index_prefix``: a prefix for the names of indices and templates, all of them removed after the test;
- ``servers`` and ``@pytest.mark.parametrize("name", server_params("elasticsearch8"))``: a server of its own,
  as a cluster or with users.

The tests of one vendor run one after the other in one process, version by version; no server idles beside
tests that need none. ``make test`` runs each test on one of the servers that it names, chosen by the name of
its function or file, so that all servers are in use; the others are marked ``matrix``, for ``make test-all``.
With the mark ``every_version`` it runs on one version of each vendor: what it asks is answered by the server,
not by what is ours above it. Likewise one of the embedded engines, in memory or in a file, is chosen.
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


def chosen_products(name: str, products: Sequence[str], *, each_vendor: bool) -> set[str]:
    """Return the products of ``make test`` for a test: one of all, or with ``each_vendor`` one of each."""
    by_vendor: dict[object, list[str]] = defaultdict(list)
    for product in products:
        by_vendor[PRODUCTS[product].vendor.name if each_vendor and product in PRODUCTS else ""].append(
            product
        )
    return {each[zlib.crc32(name.encode()) % len(each)] for each in by_vendor.values()}


@pytest.hookimpl(tryfirst=True, specname="pytest_collection_modifyitems")
def pytest_mark_repetitions(items: list[pytest.Item]) -> None:
    """Put what repeats a test on another server or engine into the matrix, before markers select."""
    repeated: dict[tuple[str, bool], list[tuple[str, pytest.Item]]] = defaultdict(list)
    for item in items:
        product, embedded = _product(item), _embedded(item)
        name = product.name if product is not None else embedded
        if name is not None and item.get_closest_marker("matrix") is None:
            repeated[item.nodeid.partition("[")[0], product is None].append((name, item))
    for (function, _), found in repeated.items():
        item = found[0][1]
        # what fills the indices of a server does so once a file
        name = function if _asks_engine(item) else str(item.path.name)
        each_vendor = asks_every_version(item)
        chosen = chosen_products(name, sorted({name for name, _ in found}), each_vendor=each_vendor)
        for product_name, item in found:
            if product_name not in chosen:
                item.add_marker(pytest.mark.matrix)


def asks_every_version(item: pytest.Item) -> bool:
    """True if a test has the mark, or is one of the shipped suites that says so without pytest."""
    marked = item.get_closest_marker("every_version") is not None
    return marked or getattr(getattr(item, "function", None), "every_version", False)


def _asks_engine(item: pytest.Item) -> bool:
    calls = getattr(item, "callspec", None)
    return calls is not None and not {"engine", "durable"}.isdisjoint(calls.params)


def _embedded(item: pytest.Item) -> str | None:
    """Return the embedded engine of a test of the contract; None of other tests."""
    calls = getattr(item, "callspec", None)
    engine = None if calls is None else calls.params.get("engine")
    return engine if isinstance(engine, str) and engine.startswith("duckdb-") else None


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
