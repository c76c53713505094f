"""The outbox on every engine: told once, by one at a time, and never lost between two processes."""

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from esjobs.core.errors import StoreBusyError
from esjobs.store.base import JobStore
from scheduler.notifications.step import notify_night
from tests.contract.engines import Engine
from tests.messages import raised
from tests.scheduler.notifications.made_up import (
    NIGHT,
    Clock,
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
from tests.scheduler.notifications.servers import mail_server

DAY = timedelta(days=1)


def test_told_once(store: JobStore) -> None:
    with mail_server() as server:
        server.answers.append("451 later")
        recipients = (site(), coordinator(digest="weekly"), operator())
        made = settings(*recipients, mail=server.settings(security="none"), attempts=1, weekly_on="tuesday")
        clock = Clock()
        # more than an index takes for a term
        many = [event(f"OTHER_{number}", "noticed") for number in range(60)]
        events(store, event(), *many)
        nights(store, d2026_11_21="failed")
        notify_night(store, office(made, clock), NIGHT)
        assert states(store) == [("cern", "failed"), ("coordinators", "collected"), ("operators", "sent")]
        for number in (1, 2):
            clock.on(NIGHT + number * DAY)
            events(store, event(f"CERN_{number}", night=NIGHT + number * DAY), night=NIGHT + number * DAY)
            notify_night(store, office(made, clock), NIGHT + number * DAY)
        before = outbox(store)
        notify_night(store, office(made, clock), NIGHT + 2 * DAY)
        assert outbox(store) == before
        arrived = sorted((address, mail["Subject"]) for address, mail in server.taken)
    assert arrived == [
        ("cern@site.example", "[esjobs] CERN-PROD_UCORE: jobs run 31 % slower than the declared corepower"),
        (
            "coordinators@grid.example",
            "[esjobs] 3 confirmed deviations, 60 candidates: 2026-11-21 to 2026-11-23",
        ),
        ("operators@grid.example", "[esjobs] Night 2026-11-21 failed: the cluster did not answer"),
    ]
    assert sorted(state for _, state in states(store)) == ["bundled"] * 3 + ["sent"] * 3


def test_what_is_queued_survives_its_process(durable: Engine, tmp_path: Path) -> None:
    """The first store is left as it is when its process dies between the queue and the first message."""
    with mail_server() as server:
        made = settings(site(), coordinator(), mail=server.settings(security="none"))
        first = durable.open(tmp_path)
        events(first, event())

        def dies(_: object) -> None:
            raise KeyboardInterrupt

        server.refuse_address = {"cern@site.example": "451 later"}
        interrupted = type(office(made))(**{**vars(office(made)), "pause": dies})
        with pytest.raises(KeyboardInterrupt):
            notify_night(first, interrupted, NIGHT)
        first.close()
        server.refuse_address.clear()
        second = durable.open(tmp_path)
        notify_night(second, office(made), NIGHT)
        second.close()
        assert [address for address, _ in server.taken] == ["coordinators@grid.example", "cern@site.example"]


def test_one_sends(engine: Engine, store: JobStore, tmp_path: Path) -> None:
    """Of two at once one waits, and then has nothing to send."""
    with mail_server() as server:
        made = settings(site(), coordinator(), operator(), mail=server.settings(security="none"))
        events(store, event(), event("CERN_2"))
        nights(store, d2026_11_21="failed")
        holding = office(made)
        with holding.lease(store).turn(0.0), raised(StoreBusyError):
            notify_night(store, type(holding)(**{**vars(holding), "wait_s": 0.0}), NIGHT)
        # a file of the embedded store has one process, and that one thread
        others = [] if engine.server is None else [engine.open(tmp_path) for _ in range(2)]
        threads = [
            threading.Thread(target=notify_night, args=(other, office(made), NIGHT)) for other in others
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for other in others:
            other.close()
        notify_night(store, office(made), NIGHT)
        assert len(server.taken) == 3
