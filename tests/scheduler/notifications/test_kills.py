"""Killed with SIGKILL at any moment and started again: every message arrives, under one name.

Between the moment in which a server takes a message and the mark in the store lies a gap that nothing closes:
a message may arrive twice then, and carries the same ``Message-ID`` both times. Nowhere else.
"""

import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from esjobs.publish.publication import read_table
from esjobs.schema.notifications import NOTIFICATIONS
from esjobs.store.duck.store import DuckStore
from tests.scheduler.notifications.conftest import TABLES
from tests.scheduler.notifications.made_up import NIGHT, event, events
from tests.scheduler.notifications.servers import MailServer
from tests.scheduler.notifications.victim import SITES

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a change for each site."""
    opened = DuckStore(tmp_path / "jobs.duckdb", tables=TABLES)
    events(opened, *(event(f"{name}_Q") for name in SITES))
    opened.close()
    return tmp_path / "jobs.duckdb"


def started(path: Path, server: MailServer) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.scheduler.notifications.victim",
            str(path),
            str(server.port),
            NIGHT.isoformat(),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def finished(path: Path, server: MailServer) -> Counter[str]:
    """Start it again and let it end; how often each message arrived, by its name."""
    server.on_address = server.after_taken = lambda: None
    with started(path, server) as process:
        assert process.wait(60) == 0
    opened = DuckStore(path, tables=TABLES)
    rows = read_table(opened, NOTIFICATIONS).to_pylist()
    opened.close()
    assert sorted((row["recipient"], row["state"]) for row in rows) == [(name, "sent") for name in SITES]
    arrived = Counter(mail["Message-ID"] for _, mail in server.taken)
    assert set(arrived) == {f"<{row['notification']}@grid.example>" for row in rows}
    assert {address for address, _ in server.taken} == {f"{name}@site.example" for name in SITES}
    return arrived


def nth(number: int, process: list[subprocess.Popen[str]]) -> Iterator[None]:
    for count in range(1, 1000):
        if count == number:
            process[0].kill()
            process[0].wait()
        yield


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "twice"), [("on_address", 0), ("after_taken", 1)])
def test_killed_while_a_message_is_handed_over(
    path: Path, server: MailServer, moment: str, twice: int
) -> None:
    processes: list[subprocess.Popen[str]] = []
    turns = nth(3, processes)
    setattr(server, moment, lambda: next(turns))
    with started(path, server) as process:
        processes.append(process)
        assert process.wait(60) == -9
    arrived = finished(path, server)
    assert sorted(arrived.values()) == [1] * (len(SITES) - twice) + [2] * twice


@pytest.mark.slow
def test_killed_at_any_moment(path: Path, server: MailServer) -> None:
    chosen = random.Random(1)
    for _ in range(5):
        with started(path, server) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "opened\n"
            timer = threading.Timer(chosen.uniform(0.0, 0.6), process.kill)
            timer.start()
            process.wait(60)
            timer.cancel()
    arrived = finished(path, server)
    # never more often than it was killed
    assert sum(arrived.values()) <= len(SITES) + 5
