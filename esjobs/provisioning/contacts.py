"""Contacts of users and projects, and their effect."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.identity import content_id
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.provisioning.matching import Change, Effect, effect
from esjobs.provisioning.overall import Overall, overall, shared_errors
from esjobs.provisioning.placebos import Scored, placebo_effects
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.schema.provisioning import CONTACTS
from esjobs.schema.provisioning_names import CONTACTED
from esjobs.schema.scores import BEST_IS_HIGH
from esjobs.store.base import JobStore

DAYS = 28
"""Days before and after a contact."""
LEAST_JOBS = 5
"""Scored jobs required in each window."""
_LONGEST_TEXT = 4000
_MOST_MONTHS = 13  # with the one before the contact
_Month = dict[str, dict[str, Any]]
Rank = Callable[..., Any]
"""``rank(store, by, score, window=, top=)`` of the scores, with the ranked names as ``rows``."""

EFFECTS_SCHEMA = pa.schema(
    [
        *(("user", pa.string()), ("project", pa.string()), ("contacted_on", pa.date32())),
        *(("score", pa.string()), ("before", pa.float64()), ("after", pa.float64())),
        *(("change", pa.float64()), ("expected", pa.float64()), ("effect", pa.float64())),
        *(("effect_low", pa.float64()), ("effect_high", pa.float64()), ("n_matched", pa.int64())),
        *(("verdict", pa.string()), ("acknowledged_on", pa.date32()), ("contact", pa.string())),
        ("remark", pa.string()),
    ]
)


def enter_contact(
    store: JobStore,
    kind: str,
    name: str,
    *,
    on: date,
    by: str,
    text: str,
    acknowledged: date | None,
    now: datetime,
) -> RunReport:
    """Record that a user or project was contacted on a day; a second entry replaces the first.

    Raises :class:`UsageError` for empty, too long or unreadable texts, and for an acknowledgement before the
    contact.
    """
    began = time.perf_counter()
    if kind not in CONTACTED:
        raise UsageError(f"unknown kind '{kind}'; use one of: {', '.join(CONTACTED)}")
    texts = {"name": name.strip(), "who": by.strip(), "note": text.strip()}
    for what, value in texts.items():
        if not value and what != "note":
            raise UsageError(f"{what} is empty")
        if len(value) > _LONGEST_TEXT:
            raise UsageError(f"{what} has at most {_LONGEST_TEXT:,} characters; this one has {len(value):,}")
        # halves of surrogate pairs, from a terminal of another encoding: no store takes them
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise UsageError(f"{what} is not valid UTF-8; type it again")
    if acknowledged is not None and acknowledged < on:
        raise UsageError(f"acknowledged on {acknowledged}, before the contact on {on}; use a later date")
    # of kind, name and day: a second entry of the day gets the same id, and replaces the first
    contact = content_id({"kind": kind, "name": texts["name"], "on": on.isoformat()})
    row = {
        "contact": contact,
        kind: texts["name"],
        "contacted_on": on,
        "entered_by": texts["who"],
        "text": texts["note"],
        "acknowledged_on": acknowledged,
        "entered_at": now,
        "account": store.account(),
    }
    store.publish([store.replace(CONTACTS, contact, rows_table(CONTACTS, [row]).to_batches())])
    tidy(store)
    seconds = time.perf_counter() - began
    return RunReport("provision contact", contact, 1, 1, seconds, rows_are="contact", rows_become="kept")


def effects(
    store: JobStore, rank: Rank, score: str = "cpu_efficiency", days: int = DAYS
) -> tuple[pa.Table, Overall | None]:
    """Return the effect of each contact against a control group, and the overall effect.

    Scores are means over jobs weighted by node-hours, of ``days`` days before the contact and after it.
    Compared are the same ranks of up to a year before (:mod:`esjobs.provisioning.placebos`); with a shorter
    history names of the same kind that were not contacted within these days, with at least 5 scored jobs in
    both. ``verdict``: improved, worse, no change seen, too little history (score outside those of the group),
    too few comparable jobs, or too few jobs. ``remark``: beyond the group. Overall is None below three
    comparable contacts. Cost: up to 14 rankings per day of contacts.

    Raises :class:`NoResultError` without contacts, :class:`UsageError` for an unknown score or ``days`` below
    1.
    """
    if days < 1:
        raise UsageError(f"days must be 1 or more; got {days}")
    contacts = read_table(store, CONTACTS).to_pylist()
    if not contacts:
        raise NoResultError("no contacts recorded; run: esjobs provision contact")
    pairs = _effects(store, rank, contacts, contacts, score, days)
    compared = [(row, found) for row, found in pairs if found is not None]
    found = [each for _, each in compared]
    kinds = [_kind(row) for row, _ in compared]
    shared = shared_errors(found, kinds, [row["contacted_on"] for row, _ in compared], days)
    return _table(pairs), overall(found, shared)


def contact_effects(store: JobStore, rank: Rank, period: Window) -> pa.Table:
    """Return effects on CPU efficiency of the contacts of a period."""
    contacts = read_table(store, CONTACTS).to_pylist()
    inside = [row for row in contacts if period.first_day <= row["contacted_on"] <= period.last_day]
    return _table(_effects(store, rank, inside, contacts, "cpu_efficiency", DAYS))


def _effects(
    store: JobStore,
    rank: Rank,
    chosen: list[dict[str, Any]],
    contacts: list[dict[str, Any]],
    score: str,
    days: int,
) -> list[tuple[dict[str, Any], Effect | None]]:
    chosen.sort(key=lambda row: (row["contacted_on"], row["contact"]))
    span = timedelta(days=days)
    found: dict[tuple[str, date], dict[str, Effect]] = {}
    months: dict[tuple[str, date], list[_Month]] = {}
    for row in chosen:
        kind, on = _kind(row), row["contacted_on"]
        # contacts of one day share their rankings, which cost most
        if (kind, on) not in months:
            months[kind, on] = list(_months(store, rank, kind, score, on, span))[::-1]
            found[kind, on] = _placebo_effects(months[kind, on], kind, on, span, contacts)
    keys = [(_kind(row), row["contacted_on"]) for row in chosen]
    return [
        _effect(row, months[key], found[key].get(row[key[0]]), contacts, score, span)
        for row, key in zip(chosen, keys, strict=True)
    ]


def _months(
    store: JobStore, rank: Rank, kind: str, score: str, on: date, span: timedelta
) -> Iterator[_Month]:
    """Yield the ranked names after a contact, before it, and of earlier spans until one has none."""
    day = timedelta(days=1)
    yield _scores(store, rank, kind, score, Window.of_days(on + day, on + span))
    for back in range(_MOST_MONTHS):
        end = on - back * span
        found = _scores(store, rank, kind, score, Window.of_days(end - span, end - day))
        # records begin here: what is before is empty, too
        if back and not found:
            return
        yield found


def _placebo_effects(
    months: Sequence[_Month], kind: str, on: date, span: timedelta, contacts: Sequence[Mapping[str, Any]]
) -> dict[str, Effect]:
    touched = []
    for back in range(len(months) - 2, -1, -1):
        # days of the month and the next one
        first, last = on - (back + 1) * span, on - (back - 1) * span
        touched.append({row[kind] for row in contacts if first <= row["contacted_on"] <= last} - {None})
    scored = [
        {name: Scored(row["score"], row["n_scored"]) for name, row in month.items()} for month in months
    ]
    names = {row[kind] for row in contacts if row["contacted_on"] == on} - {None}
    return placebo_effects(scored, names, touched)


def _table(pairs: Sequence[tuple[dict[str, Any], Effect | None]]) -> pa.Table:
    return pa.Table.from_pylist([row for row, _ in pairs], EFFECTS_SCHEMA)


def _kind(row: Mapping[str, Any]) -> str:
    return next(each for each in CONTACTED if row.get(each) is not None)


def _changes(before: _Month, after: _Month) -> dict[str, Change]:
    # only of names that ran in both windows: a change needs both ends
    both = [(name, row, after[name]) for name, row in before.items() if name in after]
    return {
        name: Change(name, row["score"], other["score"], float(row["node_h"] + other["node_h"]))
        for name, row, other in both
    }


def _effect(
    contact: Mapping[str, Any],
    months: Sequence[_Month],
    placebo: Effect | None,
    contacts: list[dict[str, Any]],
    score: str,
    span: timedelta,
) -> tuple[dict[str, Any], Effect | None]:
    kind = _kind(contact)
    name, on = contact[kind], contact["contacted_on"]
    before, after = months[-2:]
    changes = _changes(before, after)
    row: dict[str, Any] = {
        kind: name,
        "contacted_on": on,
        "score": score,
        "acknowledged_on": contact["acknowledged_on"],
        "contact": contact["contact"],
    }
    if name not in changes:
        return {**row, "verdict": "too few jobs"}, None
    # names with a contact of their own near this one are no controls
    touched = {each[kind] for each in contacts if abs(each["contacted_on"] - on) <= span}
    mine = changes[name]
    row |= {"before": mine.before, "after": mine.after, "change": mine.after - mine.before}
    matched = effect(mine, [each for each in changes.values() if each.name not in touched])
    # placebos need no line beyond the group; the control group is for short histories
    found = placebo or matched
    if found is None:
        return {**row, "verdict": "too few comparable jobs"}, None
    row |= {
        "expected": found.expected,
        "effect": found.effect,
        "effect_low": found.low,
        "effect_high": found.high,
        "n_matched": found.n_matched,
        "verdict": found.verdict(high_is_good=score in BEST_IS_HIGH),
        "remark": "beyond the group" if matched is None or matched.extrapolated else None,
    }
    return row, found


def _scores(store: JobStore, rank: Rank, kind: str, score: str, window: Window) -> dict[str, dict[str, Any]]:
    try:
        rows = rank(store, kind, score, window=window, top=None).rows.to_pylist()
    except NoResultError:
        return {}
    return {
        row["name"]: row
        for row in rows
        if row["score"] is not None
        and row["name"] is not None
        and row["n_scored"] >= LEAST_JOBS
        and (row["node_h"] or 0) > 0
    }
