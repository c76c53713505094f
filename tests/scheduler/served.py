"""``esjobs serve`` as a process, and what it says of itself."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def served(folder: Path, *before: str, **environment: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The service of a store, by a command such as ``prlimit``; its address. The log is ``folder/log``."""
    settings = {
        "ESJOBS_STORE": f"duckdb:{folder / 'jobs.duckdb'}",
        "ESJOBS_NIGHTS__PORT": "0",
        "ESJOBS_NIGHTS__WINDOWS": "[3, 7]",
        "ESJOBS_NIGHTS__HEADLINE": "7",
        "ESJOBS_FIT__METHODS": '["gamma"]',
    }
    log = folder / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [*before, sys.executable, "-m", "esjobs", "--log-level", "info", "serve"],
            env=os.environ | settings | environment,
            stderr=stream,
            text=True,
        )
    try:
        yield process, address(log)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"it did not end:\n{log.read_text()}") from None


def address(log: Path) -> str:
    for _ in range(300):
        found = [line for line in log.read_text().splitlines() if "health at " in line]
        if found:
            return found[0].rpartition("health at http://")[2]
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def health(url: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"http://{url}/health", timeout=10) as answer:
            return dict(json.loads(answer.read()))
    except urllib.error.HTTPError as error:
        with error:
            return dict(json.loads(error.read()))


def until(url: str, wanted: str, seconds: float = 90) -> dict[str, Any]:
    """What health says as soon as ``wanted`` is in it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        said = health(url)
        if wanted in json.dumps(said):
            return said
        time.sleep(0.5)
    raise AssertionError(said)
