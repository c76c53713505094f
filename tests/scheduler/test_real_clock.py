"""``esjobs serve`` itself, under a clock that a library moves."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.scheduler.served import served, until
from tests.scheduler.stage import FIRST, History, staged

LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="libfaketime is not installed")


@pytest.mark.slow
def test_a_service_whose_clock_is_ahead_once_goes_on_when_it_is_mended(
    tmp_path: Path, history: History
) -> None:
    with staged(tmp_path, after=history(3)) as stage:
        stage.arrive(FIRST + timedelta(days=3))
        before = stage.session.tables.nights().rows.to_pylist()
    offset = tmp_path / "offset"
    # the fifth morning, an hour after the trigger
    right = datetime(2025, 6, 5, 4, 30, tzinfo=UTC) - datetime.now(UTC)

    def move(by: timedelta) -> None:
        written = offset.with_suffix(".new")
        written.write_text(f"{by.total_seconds():+.0f}s\n")
        written.rename(offset)

    moved = {
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "ESJOBS_FIT__NIGHTLY": "false",
    }
    move(right + timedelta(days=60))
    with served(tmp_path, **moved) as (process, url):
        said = until(url, "days after")
        assert not said["ok"]
        with staged(tmp_path) as stage:
            assert stage.session.tables.nights().rows.to_pylist() == before
        move(right)
        said = until(url, '"last_night": "2025-06-04"')
        assert (said["ok"], said["last_state"]) == (True, "done")
        assert "moved by -5184000 s" in said["clock"]
        assert process.poll() is None


@pytest.mark.slow
def test_the_night_of_a_clock_of_1970_is_refused_in_one_line(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(2)) as stage:
        before = stage.session.tables.nights().rows.to_pylist()
    store = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    # a process that is forked would not load the library
    ended = subprocess.run(
        [sys.executable, "-m", "esjobs", "--store", store, "serve", "--once"],
        env={
            **os.environ,
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME": "@1970-01-02 04:00:00",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "ESJOBS_FIT__METHODS": '["gamma"]',
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "1970-01-01" in line
    assert str(FIRST + timedelta(days=1)) in line
    with staged(tmp_path) as stage:
        assert stage.session.tables.nights().rows.to_pylist() == before
