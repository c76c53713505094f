"""The table of faults in `faults.md`: a row for each fault that a test makes."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

import pytest

from tests.servers.plugin import server_params
from tests.servers.products import PRODUCTS as KNOWN

PRODUCTS = ("elasticsearch8", "opensearch3")
SAME = "exactly the undisturbed result"
BEFORE = "one line, and what was there before"
LINE = "one line"


@dataclass(frozen=True)
class Row:
    """What was done to the cluster, what esjobs did, what users saw, and on which products that is tested."""

    done: str
    did: str
    saw: str
    products: tuple[str, ...] = PRODUCTS

    def __str__(self) -> str:
        titles = ", ".join(KNOWN[name].title for name in self.products)
        return f"| {self.done} | {self.did} | {self.saw} | {titles} |"


_ROWS: list[Row] = []


def scene(done: str, did: str, saw: str, *products: str, own: bool = False) -> pytest.MarkDecorator:
    """A test of a fault, on these products: gets the shared ``server``, or the ``name`` to make its own."""
    _ROWS.append(Row(done, did, saw, products or PRODUCTS))
    params = server_params(*(products or PRODUCTS))
    return pytest.mark.parametrize("name" if own else "server", params, indirect=not own)


def rows() -> Iterator[Row]:
    """All rows."""
    from tests.elastic.faults import FAULTS

    for module in ("test_lost_answers", "test_kills", "test_outages", "test_access"):
        import_module(f"tests.elastic.{module}")
    for fault in FAULTS:
        yield Row(fault.done, fault.did, fault.saw)
    yield from _ROWS
