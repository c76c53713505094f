"""Store under test: how it is opened, and what may be expected of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from esjobs.store.base import JobStore

Test = TypeVar("Test", bound=Callable[..., object])


@dataclass(frozen=True)
class Engine:
    """A way to open a store.

    ``open``: the store kept in a folder; opening the same folder again finds what was written, if
    ``durable``. ``rows``: jobs enough for a write to be in its middle.
    """

    name: str
    open: Callable[[Path], JobStore]
    durable: bool = True
    rows: int = 3000


def every_version(test: Test) -> Test:
    """Mark a test of answers of a server itself, to be run on each version of the server."""
    # read by the project's own tests, which run servers of several versions
    test.every_version = True  # type: ignore[attr-defined]
    return test
