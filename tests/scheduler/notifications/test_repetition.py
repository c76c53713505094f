"""One wrong declaration, one message: what repeats what a recipient has read, over nights."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from esjobs.schema.speed import FLAGS, LINES
from esjobs.store.duck.store import DuckStore
from scheduler.notifications.gathering import ingest_stopped
from scheduler.notifications.notifier import Notifier
from scheduler.notifications.repetition import agree
from scheduler.notifications.settings import NotifySettings
from scheduler.notifications.step import notify_night
from tests.scheduler.notifications.made_up import (
    NIGHT,
    NOW,
    Clock,
    coordinator,
    event,
    events,
    nights,
    office,
    operator,
    outbox,
    publish,
    settings,
    site,
    states,
)
from tests.scheduler.notifications.servers import MailServer

DAY = timedelta(days=1)
Happened = tuple[int, str, str, float]
"""After how many nights, what, in which kind of work, and how much it deviates."""
QUEUE = "CERN-PROD_UCORE"


def live(store: DuckStore, server: MailServer, made: NotifySettings, happened: Sequence[Happened]) -> Clock:
    """Nights with these changes of one queue, each followed by its messages."""
    clock = Clock()
    for number in sorted({each[0] for each in happened}):
        night = NIGHT + number * DAY
        clock.on(night)
        rows = [
            event(QUEUE, kind, night, processing_type=work, deviation=size)
            for day, kind, work, size in happened
            if day == number
        ]
        events(store, *rows, night=night)
        for _ in range(2):
            notify_night(store, office(made, clock), night)
    return clock


def mailed(server: MailServer, *recipients: dict[str, Any], **given: Any) -> NotifySettings:
    return settings(*recipients, mail=server.settings(security="none"), **given)


def subjects(server: MailServer, recipient: str) -> list[str]:
    return [
        str(mail["Subject"]).removeprefix("[esjobs] ")
        for address, mail in server.taken
        if address.startswith(recipient)
    ]


BELOW = f"{QUEUE}: jobs run 31 % slower than the declared corepower"
OVER = f"{QUEUE}: no longer deviates from the declared corepower"


@pytest.mark.parametrize(
    ("happened", "read"),
    [
        # the demo: confirmed for all work, then for each kind on a night of its own
        (
            [(0, "opened", "all", -0.31), (4, "opened", "simul", -0.34), (9, "opened", "evgen", -0.27)],
            [BELOW],
        ),
        # a kind that comes first covers all work
        ([(0, "opened", "simul", -0.31), (3, "opened", "all", -0.28)], [BELOW.replace("jobs", "simul jobs")]),
        # a kind that would still deviate after the correction is news
        (
            [(0, "opened", "all", -0.31), (4, "opened", "simul", -0.5)],
            [BELOW, BELOW.replace("jobs run 31 %", "simul jobs run 50 %")],
        ),
        (
            [(0, "opened", "all", -0.31), (4, "opened", "simul", 0.4)],
            [BELOW, f"{QUEUE}: simul jobs run 40 % faster than the declared corepower"],
        ),
        # it is over when the last kind is
        (
            [
                (0, "opened", "all", -0.31),
                (1, "opened", "simul", -0.3),
                (5, "closed", "all", -0.1),
                (6, "closed", "simul", -0.1),
            ],
            [BELOW, OVER],
        ),
        (
            [(0, "opened", "all", -0.31), (5, "closed", "all", -0.1), (5, "closed", "simul", -0.1)],
            [BELOW, OVER],
        ),
        # a declaration that is wrong the other way round is another deviation
        (
            [(0, "opened", "all", -0.31), (5, "opened", "all", 0.4), (6, "opened", "simul", 0.38)],
            [BELOW, f"{QUEUE}: jobs run 40 % faster than the declared corepower"],
        ),
        (
            [(0, "opened", "all", -0.31), (5, "closed", "all", -0.1), (20, "reopened", "all", -0.31)],
            [BELOW, OVER, BELOW],
        ),
    ],
)
def test_a_site_reads_of_a_deviation_once(
    store: DuckStore, server: MailServer, happened: list[Happened], read: list[str]
) -> None:
    live(store, server, mailed(server, site()), happened)
    assert subjects(server, "cern") == read


def test_no_candidate_of_a_queue_that_is_confirmed(store: DuckStore, server: MailServer) -> None:
    happened = [
        *((0, "noticed", "all", -0.3), (1, "noticed", "simul", -0.3), (2, "opened", "all", -0.31)),
        *((4, "noticed", "evgen", -0.33), (6, "noticed", "pile", 0.5), (7, "withdrawn", "simul", -0.3)),
    ]
    live(store, server, mailed(server, coordinator()), happened)
    assert subjects(server, "coord") == ["1 candidate: 2026-11-21", "1 confirmed deviation: 2026-11-23"]
    assert Counter(state for _, state in states(store)) == {"sent": 2, "repetition": 4}


def test_kinds_that_say_the_same_stand_beside_it(store: DuckStore, server: MailServer) -> None:
    live(
        store,
        server,
        mailed(server, site()),
        [(0, "opened", work, -0.3) for work in ("simul", "all", "evgen")],
    )
    [(_, mail)] = server.taken
    body = mail.get_body(("plain",))
    assert body is not None
    assert "Same deviation in: evgen, simul" in body.get_content()
    assert body.get_content().count("all processing types") == 1


def test_a_correction_that_leaves_less_than_the_limit() -> None:
    # 0.69 of the declared value, corrected: 0.62 / 0.69 is 10 % less, 0.5 / 0.69 is 28 % less
    assert agree(-0.31, -0.38, 0.2)
    assert not agree(-0.31, -0.5, 0.2)
    assert agree(-0.5, -0.5, 0.0)
    assert not any(agree(left, right, 0.2) for left, right in ((-0.1, 0.05), (None, 0.1), (-1.0, -1.0)))


def test_mails_about_a_queue_are_a_thread_of_a_list(store: DuckStore, server: MailServer) -> None:
    made = mailed(server, site(), coordinator(digest="weekly"))
    happened = [(0, "opened", "all", -0.31), (5, "closed", "all", -0.1), (19, "reopened", "all", -0.31)]
    live(store, server, made, happened)
    to_site = [mail for address, mail in server.taken if address == "cern@site.example"]
    first = to_site[0]["Message-ID"]
    assert [mail["In-Reply-To"] for mail in to_site] == [None, first, first]
    assert [mail["References"] for mail in to_site] == [None, first, first]
    assert {mail["List-Id"] for mail in to_site} == {"site messages of esjobs <site.esjobs.grid.example>"}
    assert {mail["Auto-Submitted"] for mail in to_site} == {"auto-generated"}


def test_jobs_tasks_and_sites_behind_a_deviation(store: DuckStore, server: MailServer) -> None:
    run = {"run": "0123456789ab", "processing_type": "all", "level": "queue"}
    flag = {
        **run,
        "name": QUEUE,
        "n_jobs": 12345,
        "n_tasks": 7,
        "deviation": -0.31,
        "method": "gamma",
    }
    other = {**flag, "method": "paper", "deviation": -0.2, "n_jobs": 1}
    publish(store, FLAGS, NIGHT, [flag, other])
    publish(store, LINES, NIGHT, [{**run, "method": "gamma", "n_groups": 52}])
    live(store, server, mailed(server, site(), link="https://h.example/r"), [(0, "opened", "all", -0.31)])
    [(_, mail)] = server.taken
    for kind in ("plain", "html"):
        body = mail.get_body((kind,))
        assert body is not None
        flat = " ".join(body.get_content().split())
        assert "of 7 tasks, compared over 52 sites" in flat
        assert f"https://h.example/r#queue={QUEUE}" in flat


def test_sites_are_not_written_to_before_a_date(store: DuckStore, server: MailServer, tmp_path: Any) -> None:
    made = mailed(server, site(), coordinator(), sites_from=None)
    happened = [(0, "opened", "all", -0.31), (1, "opened", "simul", -0.3)]
    live(store, server, made, happened)
    assert (subjects(server, "cern"), subjects(server, "coord")) == (
        [],
        ["1 confirmed deviation: 2026-11-21"],
    )
    [row] = [row for row in outbox(store) if row["state"] == "withheld"]
    assert "sites_from" in row["error"]
    # a deviation that ends meanwhile is not mentioned
    clock = Clock()
    night = NIGHT + 2 * DAY
    clock.on(night)
    rows = [
        event("CERN-PROD_B", kind, night, position=number) for number, kind in ((1, "opened"), (2, "closed"))
    ]
    events(store, *rows, night=night)
    preview = Notifier(lambda: store, office(made, clock)).preview(night, tmp_path).to_pylist()
    assert ["sites_from" in row["note"] for row in preview] == [True, False]
    notify_night(store, office(made, clock), night)
    later = NIGHT + 20 * DAY
    clock.on(later)
    made = mailed(server, site(), coordinator(), sites_from=later + DAY)
    for _ in range(2):
        notify_night(store, office(made, clock), later)
    assert subjects(server, "cern") == [BELOW]
    assert server.taken[-1][1]["Date"].datetime == clock.now
    assert [row["state"] for row in outbox(store) if row["recipient"] == "cern"].count("withheld") == 0


def test_nights_that_are_caught_up_say_once_that_no_jobs_arrive(store: DuckStore, server: MailServer) -> None:
    made = mailed(server, operator())
    clock = Clock()
    days = [NIGHT - back * DAY for back in range(5, -1, -1)]
    nights(store, **{f"d{night:%Y_%m_%d}": "missing" for night in days[:-1]})
    for number, night in enumerate(days):
        if number:
            nights(store, **{f"d{days[number - 1]:%Y_%m_%d}": "done"})
        # each night brings some older jobs
        alert = ingest_stopped(NOW - timedelta(days=10 - number), 36, NOW)
        notify_night(store, office(made, clock), night, alerts=[alert])
    assert subjects(server, "operators") == [
        "Night 2026-11-16 is missing: the cluster did not answer, and 4 more",
        "Night 2026-11-16 is complete, and 5 more",
    ]
