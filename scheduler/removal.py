"""Removal of nights that should not have run, such as those of a fast clock."""

from datetime import date, timedelta

from esjobs.core.query import Days
from esjobs.core.tables import Table
from esjobs.flags.nights import states_of
from esjobs.publish.publication import read_table, tidy
from esjobs.schema.flags import FLAG_EVENTS, FLAG_HISTORY
from esjobs.schema.nights import NIGHT_STEPS, NIGHTS
from esjobs.schema.notifications import NOTIFICATIONS
from esjobs.store.base import Change, Hide, JobStore

_TABLES = (NIGHTS, NIGHT_STEPS, NOTIFICATIONS, FLAG_HISTORY, FLAG_EVENTS)


def forget_nights(store: JobStore, after: date, *, dry_run: bool = False) -> dict[str, int]:
    """Remove the rows of nights after a day in one switch; return the number of nights by table.

    The states of flags become those of the newest remaining night. ``dry_run``: nothing is removed.
    """
    nights = {table: _nights(store, table, after) for table in _TABLES}
    found_by_table = {table.name: len(found) for table, found in nights.items()}
    if dry_run:
        return found_by_table
    changes: list[Change] = [
        Hide(table, night.isoformat()) for table, found in nights.items() for night in sorted(found)
    ]
    # states are one row per flag, not per night: they follow anew from the remaining history
    if nights[FLAG_HISTORY]:
        changes += states_of(store, after)
    if changes:
        store.publish(changes)
        tidy(store)
    return found_by_table


def _nights(store: JobStore, table: Table, after: date) -> set[date]:
    where = [Days("night", after + timedelta(days=1), date.max)]
    return set(read_table(store, table, where, ["night"]).column("night").to_pylist())
