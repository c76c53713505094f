"""Entry of the journal into the store, at the start of a night."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from esjobs.core.errors import UsageError
from esjobs.flags.answering.journal import Journal
from esjobs.flags.answering.settings import WebSettings
from esjobs.flags.nights import remembered_nights
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.records.entered_notes import note_row
from esjobs.records.night import NightAccount, NightStep, NightWork
from esjobs.schema.flags import FLAG_NOTES, NOTE_KINDS
from esjobs.schema.web import ACTS
from esjobs.store.base import Change, JobStore

_COLUMNS = ("kind", "entered_by", "route", "level", "processing_type", "name", "before", "after", "request")


def enter_night(work: NightWork) -> NightAccount:
    """Enter what people have entered on pages since the night before."""
    path = work.settings.section(WebSettings).journal_of(work.settings.location)
    entries = [] if path is None else Journal(path).read()
    # a night that is not the last enters nothing: its flags may be final
    if not entries or work.night < max(remembered_nights(work.store), default=work.night):
        return NightAccount()
    n_entered, refused = enter(work.store, entries, work.night)
    return NightAccount(len(entries), n_entered, refused)


def enter(store: JobStore, entries: Sequence[Mapping[str, Any]], night: date) -> tuple[int, tuple[str, ...]]:
    """Store entries that the store does not have, in one switch; their number, and why others gave no note.

    Idempotent: an entry is an act of its id, and its note appears in the same switch.
    """
    entered = set(read_table(store, ACTS, (), ["act"]).column("act").to_pylist())
    new = [entry for entry in entries if entry["id"] not in entered]
    changes: list[Change] = []
    refused = []
    for entry in new:
        row = {name: entry.get(name) for name in _COLUMNS}
        at = datetime.fromisoformat(entry["at"])
        rows = rows_table(ACTS, [{**row, "act": entry["id"], "entered_at": at}])
        changes.append(store.replace(ACTS, entry["id"], rows.to_batches()))
        try:
            changes += _notes(store, entry, night, at)
        except UsageError as error:
            refused.append(f"entry {entry['id']}: {error}")
    if changes:
        store.publish(changes)
        tidy(store)
    return len(new), tuple(refused)


def _notes(store: JobStore, entry: Mapping[str, Any], night: date, at: datetime) -> list[Change]:
    if entry["kind"] not in NOTE_KINDS:
        return []
    until = entry.get("until")
    facts = {
        **{name: entry[name] for name in ("level", "processing_type", "name", "kind", "entered_by", "text")},
        "until": None if until is None else date.fromisoformat(until),
    }
    row = note_row(facts, night=night, account=store.account(), now=at)
    rows = rows_table(FLAG_NOTES, [row])
    return [store.replace(FLAG_NOTES, row["note_id"], rows.to_batches())]


ENTER = NightStep("enter", enter_night, needs=(), idle=True)
