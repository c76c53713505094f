"""Nights with planted events: each has the consequences that it should have, and no others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

import pytest

from esjobs import open as open_session
from esjobs.core.words import ALL_TYPES
from esjobs.publish.publication import read_table
from esjobs.schema.catalogue import table
from tests.scheduler.notifications.servers import mail_server
from tests.scheduler.quarter import CLOCKS_CHANGE, MONTH, QUARTER, Plan, Quarter, recipients, settings_of

TABLES = ("nights", "night_steps", "flag_events", "flag_states", "notifications")


@pytest.mark.matrix
@pytest.mark.parametrize("plan", [pytest.param(MONTH, id="month"), pytest.param(QUARTER, id="quarter")])
def test_planted_events(tmp_path: Path, plan: Plan) -> None:
    quarter = Quarter(plan, datetime.combine(plan.first, time(12), UTC))
    with mail_server() as server:
        notify = {"mail": server.settings(security="none"), "recipients": recipients(quarter)}
        settings = settings_of(plan, tmp_path / "jobs.duckdb", notify)
        with open_session(settings=settings, clock=lambda: quarter.now) as session:
            quarter.live(session, tmp_path)
            rows = {name: read_table(session.store, table(name)).to_pylist() for name in TABLES}
        mails = [(address, str(mail["Subject"])) for address, mail in server.taken]
    assert_every_night_had_its_trigger(quarter)
    assert_nights_were_run_as_planted(rows, quarter)
    assert_flags_are_the_planted_ones(rows, quarter)
    assert_mails_follow_the_flags(rows, mails, quarter)


def assert_every_night_had_its_trigger(quarter: Quarter) -> None:
    """One a day, an hour earlier (UTC) since the clocks went forward."""
    assert len(quarter.triggered) == quarter.plan.nights
    hours = Counter((moment.hour, moment.minute) for moment in quarter.triggered)
    changed = quarter.plan.night_of(CLOCKS_CHANGE)
    # the trigger of a night comes on the day after it
    assert hours == {(2, 30): changed - 2, (1, 30): quarter.plan.nights - changed + 2}


def assert_nights_were_run_as_planted(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], quarter: Quarter
) -> None:
    plan = quarter.plan
    every = set(range(1, plan.nights + 1))
    states = {plan.night_of(row["night"]): row for row in rows["nights"]}
    # retention keeps the newest sixty, then one a week and one a month
    newest = {night for night in every if night > plan.nights - 60}
    assert newest <= set(states)
    assert len(states) <= len(newest) + 6 * (len(every) > 60)
    assert {night for night, row in states.items() if row["state"] == "missing"} == set(plan.silent)
    assert {row["state"] for night, row in states.items() if night not in plan.silent} == {"done"}
    run = {due: [plan.night_of(row["night"]) for row in made] for due, made in quarter.accounts.items()}
    late = list(range(plan.late_of, plan.late_on + 1))
    assert run == {night: late if night == plan.late_on else [night] for night in every}
    fits = {
        plan.night_of(row["night"]): row["attempt"]
        for row in rows["night_steps"]
        if row["step"].startswith("fit")
    }
    redone = {night for night, attempt in fits.items() if attempt > 1}
    assert redone == {night for night in range(plan.late_of, plan.late_on) if night in fits}


def assert_flags_are_the_planted_ones(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], quarter: Quarter
) -> None:
    plan = quarter.plan
    events: dict[str, list[tuple[str, int]]] = {}
    for row in sorted(rows["flag_events"], key=lambda row: (row["night"], row["position"])):
        if (row["level"], row["processing_type"]) == ("queue", ALL_TYPES):
            events.setdefault(row["name"], []).append((row["kind"], plan.night_of(row["night"])))
    changes = {
        name: [(kind, night) for kind, night in told if kind in ("opened", "closed", "reopened")]
        for name, told in events.items()
    }
    # a value that changes inside the window is not judged: the first window of one value is
    judged = plan.window - 1
    opened, closed = plan.wrong + judged, plan.repaired + judged
    assert changes[quarter.misdeclared.name] == [("opened", opened), ("closed", closed)]
    ((kind, night),) = changes[quarter.renewed.name]
    assert kind == "opened"
    # the window fills with jobs of the new hardware
    assert plan.new_hardware < night <= plan.new_hardware + plan.window
    assert quarter.flooded.name not in changes
    planted = {quarter.misdeclared.name, quarter.renewed.name, *quarter.grid.truth().misdeclared}
    assert {name for name, told in changes.items() if told} <= planted


def assert_mails_follow_the_flags(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], mails: Sequence[tuple[str, str]], quarter: Quarter
) -> None:
    """A flag of a queue, of any type, that opens or closes is sent to its site, or noted as a repetition."""
    plan = quarter.plan
    told: dict[str, set[int]] = {}
    for row in rows["notifications"]:
        told.setdefault(row["recipient"], set()).add(plan.night_of(row["night"]))
    for recipient, queue in (
        ("misdeclared", quarter.misdeclared),
        ("renewed", quarter.renewed),
        ("flooded", quarter.flooded),
    ):
        changed = {
            plan.night_of(row["night"])
            for row in rows["flag_events"]
            if (row["level"], row["name"]) == ("queue", queue.name)
            and row["kind"] in ("opened", "closed", "reopened")
        }
        assert told.get(recipient, set()) == changed, recipient
    assert told["misdeclared"] >= {plan.wrong + plan.window - 1, plan.repaired + plan.window - 1}
    assert "flooded" not in told
    assert told["operator"] == set(plan.silent)
    for recipient in ("misdeclared", "renewed"):
        subjects = [subject for address, subject in mails if address.startswith(recipient)]
        assert len(subjects) <= 2, subjects
    # each message was sent once; late records moved events to other nights, which nobody is told of again
    assert {row["state"] for row in rows["notifications"]} <= {"sent", "duplicate", "repetition"}
    known = {plan.night_of(row["night"]) for row in rows["notifications"] if row["state"] == "duplicate"}
    assert known <= set(range(plan.late_of, plan.late_on + 1))
    assert len(mails) == sum(row["state"] == "sent" for row in rows["notifications"])
