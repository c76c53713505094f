"""Servers and stores that tests of notifications share."""

from collections.abc import Iterator

import pytest

from esjobs.schema import flags
from esjobs.schema.decomposition import DECOMPOSITION
from esjobs.schema.drift import DRIFTS
from esjobs.schema.nights import NIGHT_STEPS, NIGHTS
from esjobs.schema.notifications import NOTIFICATIONS
from esjobs.schema.speed import FLAGS, LINES
from esjobs.store.duck.store import DuckStore
from tests.scheduler.notifications.servers import Listener, MailServer, listener, mail_server
from tests.servers.certificates import Authority

TABLES = (NOTIFICATIONS, DRIFTS, DECOMPOSITION, NIGHTS, NIGHT_STEPS, FLAGS, LINES, *flags.TABLES)
"""What the step reads and writes."""


@pytest.fixture
def store() -> Iterator[DuckStore]:
    """An empty store in memory."""
    opened = DuckStore(None, tables=TABLES)
    yield opened
    opened.close()


@pytest.fixture
def server() -> Iterator[MailServer]:
    """A mail server that takes everything from everybody."""
    with mail_server() as running:
        yield running


@pytest.fixture
def hook() -> Iterator[Listener]:
    """A listener without TLS."""
    with listener() as running:
        yield running


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Certificates for this machine."""
    return Authority.at(tmp_path_factory.mktemp("authority") / "ca")
