"""Marks on the judged days of sites: declared values that changed, acknowledgements."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from itertools import groupby, pairwise

from esjobs.core.numbers import number
from esjobs.core.query import In
from esjobs.core.text import visible
from esjobs.publish.publication import read_table
from esjobs.records.names.sites import Sites
from esjobs.schema.declared import COREPOWER
from esjobs.schema.flags import FLAG_NOTES
from esjobs.store.base import JobStore

Marks = dict[tuple[date, str], str]


def marks_of(store: JobStore, sites: Sites) -> Marks:
    """Return by day and site what people did: acknowledgements, and values declared from that day on."""
    found: dict[tuple[date, str], list[str]] = defaultdict(list)
    for key, text in (*_acknowledged(store), *_declared(store, sites)):
        found[key].append(text)
    return {key: "; ".join(sorted(set(texts))) for key, texts in found.items()}


def _acknowledged(store: JobStore) -> Iterator[tuple[tuple[date, str], str]]:
    where = [In("kind", ("ack",)), In("level", ("site",))]
    for row in read_table(store, FLAG_NOTES, where, ["name", "entered_by", "night", "until"]).to_pylist():
        if row["until"] is not None:
            yield (row["night"], row["name"]), f"acknowledged by {visible(row['entered_by'])}"


def _declared(store: JobStore, sites: Sites) -> Iterator[tuple[tuple[date, str], str]]:
    """Yield changes of a declared value; the first one of a name is none, nor is one without a date."""
    where = [In("level", ("queue", "site"))]
    columns = ["level", "name", "corepower", "valid_from", "imported_at"]
    rows = [row for row in read_table(store, COREPOWER, where, columns).to_pylist() if row["valid_from"]]
    rows.sort(key=lambda row: (row["level"], row["name"], row["valid_from"], row["imported_at"]))
    for (level, name), same in groupby(rows, key=lambda row: (row["level"], row["name"])):
        for before, after in pairwise(same):
            if before["corepower"] != after["corepower"] and before["valid_from"] < after["valid_from"]:
                site = sites.of(name).name if level == "queue" else name
                values = " to ".join(_score(row["corepower"]) for row in (before, after))
                yield (after["valid_from"].date(), site), f"{visible(name)}: declared {values}"


def _score(value: float | None) -> str:
    return "none" if value is None else number(value)
