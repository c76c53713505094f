"""Nights with severe issues of jobs, and the mails to support: once, and again after some days."""

import json
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pytest

from esjobs import Settings
from esjobs import open as open_session
from scheduler.notifications.job_issues import running_job
from tests.scheduler.notifications.servers import MailServer, mail_server
from tests.scheduler.stage import FIRST, Hands, Stage, days

SUPPORT = "support@grid.example"
QUIET_DAYS = 2


@pytest.fixture
def server() -> Iterator[MailServer]:
    """A mail server that takes everything."""
    with mail_server() as running:
        yield running


@pytest.fixture
def stage(tmp_path: Path, server: MailServer) -> Iterator[Stage]:
    """An installation with a support team and an operator; jobs of two days at most make a window."""
    people = [
        {"name": role, "role": role, "channel": "mail", "address": f"{role}@grid.example"}
        for role in ("support", "operator", "coordinator")
    ]
    settings = Settings.model_validate(
        {
            "store": f"duckdb:{tmp_path / 'jobs.duckdb'}",
            "fit": {"methods": ("gamma",), "nightly": False},
            "nights": {"windows": (2,), "headline": 2, "late_days": 2},
            "issues": {"quiet_days": QUIET_DAYS},
            "notify": {"mail": server.settings(security="none"), "recipients": people},
        }
    )
    hands = Hands()
    with open_session(settings=settings, clock=hands.clock) as session:
        yield Stage(session, hands)


def idle_jobs(stage: Stage, folder: Path, day: date, user: str, n: int = 1) -> None:
    """Jobs of a user on a day that used 1 % of 500 cores during ten hours."""
    end = datetime.combine(day, time(12)).isoformat() + "Z"
    rows = [
        {
            "source": "batch",
            "job_id": f"{user}-{day}-{number}",
            "queue": "CLUSTER",
            "user": user,
            "end_time": end,
            "wall_s": 36000,
            "cores": 500,
            "cpu_s": 180000,
            "state": "finished",
        }
        for number in range(n)
    ]
    path = folder / f"{user}-{day}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    stage.session.ingest("jobs", [path])


def told(server: MailServer, user: str) -> list[str]:
    """Subjects of the mails to support that are about a user."""
    return [mail["Subject"] for to, mail in server.taken if to == SUPPORT and user in text_of(mail)]


def text_of(mail: object) -> str:
    body = mail.get_body(("plain",))  # type: ignore[attr-defined]
    return " ".join(body.get_content().split())


def test_support_is_told_once_per_recurrence_and_not_again_by_a_rerun(
    stage: Stage, server: MailServer, tmp_path: Path
) -> None:
    nights = days(FIRST, 7)
    # on two days, then two quiet ones and again; the last day has nothing
    bad = {nights[0], nights[1], nights[5]}
    after = []
    for night in nights:
        if night in bad:
            idle_jobs(stage, tmp_path, night, "alice", n=2)
        stage.live(night)
        after.append(len(told(server, "alice")))
    assert after == [1, 1, 1, 1, 1, 2, 2]
    [mail] = [mail for to, mail in server.taken if to == SUPPORT][:1]
    assert "User alice: 2 jobs with critical issues" in text_of(mail)
    assert "esjobs show issues --user alice --min-severity major" in text_of(mail)
    # nobody else is told of the jobs of users
    assert not any("alice" in text_of(mail) for to, mail in server.taken if to != SUPPORT)
    stage.nights.rerun(nights[5])
    stage.nights.rerun(nights[0])
    assert len(told(server, "alice")) == 2
    # another user's jobs of that day come late: the day is detected again, and support is told of him alone
    idle_jobs(stage, tmp_path, nights[6], "bob")
    stage.trigger(nights[6])
    stage.arrive(nights[6] + timedelta(days=1))
    stage.trigger(nights[6] + timedelta(days=1))
    assert len(told(server, "alice")) == 2
    assert len(told(server, "bob")) == 1


def test_a_notice_is_repeated_while_it_goes_on_and_previewed(
    stage: Stage, server: MailServer, tmp_path: Path
) -> None:
    nights = days(FIRST, 5)
    after = []
    for night in nights:
        idle_jobs(stage, tmp_path, night, "carol")
        stage.live(night)
        after.append(len(told(server, "carol")))
    assert after == [1, 1, 2, 2, 3]
    for night, n_notices in zip(nights, (2, 0, 2, 0, 2), strict=True):
        # a user and no project, of a night that is over
        rows = stage.session.nights.notifications.preview(night, tmp_path / str(night)).to_pylist()
        found = [row["notices"] for row in rows if row["recipient"] == "support"]
        assert bool(found) == bool(n_notices)
        assert all("carol" in (tmp_path / str(night) / "support.txt").read_text() for _ in found)


def test_a_running_job_is_mailed_at_once_and_once(stage: Stage, server: MailServer) -> None:
    stage.live(FIRST)
    now = stage.session._context.clock()
    facts = {"source": "alpha", "job_id": "4711", "rule": "gpu-idle", "user": "carol", "finding": "idle"}
    for _ in range(2):
        stage.nights.notifications.send(alerts=[running_job({**facts, "warned_at": now})])
    (mail,) = [mail for to, mail in server.taken if "4711" in text_of(mail)]
    assert mail["To"] == SUPPORT
    assert "carol" in text_of(mail)
