"""Users and projects with issues on a day, and what is said of them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import pyarrow as pa
import pytest

import esjobs
from esjobs.core.arrow import table_schema
from esjobs.issues.recurrence import Recurrence, recurrences
from esjobs.schema.issues import ISSUES, SEVERITIES
from scheduler.notifications.job_issues import job_issue

FIRST = date(2026, 3, 1)


def put_day(
    session: esjobs.Session,
    day: date,
    issues: Sequence[tuple[str | None, str, str, str, float]],
    job_name: str | None = None,
) -> None:
    """User, job, rule, severity and wasted core-hours of the issues of a day."""
    rows = [
        {
            "day": day,
            "source": "c",
            "job_id": job,
            "job_name": job_name,
            "user": user,
            "project": None if user is None else user[0],
            "detector": rule,
            "severity": severity,
            "severity_rank": SEVERITIES.index(severity),
            "idle_core_h": wasted,
        }
        for user, job, rule, severity, wasted in issues
    ]
    table = pa.Table.from_pylist(rows, table_schema(ISSUES))
    session.store.publish([session.store.replace(ISSUES, str(day), table.to_batches())])


def told(session: esjobs.Session, day: date, least: str = "major") -> list[tuple[str, str]]:
    return [(one.what, one.name) for one in recurrences(session.store, day, least)]


def test_only_from_a_severity_and_never_of_nobody(session: esjobs.Session) -> None:
    put_day(
        session,
        FIRST,
        [
            ("alice", "1", "cpu-idle", "minor", 5.0),
            (None, "2", "cpu-idle", "critical", 5.0),
            ("bob", "3", "memory-leak", "critical", 0.0),
            ("bob", "3", "cpu-idle", "major", 100.0),
            ("bob", "3", "cpu-unused", "major", 150.0),
            ("bob", "4", "cpu-idle", "major", 100.0),
            ("eve", "5", "cpu-idle", "major", 900.0),
        ],
    )
    assert told(session, FIRST) == [("user", "bob"), ("user", "eve"), ("project", "b"), ("project", "e")]
    assert ("user", "alice") in told(session, FIRST, "minor")
    bob = next(iter(recurrences(session.store, FIRST, "major")))
    # of a job the largest of any rule: 150 + 100
    assert (bob.n_jobs, bob.severity, bob.idle_core_h) == (2, "critical", 250.0)
    assert bob.rules == (("cpu-idle", 2), ("cpu-unused", 1), ("memory-leak", 1))


@pytest.mark.parametrize("name", ["bob", "b; rm -rf /", "a\x1b[31m\nb"])
def test_a_notice_says_who_what_and_how_to_see_more(name: str) -> None:
    found = Recurrence("user", name, FIRST, "critical", 2, (("cpu-idle", 2),), 250.4, 0.0)
    notice = job_issue(found, "major")
    assert (notice.kind, notice.severity, notice.is_flag) == ("job_issues", "critical", False)
    assert "Up to 250 core-hours could be saved" in notice.text
    assert "\x1b" not in notice.text
    assert notice.id == job_issue(Recurrence("user", name, FIRST, "major", 9, (), 0.0, 0.0), "major").id
    if name == "bob":
        assert notice.subject == "User bob: 2 jobs with critical issues"
        assert notice.text.endswith("esjobs show issues --user bob --min-severity major")
    else:
        assert "--user '" in notice.text


def test_a_mail_has_one_line_for_the_runs_of_a_name(session: esjobs.Session) -> None:
    # far enough apart that each is a recurrence
    for number in (0, 10, 20):
        bad = ("alice", str(number), "cpu-idle", "major", 200.0)
        put_day(session, FIRST + timedelta(days=number), [bad], "relax")
    put_day(session, FIRST + timedelta(days=21), [("bob", "9", "cpu-idle", "major", 200.0)], "relax")
    assert [one.repeated for one in recurrences(session.store, FIRST, "major")] == [(), ()]
    last = FIRST + timedelta(days=20)
    user, _ = recurrences(session.store, last, "major")
    (repeated,) = user.repeated
    assert (repeated.job_name, repeated.rule, repeated.n_jobs) == ("relax", "cpu-idle", 3)
    assert (repeated.first, repeated.last) == (FIRST, last)
    notice = job_issue(user, "major")
    assert f"3 jobs named relax, {FIRST} to {last}" in notice.text


def test_a_notice_names_the_costliest_jobs_and_leads_to_a_page(session: esjobs.Session) -> None:
    found = [("alice", str(at), "cpu-idle", "major", 200.0 + at) for at in range(5)]
    put_day(session, FIRST, [*found, ("alice", "3", "low-load", "critical", 10.0)], "relax")
    alice = next(iter(recurrences(session.store, FIRST, "major")))
    assert [(one.job_id, one.rule) for one in alice.examples] == [
        ("3", "low-load"),
        ("4", "cpu-idle"),
        ("2", "cpu-idle"),
    ]
    notice = job_issue(replace(alice, name="alice b"), "major", "https://esjobs.example.org/")
    assert "Costliest: job 3 (relax), low-load" in notice.text
    assert "Then jobs 4, 2." in notice.text
    assert "https://esjobs.example.org/user/alice%20b" in notice.text
