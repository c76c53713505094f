"""What tests of several rooms share: real data, an open session, a fixed clock."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.cli.demo import demonstrate
from esjobs.core import redact

pytest_plugins = ["tests.durations", "tests.messages", "tests.servers.plugin"]

# on a busy machine the first example alone may take seconds
settings.register_profile(
    "esjobs", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
# of ``make test-all``
settings.register_profile("thorough", parent=settings.get_profile("esjobs"), max_examples=200)
settings.load_profile("esjobs")

SHARED_DATA = Path(__file__).parents[1].parent / "shared" / "data"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the checkout."""
    if SHARED_DATA.is_dir():
        return SHARED_DATA
    message = "the real data sets are missing: put them into ../shared/data beside the checkout"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def panda_files(shared_data: Path) -> list[Path]:
    """The four PanDA tasks, smallest ids first."""
    return sorted((shared_data / "panda-jobs").glob("job_records_*.csv.gz"))


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one demo for all tests: ``demo.duckdb``, ``jobs.parquet``. Write to copies only.

    The first process of pytest-xdist that needs it builds it; the store is then only opened for reading.
    """
    return built_once(tmp_path_factory, "demo", lambda folder: demonstrate(folder, jobs=60_000, seed=3))


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """Return a folder that one process of a run fills and all others of the run read."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / f"shared-{name}"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = shared / f"unfinished-{name}"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            build(unfinished)
            unfinished.rename(folder)
    return folder


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads the user's environment or writes into the user's folders."""
    for name in [name for name in os.environ if name.startswith("ESJOBS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data-home"))


@pytest.fixture(autouse=True)
def no_secrets_of_other_tests() -> Iterator[None]:
    """No test hides what another one has used."""
    yield
    redact.forget()


@pytest.fixture
def session() -> Iterator[Session]:
    """A session over an empty store in memory."""
    with memory_session() as opened:
        yield opened


def with_settings(session: Session, settings: Settings) -> Session:
    """Another session over the same store, at the same time."""
    return Session(session.store, settings, clock=session._context.clock)


def memory_session(settings: Settings | None = None) -> Session:
    """Open a session over an empty store in memory, at a fixed time."""
    return esjobs.open("duckdb::memory:", settings=settings, clock=lambda: NOW)
