"""The port of health and metrics: floods, slow senders, peers that go away, no descriptors."""

import contextlib
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from esjobs.cli.rlimits import require_open_files
from scheduler.endpoint import Endpoint, _is_near
from scheduler.metrics import Metrics
from tests.scheduler.served import health, served, until
from tests.scheduler.stage import FIRST, staged

Address = tuple[str, int]


@contextlib.contextmanager
def many_files(number: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        pytest.skip(f"this process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def connected(address: Address, number: int) -> Iterator[list[socket.socket]]:
    """So many connections that say nothing."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(contextlib.closing(socket.create_connection(address, 10)))
            for _ in range(number)
        ]


@contextlib.contextmanager
def endpoint() -> Iterator[tuple[Address, Metrics]]:
    metrics = Metrics()
    with Endpoint("127.0.0.1", 0, metrics, lambda: (True, {"ok": True})) as made:
        yield made.address, metrics


def said(address: Address) -> dict[str, Any]:
    return health(f"{address[0]}:{address[1]}")


def refused(metrics: Metrics, reason: str) -> float:
    start = f'esjobs_endpoint_refused_total{{reason="{reason}"}} '
    lines = metrics.text().decode().splitlines()
    return next(float(line.removeprefix(start)) for line in lines if line.startswith(start))


def n_of(process: int, what: str) -> int:
    return len(os.listdir(f"/proc/{process}/{what}"))


def test_health_answers_in_the_middle_of_a_flood() -> None:
    with endpoint() as (address, metrics):
        before = threading.active_count()
        with connected(address, 200):
            # a thread gives its slot back just before it ends
            assert threading.active_count() - before <= 33
            began = time.monotonic()
            assert said(address) == {"ok": True}
            assert time.monotonic() - began < 2
            assert refused(metrics, "slots") >= 168


def test_a_connection_has_five_seconds_in_all_whatever_it_sends() -> None:
    with endpoint() as (address, metrics), connected(address, 1) as (slow,):
        began = time.monotonic()
        with contextlib.suppress(OSError):
            for _ in range(100):
                slow.send(b"G")
                time.sleep(0.1)
        assert 4 < time.monotonic() - began < 8
        assert refused(metrics, "time") >= 1
        assert said(address) == {"ok": True}


def test_a_client_that_goes_away_leaves_no_trace(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with endpoint() as (address, _):
        for sent in (b"", b"GET /metr", b"GET /metrics HTTP/1.0\r\n\r\n", b"\x00\xff\r\n\r\n"):
            with socket.create_connection(address) as gone:
                gone.send(sent)
                # a reset, not an orderly end
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        time.sleep(0.3)
        assert said(address) == {"ok": True}
    assert capfd.readouterr().err == ""
    assert not caplog.messages


def test_without_descriptors_connections_are_turned_away_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with endpoint() as (address, metrics):
        client = socket.socket()
        lowest = os.dup(0)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        try:
            client.connect(address)
            assert client.recv(1) == b""
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            client.close()
            os.close(lowest)
        assert refused(metrics, "descriptors") == 1
        assert said(address) == {"ok": True}
    assert len(caplog.messages) == 1


def test_peers_of_this_machine() -> None:
    near = ("127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1")
    assert [_is_near((one, 1)) for one in near] == [True] * 4
    assert [_is_near((one, 1)) for one in ("10.0.0.1", "fe80::1%eth0", "::ffff:10.0.0.1")] == [False] * 3


def test_a_service_lets_itself_open_as_many_files_as_it_may() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    try:
        require_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit is not installed")
def test_a_real_service_stands_1500_idle_connections(tmp_path: Path) -> None:
    with staged(tmp_path, fits=False) as stage:
        stage.live(FIRST)
    with many_files(2_000), served(tmp_path, "prlimit", "--nofile=1024:1024") as (process, url):
        until(url, '"starting": null')
        host, _, port = url.rpartition(":")
        with connected((host, int(port)), 1_500):
            assert health(url)["starting"] is None
            assert n_of(process.pid, "fd") < 100
            assert n_of(process.pid, "task") < 100
            time.sleep(6)
            assert health(url)["starting"] is None
        assert process.poll() is None
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_too_few_files_are_one_line(tmp_path: Path) -> None:
    command = ["prlimit", "--nofile=100:100", sys.executable, "-m", "esjobs", "serve"]
    environment = os.environ | {"ESJOBS_STORE": f"duckdb:{tmp_path}/jobs.duckdb"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "256" in line
