"""Books of an aggregate: fate of the jobs of each day."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

import pyarrow as pa

Kind = Literal["binned", "dropped", "note"]

BOOKS = pa.schema(
    [("day", pa.date32()), ("outcome", pa.string()), ("kind", pa.string()), ("n_jobs", pa.int64())]
)


@dataclass(frozen=True)
class Outcome:
    """Fate of some jobs of a day; notes count among the binned."""

    day: date
    name: str
    kind: Kind


def books_table(counts: Mapping[Outcome, int]) -> pa.Table:
    """Return the books, ordered by day, kind and outcome, without zero counts."""
    rows = sorted(
        ((item.day, item.name, item.kind, jobs) for item, jobs in counts.items() if jobs),
        key=lambda row: (row[0], row[2], row[1]),
    )
    # zip of no rows has no columns either
    columns = zip(*rows, strict=True) if rows else [[]] * len(BOOKS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, BOOKS.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=BOOKS)
