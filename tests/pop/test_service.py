"""The service gathers reports and its nights join them: real processes, folders and stores, some killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import esjobs
from tests.pop.reports import minimal, put_job, written

_LONGEST_S = 120
_N = 150


class Installation:
    """An installation in a folder, with a spool that is there and one that is not."""

    def __init__(self, folder: Path) -> None:
        self.store = f"duckdb:{folder / 'jobs.duckdb'}"
        self.spool = folder / "spool"
        self.copies = folder / "temporary"
        for each in (self.spool, self.copies):
            each.mkdir()
        self.settings = folder / "esjobs.toml"
        self._gone = folder / "gone"
        self.configure(self._gone, self.spool)

    def configure(self, *spools: Path) -> None:
        """Write the settings, with these spools."""
        text = f'store = "{self.store}"\n[nights]\nlisten = "nothing"\ncron = "0 0 29 2 *"\n'
        text += "".join(f'[[pop.spools]]\nfolder = "{spool}"\nsource = "slurm"\n' for spool in spools)
        self.settings.write_text(text)

    def fill(self, n: int) -> set[str]:
        """Reports of so many jobs; their ids."""
        jobs = {str(4000 + number) for number in range(n)}
        for job in jobs:
            path = written(self.spool, minimal(numMpiCalls=int(job)), f"talp.{job}.0.node01.1.json")
            os.utime(path, (1.7e9, 1.7e9))
        return jobs

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """An esjobs of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "esjobs", "--config", str(self.settings), *arguments],
            env=os.environ | {"TMPDIR": str(self.copies), "XDG_STATE_HOME": str(self.copies)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def once(self) -> str:
        """``serve --once``; what it said on standard error."""
        with self.start("serve", "--once") as process:
            out, errors = process.communicate(timeout=_LONGEST_S)
        assert process.returncode == 0, out + errors
        return errors

    def rows(self, table: str) -> list[Mapping[str, Any]]:
        """The rows of a table."""
        with esjobs.open(self.store) as session:
            shown: list[Mapping[str, Any]] = session.tables.read(table).rows.to_pylist()
        return shown

    def stored(self) -> list[str]:
        """The jobs of the reports in the store, each as often as it is there."""
        return sorted(row["job_id"] for row in self.rows("pop_reports"))

    @property
    def waiting(self) -> set[str]:
        """The jobs whose reports are in the spool."""
        return {name.split(".")[1] for name in os.listdir(self.spool)}

    def step(self) -> Mapping[str, Any]:
        """The account of the step of the newest night."""
        return [row for row in self.rows("night_steps") if row["step"] == "talp"][-1]


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def until(reached: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    """Wait for something to become true while a process runs."""
    end = time.monotonic() + _LONGEST_S
    while not reached() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.0005)


def test_once_gathers_and_a_spool_that_cannot_be_read_is_counted(installation: Installation) -> None:
    jobs = installation.fill(3)
    installation.once()
    assert installation.waiting == set()
    assert installation.stored() == sorted(jobs)
    notes = installation.step()["notes"]
    assert "3 reports gathered; 1 of 2 spools not read" in notes
    assert "gone cannot be read: No such file or directory" in notes
    assert "3 reports without a job" in notes
    assert installation.step()["state"] == "done"


def test_without_any_spool_that_can_be_read_the_night_goes_on(installation: Installation) -> None:
    installation.spool.rmdir()
    installation.once()
    assert "2 of 2 spools not read" in installation.step()["notes"]
    assert {row["state"] for row in installation.rows("night_steps")} == {"done"}


def test_the_night_joins_what_waited_for_its_job(installation: Installation) -> None:
    installation.fill(2)
    installation.once()
    assert [row["job_id"] for row in installation.rows("pop_orphans")] == ["4000", "4001"]
    # the record comes by a way that joins nothing: another program writes it into the index
    with esjobs.open(installation.store) as session:
        put_job(session.store, "4000")
    installation.configure()
    installation.once()
    assert [row["job_id"] for row in installation.rows("pop_orphans")] == ["4001"]
    assert [row["job_id"] for row in installation.rows("pop")] == ["4000"]


def test_the_service_gathers_when_it_starts(installation: Installation) -> None:
    jobs = installation.fill(3)
    with installation.start("--log", "json", "serve") as process:
        assert process.stderr is not None
        # the spool that cannot be read is told after the other one is gathered
        told = next(line for line in process.stderr if "cannot be read" in line)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=_LONGEST_S)
    assert process.returncode == 0, errors
    assert json.loads(told)["message"].startswith("talp: ")
    assert installation.waiting == set()
    assert installation.stored() == sorted(jobs)


@pytest.mark.parametrize("moment", ["copied", "removed"])
def test_killed_while_it_gathers_nothing_is_lost_and_nothing_twice(
    installation: Installation, moment: str
) -> None:
    """Killed when the first copy is there, and when the first report is gone from the spool."""
    jobs = installation.fill(_N)
    reached = {
        "copied": lambda: any(installation.copies.glob("esjobs-talp-*/*.json")),
        "removed": lambda: len(os.listdir(installation.spool)) < _N,
    }
    with installation.start("serve", "--once") as process:
        until(reached[moment], process)
        process.kill()
        process.communicate(timeout=_LONGEST_S)
    assert process.returncode == -signal.SIGKILL
    gone = jobs - installation.waiting
    if moment == "copied":
        assert not gone
    else:
        assert gone
    if gone:
        assert gone <= set(installation.stored())
    installation.once()
    assert installation.waiting == set()
    assert [row["job_id"] for row in installation.rows("pop_orphans")] == sorted(jobs)
