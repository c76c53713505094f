"""A person's name leaves the journal of pages, while others append to it."""

import errno
import json
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import esjobs
from esjobs.cli.main import main
from esjobs.core.errors import InputError
from esjobs.flags.answering.journal import Journal
from esjobs.flags.answering.night import enter
from esjobs.schema.flags import FLAG_NOTES
from esjobs.schema.web import ACTS
from tests.contract.jobs import START, job, put


def entry(number: int, by: str) -> dict[str, Any]:
    return {
        "kind": "ack",
        "level": "queue",
        "processing_type": None,
        "name": f"Q{number}",
        "entered_by": by,
        "at": "2025-07-01T08:00:00+00:00",
        "until": "2025-08-01",
        "text": f"{by} looks at it",
        "before": "open",
    }


@pytest.mark.parametrize("how", [(), ("--pseudonymise",)])
def test_the_name_is_gone_and_nothing_is_entered_twice(tmp_path: Path, how: tuple[str, ...]) -> None:
    address = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    journal = Journal(tmp_path / "jobs.duckdb.entered.jsonl")
    ids = [journal.append(entry(number, by)) for number, by in enumerate(("annabelle", "bob", "annabelle"))]
    with esjobs.open(address, create=True) as session:
        put(session.store, "a", job(1, user="annabelle"))
        assert enter(session.store, journal.read()[:2], START.date())[0] == 2
    before = journal.path.read_bytes()
    assert (
        CliRunner().invoke(main, ["--store", address, "forget-user", "annabelle", "--dry-run"]).exit_code == 0
    )
    assert journal.path.read_bytes() == before
    done = CliRunner().invoke(
        main, ["--store", address, "forget-user", "annabelle", "--format", "json", *how]
    )
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert {row["column"]: row["rows"] for row in rows if row["table"] == "journal"} == {
        "entered_by": 2,
        "text": 2,
    }
    assert b"annabelle" not in journal.path.read_bytes().lower()
    entries = journal.read()
    assert [each["id"] for each in entries] == ids
    assert (entries[1]["entered_by"], entries[1]["text"]) == ("bob", "bob looks at it")
    with esjobs.open(address, read_only=False) as session:
        assert enter(session.store, entries, START.date()) == (1, ())
        for table in (ACTS, FLAG_NOTES):
            (found,) = session.store.read(table)
            assert found.num_rows == 3
            assert "annabelle" not in str(found.to_pylist())


def marked(text: str, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**each, "text": text} for each in entries]


def test_entries_that_arrive_meanwhile_stay(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "entered.jsonl")
    journal.append(entry(0, "annabelle"))

    def append(first: int) -> None:
        for number in range(first, first + 40):
            journal.append(entry(number, "bob"))

    threads = [threading.Thread(target=append, args=(first,)) for first in (100, 200)]
    for thread in threads:
        thread.start()
    for number in range(20):
        journal.rewrite(partial(marked, str(number)))
    for thread in threads:
        thread.join()
    assert len(journal.read()) == 81


def test_a_rewriting_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "entered.jsonl")
    journal.append(entry(0, "annabelle"))
    before = journal.path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError):
        journal.rewrite(lambda _: [])
    assert journal.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [journal.path.name]
