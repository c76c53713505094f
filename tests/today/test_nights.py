"""Daily watch of stored jobs: planted truth, repeated and interrupted nights, stores that lack things."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from esjobs.api.session import Session
from esjobs.core.errors import NoJobsError, NoResultError, StoreError, UsageError
from esjobs.publish.publication import read_table
from esjobs.schema.today import DAY_SUMS, INCIDENT_NIGHTS, INCIDENTS, OWNERS, TABLES, TODAY_DAYS
from esjobs.today.nights import update
from esjobs.today.sentences import literals_of
from esjobs.today.settings import TodaySettings
from esjobs.today.watching import Watch
from scheduler.notifications.incident_notices import incident_notices
from tests.conftest import memory_session
from tests.delivered.test_pledges import written
from tests.today.grid_jobs import BAD_FROM, BAD_SITE, BAD_TO, DAYS, SITES, day, jobs_of, put

SETTINGS = TodaySettings()


def rows_of(session: Session) -> dict[str, list[str]]:
    """Every row of every table, as texts."""
    return {table.name: sorted(map(str, read_table(session.store, table).to_pylist())) for table in TABLES}


@pytest.fixture
def filled(session: Session) -> Session:
    put(session.store, jobs_of(range(DAYS)))
    return session


def incident(session: Session, number: int) -> dict[str, Any]:
    rows: list[dict[str, Any]] = session.flags.today.incidents(day(number)).rows.to_pylist()
    assert len(rows) == 1
    return rows[0]


def test_the_planted_incident_is_found_with_date_cost_and_cause(filled: Session) -> None:
    filled.flags.today.update()
    assert filled.flags.today.incidents(day(BAD_FROM - 1)).rows.num_rows == 0
    row = incident(filled, BAD_TO)
    assert (row["site"], row["state"], row["since"]) == (BAD_SITE, "open", day(BAD_FROM))
    assert row["efficiency"] == pytest.approx(0.45, abs=0.02)
    assert row["efficiency_expected"] == pytest.approx(0.8, abs=0.03)
    assert row["failed"] == pytest.approx(0.25, abs=0.15)
    assert row["cause"] == "all queues and kinds of work"
    # 8 cores x 15,000 s x 60 jobs of which 3 in 4 finished, at 45 % of what 80 % would have done
    a_day = 8 * 15_000 * 60 * 0.75 * (1 - 0.45 / 0.8) / 3600
    assert row["total_core_h"] == pytest.approx(3 * a_day, rel=0.5)
    assert row["nights"] == 3


def test_the_sums_are_those_of_the_jobs(filled: Session) -> None:
    filled.flags.today.update()
    sums = read_table(filled.store, DAY_SUMS).to_pylist()
    assert sum(row["n_jobs"] for row in sums) == DAYS * len(SITES) * 60
    assert {row["outcome"] for row in sums} == {"finished", "failed", "failed, exit code 0:15"}
    wanted = filled.query(["queue"], ["core_h", "jobs"]).rows.to_pylist()
    for row in wanted:
        mine = [one for one in sums if one["queue"] == row["queue"]]
        assert sum(one["core_s"] for one in mine) / 3600 == pytest.approx(row["core_h"])
        assert sum(one["n_jobs"] for one in mine) == row["jobs"]


def test_nights_repeated_and_judged_one_after_the_other_leave_equal_rows(filled: Session) -> None:
    filled.flags.today.update()
    at_once = rows_of(filled)
    for number in (DAYS - 1, BAD_FROM, 3):
        filled.flags.today.update(day(number))
        assert rows_of(filled) == at_once
    with memory_session() as other:
        for number in range(DAYS):
            put(other.store, jobs_of([number]), str(number))
            other.flags.today.update(day(number))
        assert rows_of(other) == at_once


@pytest.mark.parametrize("n_codes", [0, 20])
def test_a_category_never_seen_before_is_the_cause(session: Session, n_codes: int) -> None:
    def change(row: dict[str, Any], number: int, index: int) -> dict[str, Any]:
        if row["state"] == "failed" and n_codes:
            row["exit_code"] = str(1 + (7 * number + index) % n_codes)
        if number >= BAD_FROM and row["queue"] == "OAK" and index % 4 == 0:
            row |= {"state": "failed", "exit_code": "99"}
        return row

    put(session.store, jobs_of(range(DAYS), bad=False, change=change))
    session.flags.today.update()
    row = incident(session, BAD_FROM)
    assert (row["site"], row["metric"], row["since"]) == ("OAK", "failed", day(BAD_FROM))
    assert literals_of(row["cause_key"]) == ("failed", (("category", "failed, exit code 99"),))
    assert row["cause_share"] > 0.8


def test_an_error_code_is_a_category(session: Session) -> None:
    def change(row: dict[str, Any], number: int, index: int) -> dict[str, Any]:
        if row["state"] == "failed":
            row["error"] = "exe:65"
        if number >= BAD_FROM and row["queue"] == "OAK" and index % 4 == 0:
            row |= {"state": "failed", "error": "pilot:1099", "exit_code": "65"}
        return row

    put(session.store, jobs_of(range(DAYS), bad=False, change=change))
    session.flags.today.update()
    row = incident(session, BAD_FROM)
    assert literals_of(row["cause_key"]) == ("failed", (("category", "failed, pilot:1099"),))
    metrics = {each["metric"] for each in session.flags.today.days("OAK").rows.to_pylist()}
    assert {"failed: failed, pilot:1099", "failed: failed, exe:65"} <= metrics


def test_a_task_that_fails_everywhere_is_one_incident_that_ends_with_its_jobs(session: Session) -> None:
    def change(row: dict[str, Any], number: int, index: int) -> dict[str, Any]:
        if number in (BAD_FROM, BAD_FROM + 1) and index % 6 == 0:
            row |= {"task_id": "broken", "state": "failed", "error": "trans:11"}
        return row

    put(session.store, jobs_of(range(BAD_FROM + 5), bad=False, change=change))
    session.flags.today.update()
    row = incident(session, BAD_FROM + 1)
    assert (row["site"], row["state"], row["since"]) == ("everywhere", "open", day(BAD_FROM))
    assert "task broken" in row["cause"]
    assert incident(session, BAD_FROM + 2)["state"] == "open"
    ended = incident(session, BAD_FROM + 3)
    assert (ended["state"], ended["until"]) == ("closed", day(BAD_FROM + 1))
    assert session.flags.today.incident(SITES[0], window=f"{day(BAD_FROM)}/{day(BAD_FROM + 2)}").rows.num_rows
    with pytest.raises(UsageError):
        session.flags.today.incident("everywhere")


@pytest.mark.parametrize("owner", OWNERS)
def test_tasks_of_one_owner_that_fail_everywhere_are_one_incident(session: Session, owner: str) -> None:
    def change(row: dict[str, Any], number: int, index: int) -> dict[str, Any]:
        row[owner] = f"mine-{index % 12 if index % 12 < 3 else 'not'}"
        row["task_id"] = f"{number // 4}-{index // 12 % 3}-{row[owner]}"
        if number >= BAD_FROM and row[owner] == "mine-0":
            row |= {"state": "failed", "exit_code": str(index % 3)}
        return row

    put(session.store, jobs_of(range(BAD_FROM + 2), bad=False, change=change))
    session.flags.today.update()
    for number in (BAD_FROM, BAD_FROM + 1):
        row = incident(session, number)
        assert (row["site"], row["state"], row["since"]) == ("everywhere", "open", day(BAD_FROM))
        assert literals_of(row["cause_key"]) == ("failed", ((owner, "mine-0"),))
        named = "mine-0" in row["cause"] + row["sentence"]
        assert named == (owner == "release"), "people are named in the key only"


def test_a_user_is_the_cause_at_a_site_without_tasks(session: Session) -> None:
    def change(row: dict[str, Any], number: int, index: int) -> dict[str, Any]:
        row |= {"task_id": None, "processing_type": None, "user": f"u{index % 5}"}
        if number >= BAD_FROM and index % 5 == 3:
            row["cpu_s"] = row["cpu_s"] / 4
        return row

    put(session.store, jobs_of(range(BAD_FROM + 1), bad=False, sites=["FRITZ"], change=change))
    session.flags.today.update()
    row = next(row for row in session.flags.today.incidents(day(BAD_FROM)).rows.to_pylist())
    assert literals_of(row["cause_key"]) == ("efficiency", (("user", "u3"),))
    assert row["cause"] == "one user"
    assert row["onset"] is None or row["onset"].date() in (day(BAD_FROM - 1), day(BAD_FROM))


def test_jobs_without_owner_have_nothing_in_common(session: Session) -> None:
    def change(row: dict[str, Any], number: int, index: int) -> dict[str, Any]:
        row["user"] = None if index % 2 else f"u{index}"
        row["task_id"] = f"{number // 4}-{index % 6}"
        if number >= BAD_FROM and index % 2:
            row |= {"state": "failed", "exit_code": str(index % 3)}
        return row

    put(session.store, jobs_of(range(BAD_FROM + 1), bad=False, change=change))
    session.flags.today.update()
    rows = session.flags.today.incidents(day(BAD_FROM)).rows.to_pylist()
    assert rows
    assert not [row for row in rows if '"user"' in row["cause_key"]]


def test_an_incident_everywhere_can_be_acknowledged(session: Session) -> None:
    def change(row: dict[str, Any], number: int, index: int) -> dict[str, Any]:
        if number >= BAD_FROM:
            row["cpu_s"] = row["cpu_s"] / 2
        return row

    put(session.store, jobs_of(range(BAD_FROM + 1), bad=False, change=change))
    session.flags.today.update()
    assert incident(session, BAD_FROM)["site"] == "everywhere"
    session.flags.today.acknowledge("everywhere", until=day(BAD_FROM + 3), by="ann")
    session.flags.today.update()
    assert incident(session, BAD_FROM)["state"] == "acknowledged"


def test_jobs_that_fail_at_once_cost_what_they_used(session: Session) -> None:
    def change(row: dict[str, Any], number: int, index: int) -> dict[str, Any]:
        if number == BAD_FROM and row["queue"] == "OAK" and index % 3 == 0:
            start = row["end_time"] - timedelta(seconds=120)
            row |= {
                "state": "failed",
                "error": "pilot:1305",
                "wall_s": 120.0,
                "cpu_s": 8.0,
                "start_time": start,
            }
        return row

    put(session.store, jobs_of(range(BAD_FROM + 1), bad=False, change=change))
    session.flags.today.update()
    row = incident(session, BAD_FROM)
    assert (row["site"], row["metric"]) == ("OAK", "failed")
    # 20 jobs of 8 cores for two minutes
    assert row["cost_core_h"] == pytest.approx(20 * 8 * 120 / 3600, rel=0.3)


def test_late_jobs_change_the_night(filled: Session) -> None:
    filled.flags.today.update()
    assert incident(filled, BAD_TO)["state"] == "open"
    put(filled.store, jobs_of(range(BAD_FROM, BAD_TO + 1), bad=False), "corrected")
    filled.flags.today.update(day(BAD_FROM))
    assert filled.flags.today.incidents(day(BAD_TO)).rows.num_rows == 0


def test_an_interrupted_night_leaves_the_rows_of_before(
    filled: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.flags.today.update(day(BAD_FROM - 1))
    before = rows_of(filled)

    def failing(*_: object) -> None:
        raise StoreError("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(Watch, "night", failing)
        with pytest.raises(StoreError):
            filled.flags.today.update(day(BAD_FROM))
    after = rows_of(filled)
    assert {**after, DAY_SUMS.name: []} == {**before, DAY_SUMS.name: []}
    filled.flags.today.update(day(BAD_FROM))
    assert incident(filled, BAD_FROM)["state"] == "open"


def test_an_acknowledged_incident_says_so_and_is_not_mailed(filled: Session) -> None:
    filled.flags.today.update(day(BAD_FROM))
    (new,) = incident_notices(filled.store, day(BAD_FROM))
    assert (new.kind, new.site, new.severity) == ("incident_opened", BAD_SITE, "warning")
    filled.flags.today.acknowledge(BAD_SITE.lower(), until=day(BAD_TO), by="ann", note="cooling")
    row = incident(filled, BAD_FROM)
    assert (row["state"], row["acknowledged_by"]) == ("acknowledged", "ann")
    assert incident_notices(filled.store, day(BAD_FROM)) == []
    filled.flags.today.update(day(BAD_TO))
    assert incident(filled, BAD_TO)["state"] == "open"
    with pytest.raises(UsageError):
        filled.flags.today.acknowledge(BAD_SITE, until=day(0), by="ann")
    with pytest.raises(UsageError):
        filled.flags.today.acknowledge("OAK", until=day(20), by="ann")


def test_a_store_without_jobs_says_so(session: Session) -> None:
    with pytest.raises(NoJobsError):
        session.flags.today.update()
    answer = session.flags.today.incidents()
    assert answer.rows.num_rows == 0
    assert answer.notes == ("no night was judged yet; run: esjobs today --update",)
    with pytest.raises(NoResultError):
        session.flags.today.acknowledge("OAK", until=day(20), by="ann")


def test_jobs_without_task_type_cores_or_times_are_judged_as_far_as_they_go(session: Session) -> None:
    rows = jobs_of(range(DAYS))
    for row in rows:
        row |= {"task_id": None, "processing_type": None, "events": None}
        if row["queue"] == "OAK":
            row |= {"cpu_s": None, "cores": None}
    put(session.store, rows)
    session.flags.today.update()
    row = incident(session, BAD_TO)
    assert (row["site"], row["state"]) == (BAD_SITE, "open")
    oak = [one for one in read_table(session.store, TODAY_DAYS).to_pylist() if one["site"] == "OAK"]
    assert "efficiency" not in {one["metric"] for one in oak}
    assert "failed" in {one["metric"] for one in oak}


def test_a_site_without_jobs_ends_nothing(session: Session) -> None:
    rows = [row for row in jobs_of(range(DAYS + 4)) if row["queue"] != BAD_SITE or _is_before(row, BAD_TO)]
    put(session.store, rows)
    session.flags.today.update()
    assert incident(session, DAYS + 3)["state"] == "open"


def _is_before(row: dict[str, Any], number: int) -> bool:
    return bool(row["end_time"].date() < day(number))


def test_few_days_are_not_judged(session: Session) -> None:
    put(session.store, jobs_of(range(BAD_FROM - 2, BAD_TO)))
    session.flags.today.update()
    assert read_table(session.store, INCIDENTS).num_rows == 0
    assert read_table(session.store, INCIDENT_NIGHTS).num_rows == 0


def test_a_report_counts_sites_and_open_incidents(filled: Session) -> None:
    report = update(filled.store, day(BAD_FROM), SETTINGS)
    assert (report.rows_in, report.rows_out) == (len(SITES), 1)
    assert report.counts == {"state open": 1}


def test_a_declared_outage_is_listed_not_mailed_and_not_learned_from(filled: Session, tmp_path: Path) -> None:
    first, last = day(BAD_FROM), day(BAD_TO + 1)
    text = f"site,begin,until\n{BAD_SITE.lower()},{first}T12:00,{last}\n"
    filled.ingest("downtimes", written(tmp_path, text, "d.csv"))
    filled.flags.today.update()
    for number in range(BAD_FROM, BAD_TO + 1):
        assert incident(filled, number)["state"] == "maintenance"
        assert incident_notices(filled.store, day(number)) == []
    assert incident(filled, BAD_TO + 1)["state"] == "maintenance"
    # the usual level is that of the days before
    judged = filled.flags.today.days(BAD_SITE).rows.to_pylist()
    (after,) = (row for row in judged if row["day"] == last and row["metric"] == "efficiency")
    assert after["expected"] == pytest.approx(0.8, abs=0.03)


def test_half_a_day_of_outage_counts_and_less_does_not(filled: Session, tmp_path: Path) -> None:
    text = f"site,begin,until\n{BAD_SITE},{day(BAD_FROM)}T12:00:01,{day(BAD_FROM + 1)}\n"
    filled.ingest("downtimes", written(tmp_path, text, "d.csv"))
    filled.flags.today.update()
    assert incident(filled, BAD_FROM)["state"] == "open"
