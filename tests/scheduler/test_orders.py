"""Orders about nights: a pause, its end, nights that are forgotten; who gave them, and by which account."""

from datetime import timedelta
from pathlib import Path

import pytest

from esjobs.cli.nightly import Trigger
from esjobs.core.errors import UsageError
from esjobs.store.process import os_account
from tests.messages import compare_text, raised
from tests.scheduler.stage import FIRST, Hands, settings_of, staged

SECOND = FIRST + timedelta(days=1)


def test_paused_nights_are_run_when_the_pause_is_over(tmp_path: Path) -> None:
    with staged(tmp_path, fits=False) as stage:
        stage.live(FIRST)
        stage.nights.pause(by="ann", note="the cluster is being upgraded")
        stage.hands.let_pass(60)
        stage.nights.pause(by="eve", note="new disks")
        stage.arrive(SECOND)
        assert stage.trigger(SECOND) == []
        assert stage.states() == {"2025-06-01": "done", "2025-06-02": "missing"}
        compare_text(stage.nights.health().paused or "")
        # by hand nights are run as ever
        assert stage.nights.rerun(FIRST)["state"] == "done"
        stage.nights.resume(by="bob")
        assert stage.nights.health().paused is None
        stage.arrive(SECOND + timedelta(days=1))
        rows = stage.trigger(SECOND + timedelta(days=1))
        assert [row["state"] for row in rows] == ["done", "done"]


def test_orders_are_kept(tmp_path: Path) -> None:
    with staged(tmp_path, fits=False) as stage:
        stage.live(FIRST)
        stage.nights.pause(by="ann", note="disk")
        stage.hands.let_pass(60)
        stage.nights.resume()
        stage.hands.let_pass(60)
        removed = stage.nights.forget(FIRST - timedelta(days=1), by="ann", note="x" * 1000)
        assert removed["nights"] == 1
        rows = stage.session.tables.night_orders().rows.to_pylist()
        numbers = ", ".join(f"{name} {number}" for name, number in removed.items())
        assert [(row["action"], row["entered_by"], row["text"], row["night"]) for row in rows] == [
            ("forget", "ann", f"{'x' * 1000}; nights removed: {numbers}", FIRST - timedelta(days=1)),
            ("resume", os_account(), None, None),
            ("pause", "ann", "disk", None),
        ]
        assert {row["account"] for row in rows} == {os_account()}
        for wrong in ({"by": " "}, {"note": "x" * 1001}):
            with raised(UsageError):
                stage.nights.pause(**wrong)
            with pytest.raises(UsageError):
                stage.nights.forget(
                    FIRST - timedelta(days=2), by=wrong.get("by"), note=wrong.get("note", "why")
                )


def test_a_trigger_of_a_paused_installation_ends_well(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hands = Hands()
    with staged(tmp_path, hands, fits=False) as stage:
        stage.live(FIRST)
        stage.nights.pause(by="ann")
    hands.morning_after(SECOND)
    rows, condition = Trigger(
        settings_of(f"duckdb:{tmp_path / 'jobs.duckdb'}"), hands.clock, hands.patience
    ).tend()
    assert rows == []
    assert condition.paused is not None
    assert "nights are paused by ann" in caplog.text
