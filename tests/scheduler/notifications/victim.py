"""A process that tells of a night, to be killed while it does; run by ``test_kills``."""

import sys
from datetime import date
from pathlib import Path

from esjobs.store.duck.store import DuckStore
from scheduler.notifications.settings import MailSettings, NotifySettings, Recipient
from scheduler.notifications.step import notify_night
from tests.scheduler.notifications.conftest import TABLES
from tests.scheduler.notifications.made_up import Clock, Pauses, office

SITES = tuple(f"S{number}" for number in range(6))
"""Who is told."""


def made(port: int) -> NotifySettings:
    """One recipient per site, by a mail server of this machine."""
    return NotifySettings(
        mail=MailSettings(host="127.0.0.1", port=port, security="none", sender="esjobs@grid.example"),
        recipients=tuple(
            Recipient(
                name=name, role="site", channel="mail", address=f"{name}@site.example", sites=(f"{name}*",)
            )
            for name in SITES
        ),
        sites_from=date(2020, 1, 1),
        attempts=1,
        timeout_s=5,
    )


def main(path: str, port: str, night: str) -> None:
    """Tell of a night of the store in a file."""
    store = DuckStore(Path(path), tables=TABLES)
    print("opened", flush=True)
    notify_night(store, office(made(int(port)), Clock(), Pauses()), date.fromisoformat(night))
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
