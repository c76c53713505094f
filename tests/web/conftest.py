"""The web over a demo, and over jobs whose names attack."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import esjobs
from esjobs.entry import load
from esjobs.web.app import Web
from esjobs.web.source import Source
from tests.web.client import Client

Opened = Callable[..., Client]


def settings_of(store: Path) -> esjobs.Settings:
    """Settings with a store."""
    return load(None, f"duckdb:{store}")


@pytest.fixture(scope="module")
def open_web() -> Iterator[Opened]:
    """A function that opens the web over a file."""
    with ExitStack() as stack:

        def opened(store: Path, *, public: bool = False) -> Client:
            source = Source(settings_of(store), hides_people=public)
            stack.callback(source.close)
            web = Web(source, public=public)
            return stack.enter_context(Client(web.application({"localhost"})))

        yield opened


@pytest.fixture(scope="module")
def store(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo's store."""
    folder = tmp_path_factory.mktemp("web")
    return Path(shutil.copy(demo_folder / "demo.duckdb", folder / "demo.duckdb"))


@pytest.fixture(scope="module")
def client(open_web: Opened, store: Path) -> Client:
    """The web over the demo."""
    return open_web(store)


@pytest.fixture(scope="module")
def public(open_web: Opened, store: Path) -> Client:
    """The web over the demo without people."""
    return open_web(store, public=True)
