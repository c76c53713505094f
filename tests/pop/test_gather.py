"""Spools are emptied into the store: nothing is lost, nothing of others is touched."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.cli.main import main
from esjobs.core.errors import InputError, StoreError, UsageError
from esjobs.core.report import RunReport
from esjobs.pop.gathering import gather
from esjobs.pop.settings import SpoolSettings, TalpSettings, spools_of
from tests.conftest import NOW, memory_session
from tests.messages import raised
from tests.pop.reports import as_report, minimal, put_job, written

OLD = NOW.timestamp() - 3600


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


def aged(path: Path, seconds: float = OLD) -> Path:
    os.utime(path, (seconds, seconds))
    return path


def stored(session: Session) -> int:
    rows: list[dict[str, Any]] = session.tables.pop_reports().rows.to_pylist()
    return len({row["report"] for row in rows})


def test_a_finished_report_is_stored_and_then_removed(
    session: Session, shared_data: Path, spool: Path
) -> None:
    put_job(session.store)
    aged(as_report(spool, shared_data / "talp/3.7.0/balanced-np2.json"))
    report = session.pop.gather([str(spool)])
    assert report.counts["gathered"] == 1
    assert list(spool.iterdir()) == []
    assert [row["job_id"] for row in session.tables.pop().rows.to_pylist()] == ["4711"]
    assert session.pop.gather([str(spool)]).rows_in == 0


def test_one_that_may_be_being_written_waits(session: Session, spool: Path) -> None:
    path = aged(written(spool, minimal()), NOW.timestamp() - 1)
    assert session.pop.gather([str(spool)]).counts["still being written"] == 1
    assert path.exists()
    assert stored(session) == 0


def test_nothing_is_removed_that_the_store_has_not_acknowledged(session: Session, spool: Path) -> None:
    path = aged(written(spool, minimal()))

    def put(files: object, source: object) -> Any:
        raise StoreError("the cluster is gone; try again")

    with pytest.raises(StoreError):
        gather(session.store, TalpSettings(), spools_of([str(spool)], None), put, NOW.timestamp())
    assert path.exists()
    session.pop.gather([str(spool)])
    assert not path.exists()
    assert stored(session) == 1


def test_junk_stays_is_counted_and_logged_once(
    session: Session, spool: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = spool.parent / "secret.json"
    written(spool.parent, minimal(), "secret.json")
    junk = [
        aged(written(spool, "{", "talp.4711.0.node01.7.json")),
        aged(written(spool, minimal(), "notes.json")),
        aged(written(spool, minimal(), "talp.4711.0.node01.8.json.tmp")),
    ]
    (spool / "talp.4711.0.node01.9.json").symlink_to(secret)
    (spool / "talp.4711.0.node01.10.json").mkdir()
    os.mkfifo(spool / "talp.4711.0.node01.11.json")
    first = session.pop.gather([str(spool)])
    assert (first.counts["junk"], first.counts["new junk files"], first.counts["gathered"]) == (6, 6, 0)
    assert len([line for line in caplog.messages if "is not a report" in line]) == 6
    again = session.pop.gather([str(spool)])
    assert (again.counts["junk"], again.counts["new junk files"]) == (6, 0)
    assert len([line for line in caplog.messages if "is not a report" in line]) == 6
    assert all(path.exists() for path in junk)
    assert secret.exists()
    assert stored(session) == 0
    # one that is whole by now is taken
    aged(written(spool, minimal(), junk[0].name), OLD + 1)
    assert session.pop.gather([str(spool)]).counts["gathered"] == 1


def test_copies_of_a_killed_process_are_swept_and_nothing_else(
    session: Session, spool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "talp.json").write_text("{}")
    old, young, other = (shared / name for name in ("esjobs-talp-old", "esjobs-talp-new", "esjobs-other"))
    for folder in (old, young, other):
        folder.mkdir()
        (folder / "talp.json").write_text("{}")
    (shared / "esjobs-talp-file").write_text("x")
    (shared / "esjobs-talp-link").symlink_to(kept)
    long_ago = NOW.timestamp() - 2 * 86_400
    for path in (old, other, shared / "esjobs-talp-file", kept):
        os.utime(path, (long_ago, long_ago))
    os.utime(shared / "esjobs-talp-link", (long_ago, long_ago), follow_symlinks=False)
    os.utime(young, (NOW.timestamp(), NOW.timestamp()))
    session.pop.gather([str(spool)])
    left = sorted(path.name for path in shared.iterdir())
    assert left == ["esjobs-other", "esjobs-talp-file", "esjobs-talp-link", "esjobs-talp-new"]
    assert (kept / "talp.json").exists()


def test_a_region_that_cannot_be_stored_is_told(session: Session, spool: Path) -> None:
    report = minimal()
    good = report["Application"]["Global"]
    report["Application"]["solve"] = {**good, "elapsedTime": -5}
    aged(written(spool, report))
    account = session.pop.gather([str(spool)])
    assert (account.counts["gathered"], account.counts["regions rejected"]) == (1, 1)
    assert any("esjobs show rejects" in note for note in account.notes)
    (reject,) = session.tables.rejects().to_pandas().to_dict("records")
    assert "solve" in reject["reason"] + str(reject["excerpt"])


def test_a_file_that_changes_while_it_is_stored_is_not_removed(session: Session, spool: Path) -> None:
    path = aged(written(spool, minimal()))

    def put(files: Any, source: str | None) -> Any:
        path.write_text("something new")
        return session.ingest("talp", files)

    gather(session.store, TalpSettings(), spools_of([str(spool)], None), put, NOW.timestamp())
    assert path.read_text() == "something new"


def test_a_spool_that_is_gone_does_not_keep_the_others(session: Session, spool: Path) -> None:
    aged(written(spool, minimal()))
    report = session.pop.gather([str(spool.parent / "gone"), str(spool)])
    assert report.counts["gathered"] == 1
    assert "cannot be read" in " ".join(report.notes)
    with raised(InputError):
        session.pop.gather([str(spool.parent / "gone")])


def test_without_a_spool_it_says_what_to_set(session: Session) -> None:
    with raised(UsageError):
        session.pop.gather()


@pytest.mark.parametrize("folder", ["relative", "-e sh:/x", "host:relative", "host:/a b", "ho st:/x"])
def test_odd_addresses_are_refused(folder: str) -> None:
    with pytest.raises(ValueError, match="folder"):
        SpoolSettings(folder=folder)


@pytest.fixture
def remote(tmp_path: Path) -> tuple[str, ...]:
    """rsync with a shell that stays on this machine: what ssh does, without a host."""
    if shutil.which("rsync") is None:
        pytest.skip("rsync is not installed")
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    shell.chmod(0o755)
    return ("rsync", "-e", str(shell))


def test_a_spool_of_another_host(remote: tuple[str, ...], shared_data: Path, spool: Path) -> None:
    aged(as_report(spool, shared_data / "talp/3.3.1/balanced-np2.json"))
    aged(written(spool, minimal(), "notes.json"))
    broken = aged(written(spool, "{", "talp.1.0.n.1.json"))
    settings = Settings(
        pop=TalpSettings(spools=(SpoolSettings(folder=f"login1:{spool}", source="slurm"),), rsync=remote)
    )
    with memory_session(settings) as session:
        put_job(session.store)
        put_job(session.store, source="other")
        report = session.pop.gather()
        assert (report.counts["gathered"], report.counts["junk"]) == (1, 2)
        assert sorted(path.name for path in spool.iterdir()) == ["notes.json", broken.name]
        assert {row["source"] for row in session.tables.pop().rows.to_pylist()} == {"slurm"}
        assert session.pop.gather().counts["new junk files"] == 0


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_report_that_is_written_again_before_its_removal_stays_until_it_is_stored(
    where: str, remote: tuple[str, ...], session: Session, spool: Path
) -> None:
    """Of the same size, and of another host with the same time: only the contents tell."""
    first = aged(written(spool, minimal(), "talp.1.0.n.1.json"))
    other = aged(written(spool, minimal(), "talp.2.0.n.1.json"))
    settings = TalpSettings(rsync=remote)
    spools = [SpoolSettings(folder=f"login1:{spool}" if where == "there" else str(spool))]
    puts: list[list[str]] = []

    def put(files: Sequence[Path], source: str | None) -> RunReport:
        puts.append(sorted(file.read_text() for file in files))
        if len(puts) == 1:
            aged(written(spool, minimal(usefulTime=4 * 10**9), first.name), OLD + (where == "here"))
        return RunReport("test", "test", len(files), len(files), 0.0)

    counts = gather(session.store, settings, spools, put, NOW.timestamp()).counts
    assert counts["gathered"] == 2
    assert list(spool.iterdir()) == [first]
    assert not other.exists()
    assert counts["not removed"] == (1 if where == "there" else 0)
    gather(session.store, settings, spools, put, NOW.timestamp())
    assert list(spool.iterdir()) == []
    assert puts[1] == [json.dumps(minimal(usefulTime=4 * 10**9))]


def test_a_host_that_does_not_answer_is_one_line(spool: Path) -> None:
    for rsync in (
        (sys.executable, "-c", "import time; time.sleep(9)"),
        ("nowhere",),
    ):
        settings = TalpSettings(spools=(SpoolSettings(folder=f"login1:{spool}"),), rsync=rsync, timeout_s=0.2)
        with memory_session(Settings(pop=settings)) as session, raised(InputError):
            session.pop.gather()


def test_the_command(spool: Path, tmp_path: Path) -> None:
    aged(written(spool, minimal()))
    arguments = ["--store", f"duckdb:{tmp_path}/s.duckdb", "talp", "gather", str(spool)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "talp gather: 1 files, 1 reports stored" in done.output
    assert "esjobs show pop_orphans" in done.output


def test_what_may_not_be_read_stays_and_does_not_keep_the_others(tmp_path: Path) -> None:
    """A user whose new files nobody else may read; the rights are given later, which moves no mark."""
    spool = tmp_path / "spool"
    spool.mkdir()
    locked = aged(written(spool, minimal(), "talp.1.0.n.1.json"))
    aged(written(spool, minimal(), "talp.2.0.n.1.json"))
    locked.chmod(0o000)
    # root may read everything unless it lets go of that right
    plain = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    command = [*plain, sys.executable, "-m", "esjobs", "--store", f"duckdb:{tmp_path}/s.duckdb"]

    def gathered() -> str:
        done = subprocess.run(
            [*command, "talp", "gather", str(spool)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    told = gathered()
    assert "2 files, 1 reports stored" in told
    assert "1 reports cannot be read and remain: talp.1.0.n.1.json" in told
    assert list(spool.iterdir()) == [locked]
    locked.chmod(0o644)
    assert "1 files, 1 reports stored" in gathered()
    assert list(spool.iterdir()) == []
