"""Rows of flag events, notices and settings that tests of notifications make up."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from esjobs.core.identity import content_id
from esjobs.core.tables import Table
from esjobs.publish.publication import read_table, rows_table
from esjobs.schema.flags import FLAG_EVENTS
from esjobs.schema.nights import NIGHTS
from esjobs.schema.notifications import NOTIFICATIONS
from esjobs.store.base import JobStore
from scheduler.notifications.gathering import flag_notices
from scheduler.notifications.notices import Notice
from scheduler.notifications.settings import NotifySettings
from scheduler.notifications.step import Mailer

NIGHT = date(2026, 11, 21)
NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
SECRET = "correct-horse-battery"  # noqa: S105
TOKEN = "T00000000-B00000000-XyZsEcReT"  # noqa: S105


def event(
    name: str = "CERN-PROD_UCORE", kind: str = "opened", night: date = NIGHT, **given: Any
) -> dict[str, Any]:
    """A row of ``flag_events``; what is not given is that of a confirmed deviation of −31 %."""
    row: dict[str, Any] = {
        "level": "queue",
        "processing_type": "all",
        "name": name,
        "site": name.partition("_")[0],
        "night": night,
        "kind": kind,
        "from_state": "open" if kind in ("closed", "acknowledged", "expired") else "new",
        "to_state": {"closed": "resolved", "noticed": "new"}.get(kind, "open"),
        "position": 1,
        "deviation": -0.31,
        "deviation_low": -0.36,
        "deviation_high": -0.26,
        "corepower": 10.3,
        "proposed_corepower": 7.1,
        "confirmed": kind in ("opened", "reopened", "closed"),
        "run": "0123456789ab",
        "window_start": datetime(2026, 10, 23, tzinfo=UTC),
        "window_end": datetime(2026, 11, 22, tzinfo=UTC),
        "sentence": (
            "CERN-PROD_UCORE runs 31 % slower than declared (90 % interval: 26 to 36 %), confirmed on two "
            "disjoint sets of jobs."
        ),
        "evidence": "412 jobs of 2026-11-01 to 2026-11-21, and 388 jobs of 2026-10-02 to 2026-10-31",
        "since": night - timedelta(days=12),
        "benchmark": "HS06",
    } | given
    identity = {key: str(row[key]) for key in ("level", "processing_type", "name", "night", "kind")}
    return {"event": content_id(identity)} | row


def notice(name: str = "CERN-PROD_UCORE", kind: str = "opened", **given: Any) -> Notice:
    """The notice of an event."""
    return flag_notices([event(name, kind, **given)])[0]


def settings(*recipients: dict[str, Any], **given: Any) -> NotifySettings:
    """Settings with recipients; a server of mail that nobody reaches, unless one is given."""
    server = {"host": "127.0.0.1", "port": 1, "security": "none", "sender": "esjobs@grid.example"}
    return NotifySettings.model_validate(
        {
            "mail": server,
            "sites_from": "2020-01-01",
            "attempts": 2,
            "timeout_s": 5,
            **given,
            "recipients": recipients,
        }
    )


def site(name: str = "cern", **given: Any) -> dict[str, Any]:
    """A recipient of the role site, by mail."""
    usual = {"role": "site", "channel": "mail", "address": f"{name}@site.example", "sites": ["CERN-*"]}
    return {"name": name, **usual, **given}


def coordinator(name: str = "coordinators", **given: Any) -> dict[str, Any]:
    """A recipient of the role coordinator, by mail."""
    return {
        "name": name,
        "role": "coordinator",
        "channel": "mail",
        "address": f"{name}@grid.example",
        **given,
    }


def operator(name: str = "operators", **given: Any) -> dict[str, Any]:
    """A recipient of the role operator, by mail."""
    return {"name": name, "role": "operator", "channel": "mail", "address": f"{name}@grid.example", **given}


def publish(store: JobStore, table: Table, night: date, rows: Sequence[Mapping[str, Any]]) -> None:
    """Put the rows of a night into the store, in place of those that are there."""
    batches = rows_table(table, rows).to_batches()
    store.publish([store.replace(table, night.isoformat(), batches)])


def events(store: JobStore, *rows: dict[str, Any], night: date = NIGHT) -> None:
    """The changes of flags of a night."""
    publish(store, FLAG_EVENTS, night, rows)


def nights(store: JobStore, **states: str) -> None:
    """What became of nights: ``d2026_11_21="failed"``."""
    for name, state in states.items():
        night = date.fromisoformat(name.removeprefix("d").replace("_", "-"))
        reason = None if state == "done" else "the cluster did not answer"
        publish(store, NIGHTS, night, [{"night": night, "state": state, "reason": reason}])


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def on(self, night: date) -> None:
        """The morning after a night."""
        self.now = datetime.combine(night + timedelta(days=1), NOW.time(), UTC)


class Pauses(list[float]):
    """Pauses that nobody waits for."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def office(made: NotifySettings, clock: Clock | None = None, pauses: Pauses | None = None) -> Mailer:
    """What sends, without waiting."""
    return Mailer(
        made, 0.2, clock or Clock(), "a store in memory", pauses if pauses is not None else Pauses()
    )


def outbox(store: JobStore) -> list[dict[str, Any]]:
    """The rows of the outbox, by night, recipient and name."""
    rows = read_table(store, NOTIFICATIONS).to_pylist()
    return sorted(rows, key=lambda row: (row["night"], row["recipient"], row["notification"]))


def states(store: JobStore) -> list[tuple[str, str]]:
    """Recipients with the states of what is for them."""
    return [(row["recipient"], row["state"]) for row in outbox(store)]
