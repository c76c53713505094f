"""The command as a process, and connections that send nothing."""

import asyncio
import http.client
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import uvicorn

from esjobs.web import server
from esjobs.web.source import Source
from tests.web.conftest import settings_of


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def health(port: int) -> int:
    """The status of a server; 0 while there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_the_command_serves_until_it_is_ended(store: Path, tmp_path: Path) -> None:
    """Copies of a process that was killed go at the next start, its own at the end."""
    own = Path(shutil.copy(store, tmp_path / "own.duckdb"))
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "esjobs",
        "--store",
        f"duckdb:{own}",
        "web",
        "--listen",
        f"127.0.0.1:{port}",
    ]
    for end in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while health(port) != 200 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert health(port) == 200
        assert len(list(tmp_path.glob(".own.duckdb.web-*"))) == 1
        process.send_signal(end)
        _, said = process.communicate(timeout=60)
        assert said == f"open http://127.0.0.1:{port}/; stop with Ctrl-C\n"
    assert list(tmp_path.glob(".own.duckdb.web-*")) == []


def test_a_port_that_is_taken_is_one_line(store: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-m", "esjobs", "--store", f"duckdb:{store}", "web", "--listen", listen],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "cannot listen on 127.0.0.1" in done.stderr
    assert done.stderr.count("\n") == 1


def is_ended(connection: socket.socket, *lines: bytes) -> bool:
    """True if the server ends a connection that sends the last of some lines again and again."""
    connection.settimeout(0.1)
    for number in range(100):
        try:
            if lines:
                connection.sendall(lines[min(number, len(lines) - 1)])
            if connection.recv(1) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_who_sends_no_whole_request_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_LONGEST_SILENCE_S", 0.3)

    async def application(_scope: object, _receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]

    port = free_port()
    config = uvicorn.Config(application, port=port, log_level="error", lifespan="off", http=server._prompt())
    running = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(running.serve()), daemon=True)
    thread.start()
    while health(port) != 204:
        time.sleep(0.05)
    silent, slow = (socket.create_connection(("127.0.0.1", port)) for _ in range(2))
    with silent, slow:
        assert is_ended(slow, b"GET / HTTP/1.1\r\n", b"a: b\r\n")
        assert is_ended(silent)
    running.should_exit = True
    thread.join(10)


def test_ages_are_those_of_the_day(store: Path, tmp_path: Path) -> None:
    """A store that nobody writes grows old on the pages, too."""
    own = Path(shutil.copy(store, tmp_path / "own.duckdb"))
    now = [datetime(2025, 7, 1, 3, tzinfo=UTC)]
    source = Source(settings_of(own), clock=lambda: now[0])
    first = source.current()
    now[0] += timedelta(days=1)
    source._next = source._looked = 0.0
    deadline = time.monotonic() + 20
    while source.current() is first and time.monotonic() < deadline:
        source._looked = 0.0
        time.sleep(0.05)
    assert source.current().version != first.version
    source.close()
