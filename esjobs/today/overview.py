"""Incidents as people list and acknowledge them."""

import time
from datetime import date, datetime

import pyarrow as pa

from esjobs.core.errors import NoResultError
from esjobs.core.numbers import many
from esjobs.core.query import Count, Days, Query
from esjobs.core.report import RunReport
from esjobs.publish.publication import read_table, rows_table
from esjobs.records.entered_notes import note_row, require_ahead
from esjobs.records.names.spelling import as_stored
from esjobs.schema.flags import FLAG_NOTES
from esjobs.schema.today import EVERYWHERE, INCIDENTS, LASTING, TODAY_DAYS
from esjobs.store.base import JobStore
from esjobs.today.so_far import running_days

_RANK = {"open": 0, "acknowledged": 1, "maintenance": 2, "closed": 3, "noticed": 4, "withdrawn": 5}


def listed(rows: pa.Table) -> pa.Table:
    """Return incidents in the order in which people read them: open ones, most costly first."""
    keys = rows.select(["state", "cost_core_h", "site", "incident"]).to_pylist()

    def rank(number: int) -> tuple[int, float, str, str]:
        row = keys[number]
        return _RANK[row["state"]], -(row["cost_core_h"] or 0.0), row["site"], row["incident"]

    return rows.take(pa.array(sorted(range(len(keys)), key=rank), pa.int64()))


def notes_of(store: JobStore, night: date | None) -> tuple[str, ...]:
    """Return a note with the night and the number of sites that were looked at."""
    judged = Query(
        ("day", "site"),
        (Count("n"),),
        where=() if night is None else (Days("day", night, night),),
        over=TODAY_DAYS,
    )
    rows = store.aggregate(judged).table.to_pylist()
    if not rows:
        when = "no night was" if night is None else f"night {night} was not"
        return (f"{when} judged yet; run: esjobs today --update",)
    last = max(row["day"] for row in rows)
    n_sites = sum(row["day"] == last and row["site"] != EVERYWHERE for row in rows)
    when = f"{last} so far" if last in running_days(store) else f"night {last}"
    return (f"{when}: {many(n_sites, 'site')} judged",)


def acknowledge(store: JobStore, site: str, *, until: date, by: str, text: str, now: datetime) -> RunReport:
    """Enter a note that silences the incidents of a site, or those everywhere, until a night.

    Raises :class:`NoResultError` without an open one, :class:`UsageError` for a past day or no author.
    """
    began = time.perf_counter()
    rows = read_table(store, INCIDENTS, (), ["site", "state", "night"]).to_pylist()
    lasting = [row for row in rows if row["state"] in LASTING]
    if not lasting:
        raise NoResultError("no open incident; list incidents: esjobs today")
    (name,) = as_stored(
        "no open incident of", [site], sorted({row["site"] for row in lasting}), how="esjobs today"
    )
    night = max(row["night"] for row in lasting)
    require_ahead(until, night)
    facts = {"level": "site", "name": name, "kind": "ack", "entered_by": by, "until": until, "text": text}
    row = note_row(facts, night=night, account=store.account(), now=now)
    note = row["note_id"]
    store.publish([store.replace(FLAG_NOTES, note, rows_table(FLAG_NOTES, [row]).to_batches())])
    return RunReport(
        "today ack",
        note,
        1,
        1,
        time.perf_counter() - began,
        rows_are="note",
        rows_become="incidents concerned",
        window=str(night),
    )
