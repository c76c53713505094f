"""Why a night failed whose store could not be written: told at once, and in the ledger the next time."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from esjobs import open as open_session
from esjobs.cli.nightly import Trigger
from esjobs.core.errors import StoreError
from esjobs.records.night import NightAccount, NightStep, NightWork
from scheduler.ledger import Ledger
from scheduler.notifications.settings import NotifySettings
from scheduler.pending_failure import note, noted
from tests.messages import raised
from tests.scheduler.notifications.servers import mail_server
from tests.scheduler.stage import FIRST, NIGHT_STEPS, Hands, settings_of, staged

SECOND, THIRD = FIRST + timedelta(days=1), FIRST + timedelta(days=2)
OPERATOR = {"name": "operator", "role": "operator", "channel": "mail", "address": "operator@grid.example"}


def test_the_next_process_tells_why_a_night_has_no_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    hands = Hands()
    with staged(tmp_path, hands, fits=False) as stage:
        stage.live(FIRST)
        stage.arrive(THIRD + timedelta(days=1))
    store = tmp_path / "jobs.duckdb"
    with mail_server() as server:
        plain = settings_of(f"duckdb:{store}", fits=False, catch_up=0)
        notify = {"mail": server.settings(security="none"), "recipients": [OPERATOR]}
        settings = plain.model_copy(update={"notify": NotifySettings.model_validate(notify)})
        content = store.read_bytes()
        store.write_bytes(b"something else" * 1000)
        hands.morning_after(SECOND)
        with raised(StoreError) as caught:
            Trigger(settings, hands.clock, hands.patience).tend()
        store.write_bytes(content)
        # a night that nobody tried to run has another reason: no trigger came
        for night in (THIRD, THIRD + timedelta(days=1)):
            hands.morning_after(night)
        for _ in range(2):
            Trigger(settings, hands.clock, hands.patience).tend()
        bodies = [mail.get_body(("plain",)) for _, mail in server.taken]
    texts = [body.get_content() for body in bodies if body is not None]
    with open_session(settings=settings) as session:
        rows = {row["night"]: row for row in session.nights.show().to_pylist()}
    assert (rows[SECOND]["state"], rows[SECOND]["reason"]) == ("failed", str(caught.value))
    assert (rows[THIRD]["state"], rows[THIRD]["reason"]) == ("missing", "not run")
    assert sum(f"Night {SECOND} failed" in text for text in texts) == 1
    assert list(tmp_path.glob("**/*.unwritten")) == []


def test_a_note_that_cannot_lie_beside_the_store_lies_where_programs_keep_their_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "file").touch()
    for place in (f"duckdb:{tmp_path / 'file' / 'jobs.duckdb'}", "https://search.example:9200"):
        note(place, "no room", SECOND)
        found = noted(place)
        assert found is not None
        assert (found.reason, found.until) == ("no room", SECOND)
    (tmp_path / "jobs.duckdb.unwritten").write_text("[]")
    assert noted(f"duckdb:{tmp_path / 'jobs.duckdb'}") is None


def test_what_failed_first_is_told_when_the_account_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Ledger.write

    def refused(self: Ledger, row: Any, steps: Any) -> None:
        if row["state"] == "failed":
            raise StoreError("no space left")
        write(self, row, steps)

    def broken(work: NightWork) -> NightAccount:
        raise StoreError("the sums cannot be read")

    monkeypatch.setattr(Ledger, "write", refused)
    steps = [NightStep("aggregate", broken), *NIGHT_STEPS[3:]]
    with staged(tmp_path, steps=steps) as stage:
        stage.arrive(FIRST)
        with pytest.raises(StoreError) as caught:
            stage.trigger(FIRST)
    assert (
        str(caught.value) == f"night {FIRST} failed: aggregate failed: the sums cannot be read; "
        "skipped: backfill, fit, drift, decompose, watch, today, detect, score; no space left"
    )
