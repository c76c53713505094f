"""Watch of a day that is not over: incidents are opened, kept, confirmed or withdrawn by the night."""

from datetime import UTC, datetime, time
from typing import Any

import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.names.sites import Sites
from esjobs.schema.today import INCIDENT_NIGHTS, INCIDENTS, TODAY_DAYS
from esjobs.today.nights import update
from esjobs.today.settings import TodaySettings
from esjobs.today.so_far import usual_parts
from esjobs.today.sums import make_sums
from scheduler.notifications.incident_notices import incident_notices, notices_so_far
from scheduler.notifications.rules import takes
from scheduler.notifications.settings import Recipient
from tests.today.grid_jobs import BAD_FROM, BAD_SITE, BAD_TO, SITES, day, jobs_of, put
from tests.today.test_nights import rows_of

NOON = datetime.combine(day(BAD_FROM), time(14, 30), UTC)


@pytest.fixture
def session() -> Any:
    with esjobs.open("duckdb::memory:", clock=lambda: NOON) as opened:
        yield opened


def until(rows: list[dict[str, Any]], hour: int) -> list[dict[str, Any]]:
    """Return the jobs of days before, and those of the bad day that ended before an hour."""
    end = datetime.combine(day(BAD_FROM), time(hour), UTC)
    return [row for row in rows if row["end_time"] < end]


def states(session: Session) -> dict[str, str]:
    return {row["site"]: row["state"] for row in session.flags.today.incidents().rows.to_pylist()}


def worse(row: dict[str, Any], number: int, index: int) -> dict[str, Any]:
    if number == BAD_FROM and row["queue"] == BAD_SITE and index % 20 < 12:
        row |= {"state": "failed", "exit_code": "9"}
    return row


def test_a_running_day_opens_an_incident_that_the_night_judges_anew(session: Session) -> None:
    put(session.store, until(jobs_of(range(BAD_FROM + 1), bad=False, change=worse), 14))
    session.flags.today.update(day(BAD_FROM - 1))
    before = rows_of(session)
    report = session.flags.today.update_running_day()
    assert (report.window, report.rows_out) == (str(day(BAD_FROM)), 1)
    assert states(session) == {BAD_SITE: "open"}
    rows = read_table(session.store, TODAY_DAYS).to_pylist()
    assert {row["partial"] for row in rows if row["day"] == day(BAD_FROM)} == {True}
    assert session.flags.today.incidents().notes == (f"{day(BAD_FROM)} so far: {len(SITES)} sites judged",)
    once = rows_of(session)
    session.flags.today.update_running_day()
    assert rows_of(session) == once
    # what was judged before is as it was
    assert set(before["incident_nights"]) <= set(once["incident_nights"])

    session.flags.today.acknowledge(BAD_SITE, until=day(BAD_TO), by="ann")
    assert states(session) == {BAD_SITE: "acknowledged"}
    assert day(BAD_FROM) in {row["day"] for row in rows if row["partial"]}


def test_coordinators_are_told_of_a_running_day_once_and_sites_by_the_night(session: Session) -> None:
    put(session.store, until(jobs_of(range(BAD_FROM + 1), bad=False, change=worse), 14))
    session.flags.today.update(day(BAD_FROM - 1))
    session.flags.today.update_running_day()
    (notice,) = notices_so_far(session.store, day(BAD_FROM))
    assert notice.subject.startswith(f"So far today: {BAD_SITE}: ")
    people = {
        role: Recipient(name=role, role=role, channel="mail", address="a@example.org", sites=(BAD_SITE,))
        for role in ("coordinator", "site")
    }
    assert {role: takes(one, notice) for role, one in people.items()} == {"coordinator": True, "site": False}
    put(session.store, until(jobs_of(range(BAD_FROM + 1), bad=False, change=worse), 18), "later")
    session.flags.today.update_running_day()
    (again,) = notices_so_far(session.store, day(BAD_FROM))
    assert again.id == notice.id
    put(session.store, jobs_of(range(BAD_FROM + 2), bad=False, change=worse), "all")
    session.flags.today.update(day(BAD_FROM))
    (of_night,) = incident_notices(session.store, day(BAD_FROM))
    assert of_night.id != notice.id
    assert all(takes(one, of_night) for one in people.values())
    session.flags.today.update_running_day()
    assert notices_so_far(session.store, day(BAD_FROM + 1)) == []


@pytest.mark.parametrize("recovers", [True, False])
def test_the_night_confirms_or_withdraws_and_equals_one_without_partial_runs(
    session: Session, recovers: bool
) -> None:
    rows = jobs_of(range(BAD_FROM + 1), bad=False, change=worse)
    if recovers:
        later = datetime.combine(day(BAD_FROM), time(14), UTC)
        quiet = jobs_of(range(BAD_FROM + 1), bad=False, change=lambda row, *_: row | {"exit_code": "0"})
        # the failures of the morning were sent in again, as finished
        rows = [
            new if new["end_time"].date() == later.date() else old
            for old, new in zip(rows, quiet, strict=True)
        ]
    put(session.store, until(jobs_of(range(BAD_FROM + 1), bad=False, change=worse), 14))
    session.flags.today.update_running_day()
    session.flags.today.update(day(BAD_FROM - 1))
    session.flags.today.update_running_day()
    assert states(session) == {BAD_SITE: "open"}
    put(session.store, rows, "later")
    session.flags.today.update(day(BAD_FROM))
    assert states(session) == ({} if recovers else {BAD_SITE: "open"})
    with esjobs.open("duckdb::memory:", clock=lambda: NOON) as other:
        put(other.store, rows)
        other.flags.today.update(day(BAD_FROM))
        for name in (TODAY_DAYS.name, INCIDENT_NIGHTS.name, INCIDENTS.name):
            assert rows_of(session)[name] == rows_of(other)[name]


def test_few_jobs_by_an_hour_are_no_fault_and_none_is(session: Session) -> None:
    running = 22
    rows = jobs_of(range(running + 1), bad=False)
    noon = datetime.combine(day(running), time(14), UTC)
    rows = [row for row in rows if row["end_time"] < noon]
    put(session.store, [row for row in rows if row["queue"] != "OAK" or row["end_time"].date() < noon.date()])
    session.store.publish(make_sums(session.store, Window.of_days(day(0), day(running - 1))))
    update(session.store, day(running), TodaySettings(), partial=True)
    found = session.flags.today.incidents().rows.to_pylist()
    assert [(row["site"], row["metric"]) for row in found] == [("OAK", "arrivals")]
    parts = usual_parts(session.store, Sites())
    week = [row for row in rows if day(running - 7) <= row["end_time"].date() < day(running)]
    by_hour = sum(row["end_time"].hour < 13 for row in week) / len(week)
    assert parts["PINE"] == pytest.approx(by_hour, abs=0.01)


def test_a_running_day_without_jobs_changes_nothing(session: Session) -> None:
    put(session.store, jobs_of(range(BAD_FROM), bad=False))
    session.flags.today.update(day(BAD_FROM - 1))
    before = rows_of(session)
    assert session.flags.today.update_running_day().rows_in == 0
    assert rows_of(session) == before
