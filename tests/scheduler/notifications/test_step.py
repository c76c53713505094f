"""The step of a night against a real mail server: once, to whom, what waits, what is abandoned."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from esjobs.core.errors import StoreBusyError
from esjobs.publish.publication import rows_table
from esjobs.schema.drift import DRIFTS
from esjobs.store.duck.store import DuckStore
from scheduler.notifications.gathering import ingest_stopped
from scheduler.notifications.settings import NotifySettings
from scheduler.notifications.step import notify_night
from tests.messages import raised
from tests.scheduler.notifications.made_up import (
    NIGHT,
    NOW,
    Clock,
    Pauses,
    coordinator,
    event,
    events,
    nights,
    office,
    operator,
    outbox,
    settings,
    site,
    states,
)
from tests.scheduler.notifications.servers import Listener, MailServer

DAY = timedelta(days=1)


def mailed(server: MailServer, *recipients: dict[str, Any], **given: Any) -> NotifySettings:
    return settings(*recipients, mail=server.settings(security="none"), **given)


def to(server: MailServer) -> list[tuple[str, str]]:
    """To whom and what, in the order of arrival."""
    return [(address, mail["Subject"]) for address, mail in server.taken]


def test_a_change_is_told_once_to_those_it_concerns(store: DuckStore, server: MailServer) -> None:
    made = mailed(server, site(), site("taiwan", sites=["Taiwan*"]), coordinator(), operator())
    events(store, event(), event("OTHER_Q", "noticed", deviation=0.4))
    report = notify_night(store, office(made), NIGHT)
    assert (report.rows_in, report.rows_out, report.counts) == (2, 2, {})
    assert to(server) == [
        ("cern@site.example", "[esjobs] CERN-PROD_UCORE: jobs run 31 % slower than the declared corepower"),
        ("coordinators@grid.example", "[esjobs] 1 confirmed deviation, 1 candidate: 2026-11-21"),
    ]
    assert states(store) == [("cern", "sent"), ("coordinators", "sent")]
    before = outbox(store)
    for _ in range(2):
        assert notify_night(store, office(made, Clock(NOW + DAY)), NIGHT).rows_out == 0
    assert len(server.taken) == 2
    assert outbox(store) == before
    # what else changes in the same night is told, and nothing of before again
    events(store, event(), event("CERN-PROD_HPC"), event("OTHER_Q", "noticed"))
    notify_night(store, office(made), NIGHT)
    assert [(address, subject) for address, subject in to(server)[2:]] == [
        ("cern@site.example", "[esjobs] CERN-PROD_HPC: jobs run 31 % slower than the declared corepower"),
        ("coordinators@grid.example", "[esjobs] 1 confirmed deviation: 2026-11-21"),
    ]


def test_what_people_enter_between_nights_is_in_the_next_mail_once(
    store: DuckStore, server: MailServer
) -> None:
    """Acts of a day bear the date of the last night, which has had its mail."""
    made = mailed(server, coordinator())
    events(store, event(), event("OTHER_Q", "noticed"))
    notify_night(store, office(made), NIGHT)
    acts: dict[str, Any] = {"entered_by": "ann", "sentence": "ann knows: a benchmark runs", "position": 2}
    until = NIGHT + 9 * DAY
    done = event(kind="acknowledged", to_state="acknowledged", acknowledged_until=until, **acts)
    events(store, event(), event("OTHER_Q", "noticed"), done)
    # the next night changes nothing of its own
    for number in (1, 1, 2):
        notify_night(store, office(made, Clock(NOW + number * DAY)), NIGHT + number * DAY)
    assert len(server.taken) == 2
    (_, mail) = server.taken[1]
    body = mail.get_body(("plain",))
    assert body is not None
    assert "a benchmark runs" in body.get_content()
    assert "OTHER_Q" not in body.get_content()


def test_what_is_told_stands_in_the_mail(store: DuckStore, server: MailServer) -> None:
    events(store, event(), event(processing_type="simul", deviation=-0.6))
    notify_night(store, office(mailed(server, site(), link="https://grid.example/r")), NIGHT)
    [(_, mail)] = server.taken
    plain, html = (mail.get_body((kind,)) for kind in ("plain", "html"))
    assert plain is not None
    assert html is not None
    for text in (plain.get_content(), html.get_content()):
        flat = " ".join(text.split())
        for said in (
            *(
                "CERN-PROD_UCORE",
                "31 % slower",
                "26 to 36 %",
                "10.30 HS06",
                "2026-10-23 to 2026-11-21 (30 days)",
            ),
            *("412 jobs of 2026-11-01", "simul", "SMT", "Please reply", "https://grid.example/r"),
        ):
            assert said in flat
    [picture] = [part for part in mail.walk() if part.get_content_type() == "image/png"]
    assert f'src="cid:{picture["Content-ID"].strip("<>")}"' in html.get_content()
    assert picture.get_content().startswith(b"\x89PNG")
    assert mail["Auto-Submitted"] == "auto-generated"


def test_what_is_known_of_why_stands_in_the_mail(store: DuckStore, server: MailServer) -> None:
    events(store, event())
    flag = {"level": "queue", "processing_type": "all", "name": "CERN-PROD_UCORE", "day": NIGHT - 12 * DAY}
    for run, said in (("0123456789ab", "CPU mix changed on 2026-11-09."), ("another", "Of another run.")):
        rows = [flag | {"run": f"d-{run}", "speed_run": run, "sentence": said}]
        batches = rows_table(DRIFTS, rows).to_batches()
        store.publish([store.replace(DRIFTS, f"d-{run}", batches)])
    notify_night(store, office(mailed(server, site())), NIGHT)
    body = server.taken[0][1].get_body(("plain",))
    assert body is not None
    assert "CPU mix changed on 2026-11-09." in body.get_content()
    assert "another run" not in body.get_content()


def test_one_recipient_never_blocks_others(store: DuckStore, server: MailServer, hook: Listener) -> None:
    hook.answers += [None] * 20
    chat = coordinator("chat", channel="slack", address=None, url=f"{hook.url}/a/b")
    broken = coordinator("broken", language="xx")
    made = mailed(server, chat, broken, site("gone"), site("slow"), site(), operator(), timeout_s=1)
    server.refuse_address["gone@site.example"] = "550 no such user"
    server.slow_s, server.slow_for = 30.0, "slow@site.example"
    events(store, event())
    pauses = Pauses()
    report = notify_night(store, office(made, pauses=pauses), NIGHT)
    assert states(store) == [
        *[("broken", "failed"), ("cern", "sent"), ("chat", "failed"), ("gone", "abandoned")],
        *[("operators", "sent"), ("slow", "failed")],
    ]
    assert report.counts == {"messages failed": 3, "messages abandoned": 1}
    assert len(pauses) == 1
    # rounds: who has no trouble has it before anybody is tried again
    assert server.taken[0][0] == "cern@site.example"
    [told] = [mail for address, mail in server.taken if address == "operators@grid.example"]
    assert told["Subject"] == "[esjobs] A message to gone was abandoned"
    body = told.get_body(("plain",))
    assert body is not None
    assert "550 no such user" in " ".join(body.get_content().split())


def test_what_fails_waits_for_the_next_night_and_is_given_up(store: DuckStore, server: MailServer) -> None:
    made = mailed(server, site(), give_up_days=3)
    clock = Clock()
    events(store, event())
    server.answers += ["451 later"] * 2
    notify_night(store, office(made, clock), NIGHT)
    [row] = outbox(store)
    assert (row["state"], row["attempts"], "451 later" in row["error"]) == ("failed", 2, True)
    clock.on(NIGHT + DAY)
    notify_night(store, office(made, clock), NIGHT + DAY)
    [row] = outbox(store)
    assert (row["state"], row["attempts"], row["error"]) == ("sent", 3, None)
    assert (row["first_at"], row["sent_at"]) == (NOW, NOW + DAY)

    events(store, event("CERN-PROD_B", night=NIGHT + DAY), night=NIGHT + DAY)
    for number in range(1, 8):
        server.answers[:] = ["451 later"] * 2
        clock.on(NIGHT + number * DAY)
        notify_night(store, office(made, clock), NIGHT + number * DAY)
    row = outbox(store)[-1]
    assert (row["state"], row["attempts"]) == ("abandoned", 7)
    assert "not delivered in 3 days" in row["error"]
    server.answers.clear()
    notify_night(store, office(made, clock), NIGHT + 7 * DAY)
    assert len(server.taken) == 1
    notify_night(store, office(made, clock), NIGHT + 7 * DAY, retry=True)
    assert len(server.taken) == 2
    assert [state for _, state in states(store)] == ["sent", "sent"]


def test_the_same_message_is_tried_again(store: DuckStore, server: MailServer) -> None:
    """A server that took a message and broke off gets it again under the same name, to the byte."""
    server.drop = 1
    events(store, event())
    notify_night(store, office(mailed(server, site())), NIGHT)
    [first, second] = [mail for _, mail in server.taken]
    assert first["Message-ID"] == second["Message-ID"]
    # what the server adds in front of it is its own
    assert first.as_bytes().split(b"From:", 1)[1] == second.as_bytes().split(b"From:", 1)[1]
    assert states(store) == [("cern", "sent")]


@pytest.mark.parametrize("content", ["http://[::1/x", "no address", "", None])
def test_a_file_that_holds_no_address(store: DuckStore, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "url"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    events(store, event())
    given = coordinator("chat", channel="slack", address=None, url_file=str(path))
    report = notify_night(store, office(settings(given)), NIGHT)
    assert states(store) == [("chat", "failed")]
    assert str(path) in report.notes[0]
    assert "defect" not in report.notes[0]


def test_a_webhook_is_retried_when_it_asks_to(store: DuckStore, hook: Listener) -> None:
    given = coordinator("hook", channel="webhook", address=None, url=hook.url, secret="s")  # noqa: S106
    hook.answers.append((429, {"retry-after": "7"}, b""))
    events(store, event())
    pauses = Pauses()
    notify_night(store, office(settings(given), pauses=pauses), NIGHT)
    assert [posted.headers["webhook-id"] for posted in hook.posted] == [outbox(store)[0]["notification"]] * 2
    assert pauses == [7.0]
    assert states(store) == [("hook", "sent")]


def test_a_weekly_digest_has_every_night_once(store: DuckStore, server: MailServer) -> None:
    made = mailed(server, coordinator(digest="weekly"), site())
    clock = Clock()
    monday = date(2026, 11, 16)
    for number in range(8):
        night = monday + number * DAY
        clock.on(night)
        kind = "opened" if number == 2 else "noticed"
        events(store, event(f"CERN-PROD_{number}", kind, night=night), night=night)
        for _ in range(2):
            notify_night(store, office(made, clock), night)
    # the mail to the site at once, the digest on Monday: the nights from Monday to Sunday
    assert to(server) == [
        ("cern@site.example", "[esjobs] CERN-PROD_2: jobs run 31 % slower than the declared corepower"),
        (
            "coordinators@grid.example",
            "[esjobs] 1 confirmed deviation, 6 candidates: 2026-11-16 to 2026-11-22",
        ),
    ]
    found = [state for name, state in states(store) if name == "coordinators"]
    assert sorted(found) == ["bundled"] * 7 + ["collected", "sent"]
    [digest] = [row for row in outbox(store) if row["recipient"] == "coordinators" and row["state"] == "sent"]
    bundled = [row for row in outbox(store) if row["state"] == "bundled"]
    assert {row["bundle"] for row in bundled} == {digest["notification"]}
    assert sorted(" ".join(row["notices"] for row in bundled).split()) == digest["notices"].split()


def test_a_monday_that_nobody_ran_loses_nothing(store: DuckStore, server: MailServer) -> None:
    made = mailed(server, coordinator(digest="weekly"))
    clock = Clock()
    for night in (date(2026, 11, 20), date(2026, 11, 24)):
        clock.on(night)
        events(store, event("CERN-PROD_Q", night=night), night=night)
        notify_night(store, office(made, clock), night)
    assert [subject for _, subject in to(server)] == ["[esjobs] 1 confirmed deviation: 2026-11-20"]


def test_nights_that_went_wrong(store: DuckStore, server: MailServer) -> None:
    made = mailed(server, operator(), coordinator(), site())
    clock = Clock()
    nights(store, d2026_11_19="missing", d2026_11_20="failed", d2026_11_21="running", d2026_10_01="failed")
    alert = ingest_stopped(NOW - 40 * timedelta(hours=1), 36, NOW)
    for _ in range(2):
        notify_night(store, office(made, clock), NIGHT, alerts=[alert])
    assert to(server) == [
        ("operators@grid.example", "[esjobs] Night 2026-11-20 failed: the cluster did not answer, and 2 more")
    ]
    clock.on(NIGHT + DAY)
    nights(store, d2026_11_20="done", d2026_11_21="done", d2026_11_22="failed")
    again = ingest_stopped(NOW - 40 * timedelta(hours=1), 36, NOW + DAY)
    for _ in range(2):
        notify_night(store, office(made, clock), NIGHT + DAY, alerts=[again])
    assert to(server)[1:] == [
        ("operators@grid.example", "[esjobs] Night 2026-11-22 failed: the cluster did not answer, and 1 more")
    ]
    body = server.taken[-1][1].get_body(("plain",))
    assert body is not None
    assert "Night 2026-11-20 is complete" in body.get_content()


def test_who_catches_up_a_year_writes_to_nobody(store: DuckStore, server: MailServer) -> None:
    made = mailed(server, site(), coordinator(digest="weekly"))
    old = NIGHT - 15 * DAY
    events(store, event(night=old), night=old)
    notify_night(store, office(made), old)
    notify_night(store, office(made), old, retry=True)
    assert not server.taken
    assert states(store) == [("cern", "abandoned"), ("coordinators", "abandoned")]
    assert "within_days" in outbox(store)[0]["error"]


def test_a_change_whose_night_moves_is_told_once(store: DuckStore, server: MailServer) -> None:
    """Late records make a deviation open a day earlier: another event, the same change for who reads it."""
    made = mailed(server, site())
    clock = Clock(NOW + 2 * DAY)
    late, later = NIGHT + DAY, NIGHT + 5 * DAY
    events(store, event(night=late), night=late)
    notify_night(store, office(made, clock), late)
    assert len(server.taken) == 1
    events(store, night=late)
    events(store, event())
    for _ in range(2):
        notify_night(store, office(made, clock), NIGHT)
    assert len(server.taken) == 1
    assert sorted(states(store)) == [("cern", "duplicate"), ("cern", "sent")]
    # what ends, and what begins again, are changes of their own
    events(store, event(kind="closed", night=later), event(kind="reopened", night=later), night=later)
    clock.on(later)
    notify_night(store, office(made, clock), later)
    assert [subject for _, subject in to(server)[1:]] == [
        "[esjobs] 1 new deviation, 1 ended: CERN-PROD_UCORE"
    ]


def test_a_night_that_is_run_again_tells_what_it_moves_after_it(store: DuckStore, server: MailServer) -> None:
    made = mailed(server, site())
    clock = Clock(NOW + 2 * DAY)
    events(store, event("CERN-PROD_B", night=NIGHT + DAY), night=NIGHT + DAY)
    notify_night(store, office(made, clock), NIGHT)
    assert [subject for _, subject in to(server)] == [
        "[esjobs] CERN-PROD_B: jobs run 31 % slower than the declared corepower"
    ]


def test_a_recipient_that_is_gone(store: DuckStore, server: MailServer) -> None:
    server.answers += ["451 later"] * 2
    events(store, event())
    clock = Clock()
    notify_night(store, office(mailed(server, site(), coordinator(digest="weekly")), clock), NIGHT)
    clock.on(NIGHT + 9 * DAY)
    notify_night(store, office(mailed(server, site("other")), clock), NIGHT + 9 * DAY)
    assert states(store) == [("cern", "abandoned"), ("coordinators", "abandoned")]
    assert not server.taken


def test_without_recipients_nothing_is_asked(store: DuckStore) -> None:
    store.close()
    assert notify_night(store, office(settings()), NIGHT).rows_in == 0


def test_two_at_once(store: DuckStore, server: MailServer) -> None:
    """While one sends, another waits for its turn, and has nothing left to send."""
    made = mailed(server, site())
    events(store, event())
    first = office(made)
    lease = first.lease(store)
    lease.take()
    second = office(made)
    with raised(StoreBusyError):
        notify_night(store, type(second)(**{**vars(second), "wait_s": 0.0}), NIGHT)
    assert not server.taken
    assert states(store) == []
    lease.give_back()
    notify_night(store, second, NIGHT)
    assert len(server.taken) == 1
