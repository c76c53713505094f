"""Pages beside the nights: a process of its own that comes again and goes with the service."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from esjobs.core.errors import EsjobsError
from esjobs.entry import load
from esjobs.web.beside import web_beside
from tests.messages import raised


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until_open(port: int, seconds: float = 60) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise AssertionError("nobody answers")


def webs(process: int) -> list[int]:
    """Processes below one that listen."""
    children = psutil.Process(process).children(recursive=True)
    return [each.pid for each in children if any(one.status == "LISTEN" for one in each.net_connections())]


@pytest.mark.slow
def test_pages_come_again_and_end_with_the_service(demo_folder: Path, tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "esjobs.toml"
    config.write_text(f'[web]\nlisten = "127.0.0.1:{port}"\n')
    settings = load(config, f"duckdb:{demo_folder / 'demo.duckdb'}")
    with web_beside(settings) as web:
        assert web is not None
        web.tend()
        assert "</html>" in until_open(port)
        (listening,) = webs(os.getpid())
        web.tend()
        assert webs(os.getpid()) == [listening]
        os.kill(listening, signal.SIGKILL)
        with raised(EsjobsError):
            # it ends when its last thread does
            for _ in range(600):
                web.tend()
                time.sleep(0.05)
        assert "</html>" in until_open(port)
        (again,) = webs(os.getpid())
    assert not psutil.pid_exists(again)


BESIDE = """
import sys, time
from pathlib import Path
from esjobs.entry import load
from esjobs.web.beside import web_beside
if __name__ == "__main__":
    with web_beside(load(Path(sys.argv[1]), sys.argv[2])) as web:
        web.tend()
        time.sleep(600)
"""


@pytest.mark.slow
def test_pages_end_where_the_service_is_killed(demo_folder: Path, tmp_path: Path) -> None:
    port = free_port()
    config, program = tmp_path / "esjobs.toml", tmp_path / "beside.py"
    config.write_text(f'[web]\nlisten = "127.0.0.1:{port}"\n')
    program.write_text(BESIDE)
    command = [sys.executable, str(program), str(config), f"duckdb:{demo_folder / 'demo.duckdb'}"]
    with subprocess.Popen(command) as service:
        try:
            until_open(port)
            (listening,) = webs(service.pid)
        finally:
            service.kill()
    psutil.wait_procs([psutil.Process(listening)] if psutil.pid_exists(listening) else [], timeout=30)
    assert not psutil.pid_exists(listening)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
