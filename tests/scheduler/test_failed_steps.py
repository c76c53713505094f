"""A step that fails: what it leaves out, what is done all the same, and what the account says."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from esjobs.core.errors import InputError, StoreError
from esjobs.records.night import NightAccount, NightStep, NightWork
from scheduler.night import succeeded
from tests.messages import compare_text
from tests.scheduler.rows import visible_rows
from tests.scheduler.stage import FIRST, NIGHT_STEPS, days, staged


def failing(error: Exception) -> Callable[[NightWork], NightAccount]:
    def fail(work: NightWork) -> NightAccount:
        del work
        raise error

    return fail


def steps_with(*broken: tuple[str, Exception]) -> Sequence[NightStep]:
    errors = dict(broken)
    return [
        replace(step, function=failing(errors[step.name])) if step.name in errors else step
        for step in NIGHT_STEPS
    ]


@pytest.mark.parametrize("names", [("detect", "score"), ("ingest", "talp", "drift", "decompose", "prune")])
def test_steps_that_fail_leave_fits_flags_and_messages(tmp_path: Path, names: tuple[str, ...]) -> None:
    error = InputError("rules.toml cannot be read; mend it")
    with staged(tmp_path, steps=steps_with(*((name, error) for name in names))) as stage:
        (row,) = stage.live(FIRST)
        assert row["state"] == "failed"
        assert not succeeded([row])
        compare_text(row["reason"])
        states = {each["step"]: each["state"] for each in stage.nights._ledger.steps(FIRST)}
        assert {name for name, state in states.items() if state == "failed"} == set(names)
        assert len(states) == len(NIGHT_STEPS)
        # the next trigger does what failed, and what is done every time
        stage.nights._given_steps = NIGHT_STEPS
        assert [each["state"] for each in stage.trigger(FIRST)] == ["done"]
        found = visible_rows(stage.store)
    with staged(tmp_path / "b") as stage:
        stage.live(FIRST)
        expected = visible_rows(stage.store)
    assert {table for table in expected if found[table] != expected[table]} == set()


def test_what_needs_the_fits_waits_for_them(tmp_path: Path) -> None:
    with staged(tmp_path, steps=steps_with(("fit", StoreError("no room")))) as stage:
        (row,) = stage.live(FIRST)
        assert row["state"] == "failed"
        compare_text(row["reason"])
        done = {each["step"] for each in stage.nights._ledger.steps(FIRST) if each["state"] == "done"}
        assert done == {
            "ingest",
            "talp",
            "aggregate",
            "backfill",
            "today",
            "detect",
            "score",
            "notify",
            "prune",
            "enter",
        }


def test_without_buckets_only_files_and_messages_are_done(tmp_path: Path) -> None:
    with staged(tmp_path, steps=steps_with(("aggregate", StoreError("no room")))) as stage:
        (row,) = stage.live(FIRST)
        compare_text(row["reason"])
        done = {each["step"] for each in stage.nights._ledger.steps(FIRST) if each["state"] == "done"}
        assert done == {"enter", "ingest", "talp", "notify"}


def test_a_longer_window_that_cannot_be_fitted_leaves_the_verdicts(tmp_path: Path) -> None:
    fit = next(step for step in NIGHT_STEPS if step.name == "fit")

    def narrow(work: NightWork) -> NightAccount:
        if work.window is not None and work.window.days == 7:
            raise StoreError("too much memory")
        return fit.function(work)

    steps = [replace(fit, function=narrow) if step is fit else step for step in NIGHT_STEPS]
    with staged(tmp_path, steps=steps, headline=3) as stage:
        *_, row = stage.live(*days(FIRST, 4))
        assert (row["state"], row["reason"]) == ("failed", "fit 7d failed: too much memory")
        assert stage.nights._ledger.steps(row["night"])[-1]["step"] == "prune"
        assert {each["step"] for each in stage.nights._ledger.steps(row["night"])} >= {"watch", "drift"}
    with staged(tmp_path / "b", steps=steps) as stage:
        *_, row = stage.live(*days(FIRST, 4))
        assert row["reason"] == "fit 7d failed: too much memory; skipped: drift, decompose, watch"


def test_a_failure_is_in_the_message_of_the_same_night(tmp_path: Path) -> None:
    """The account says `failed` before messages are sent, so that they report it."""
    seen: list[tuple[str, str]] = []

    def notify(work: NightWork) -> NightAccount:
        found = stage.nights._ledger.night(work.night) or {}
        seen.append((found["state"], found["reason"]))
        return NightAccount()

    steps = [
        replace(step, function=notify) if step.name == "notify" else step
        for step in steps_with(("detect", InputError("rules.toml: no such file")))
    ]
    with staged(tmp_path, steps=steps) as stage:
        stage.live(FIRST)
    assert seen == [("failed", "detect failed: rules.toml: no such file")]


def test_a_defect_of_a_step_is_told_by_its_kind(tmp_path: Path) -> None:
    with staged(tmp_path, steps=steps_with(("detect", ZeroDivisionError("secret")))) as stage:
        (row,) = stage.live(FIRST)
        compare_text(row["reason"])
        assert {"fit 3d", "watch"} <= {each["step"] for each in stage.nights._ledger.steps(FIRST)}
