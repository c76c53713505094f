"""Acknowledgements and answers, kept whatever is run again or removed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.flags.nights import watch
from esjobs.flags.settings import WatchSettings
from esjobs.flags.states import Note
from esjobs.publish.publication import read_table, rows_table
from esjobs.records.entered_notes import note_row, require_ahead
from esjobs.records.names.spelling import as_stored
from esjobs.schema.flags import FLAG_NOTES, FLAG_STATES, STANDING_OPEN
from esjobs.store.base import JobStore

_COLUMNS = ("level", "processing_type", "name", "site", "state", "night")


def acknowledge(
    store: JobStore,
    name: str,
    settings: WatchSettings,
    window_days: int,
    *,
    until: date,
    by: str,
    now: datetime,
    text: str = "",
    level: str | None = None,
    processing_type: str | None = None,
) -> RunReport:
    """Silence the open flags of a name until a night; they are acknowledged at once.

    ``settings``, ``window_days``: see :func:`esjobs.flags.nights.watch`. ``processing_type`` None: flags of
    every kind of work, also those that open later. Raises :class:`NoResultError` if nothing of that name is
    open, :class:`UsageError` for a past day or an empty ``by``.
    """
    flags = _flags(store, name, level, processing_type)
    if not any(flag["state"] in STANDING_OPEN for flag in flags):
        states = ", ".join(sorted({flag["state"] for flag in flags}))
        raise NoResultError(
            f"no open flag of {flags[0]['name']} to acknowledge (it is {states}); list open flags: esjobs "
            "flags"
        )
    night = max(flag["night"] for flag in flags)
    require_ahead(until, night)
    entry = {"kind": "ack", "entered_by": by, "until": until, "text": text}
    return _enter(store, entry, flags, processing_type, settings, window_days, now)


def answer(
    store: JobStore,
    name: str,
    settings: WatchSettings,
    window_days: int,
    *,
    text: str,
    now: datetime,
    by: str | None = None,
    level: str | None = None,
    processing_type: str | None = None,
) -> RunReport:
    """Record a site's answer about the flags of a name; it changes no state.

    ``by`` None: the site of the queue, else the name. Raises :class:`UsageError` for a name that was
    never flagged, or an empty answer.
    """
    flags = _flags(store, name, level, processing_type)
    if not text.strip():
        raise UsageError("an answer requires a text")
    who = by if by is not None else flags[0]["site"] or flags[0]["name"]
    entry = {"kind": "answer", "entered_by": who, "until": None, "text": text}
    return _enter(store, entry, flags, processing_type, settings, window_days, now)


def _enter(
    store: JobStore,
    entry: Mapping[str, Any],
    flags: Sequence[Mapping[str, Any]],
    processing_type: str | None,
    settings: WatchSettings,
    window_days: int,
    now: datetime,
) -> RunReport:
    kind, flag = entry["kind"], flags[0]
    # a type is spelt as stored; without one the note is about all
    of_type = None if processing_type is None else flag["processing_type"]
    facts = {**entry, "level": flag["level"], "name": flag["name"], "processing_type": of_type}
    night = max(flag["night"] for flag in flags)
    note = Note(**note_row(facts, night=night, account=store.account(), now=now))
    rows = rows_table(FLAG_NOTES, [asdict(note)])
    written = store.replace(FLAG_NOTES, note.note_id, rows.to_batches())
    report = watch(store, night, settings, window_days, entered=[note], also=[written])
    concerned = sum(kind == "answer" or flag["state"] in STANDING_OPEN for flag in flags)
    return RunReport(
        f"flags {kind}",
        note.note_id,
        1,
        concerned,
        report.seconds,
        rows_are="note",
        rows_become="flags concerned",
        notes=report.notes,
    )


def _flags(
    store: JobStore, name: str, level: str | None, processing_type: str | None
) -> list[Mapping[str, Any]]:
    # The name in any case, if unambiguous.
    where = [] if level is None else [In("level", (level,))]
    rows = read_table(store, FLAG_STATES, where, _COLUMNS).to_pylist()
    if not rows:
        raise NoResultError("no flags yet; run: esjobs watch")
    mine = _having(rows, "name", name, "no flag of", how="esjobs show flag_states")
    # a queue often has the name of its site, whose flags follow from those of its queues
    mine = [row for row in mine if row["level"] != "site"] or mine
    spelt, levels = mine[0]["name"], sorted({row["level"] for row in mine})
    if len(levels) > 1:
        raise UsageError(f"{spelt} has flags as {' and as '.join(levels)}; specify the level")
    if processing_type is None:
        return mine
    return _having(mine, "processing_type", processing_type, f"no flag of {spelt} for")


def _having(
    rows: Sequence[Mapping[str, Any]], column: str, value: str, lacking: str, **how: str
) -> list[Mapping[str, Any]]:
    (spelt,) = as_stored(lacking, [value], sorted({row[column] for row in rows}), **how)
    return [row for row in rows if row[column] == spelt]
