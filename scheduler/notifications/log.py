"""Log of messages, with later answers."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.query import Days, Filter, In
from esjobs.publish.publication import read_table
from esjobs.schema.notifications import NOTIFICATIONS
from esjobs.store.base import JobStore
from scheduler.notifications.notices import read
from scheduler.notifications.sources import answers_by_name


def log_rows(
    store: JobStore,
    *,
    recipients: Collection[str] = (),
    states: Collection[str] = (),
    first: date | None = None,
    last: date | None = None,
) -> pa.Table:
    """Return rows of ``notifications``, newest first, with later answers of sites in ``answers``."""
    chosen = (("recipient", tuple(recipients)), ("state", tuple(states)))
    where: list[Filter] = [In(name, values) for name, values in chosen if values]
    if first or last:
        where.append(Days("night", first or date.min, last or date.max))
    rows = read_table(store, NOTIFICATIONS, where).to_pylist()
    rows.sort(key=lambda row: (-row["first_at"].timestamp(), row["recipient"], row["notification"]))
    answers = answers_by_name(store)
    for row in rows:
        row["answers"] = _answered(row, answers) if row["state"] == "sent" else None
    schema = table_schema(NOTIFICATIONS).append(pa.field("answers", pa.string()))
    return pa.Table.from_pylist(rows, schema=schema)


def _answered(row: Mapping[str, Any], answers: Mapping[str, Sequence[tuple[str, str]]]) -> str | None:
    names = sorted({notice.name for notice in read(row["content"]) if notice.name is not None})
    since = row["first_at"].isoformat()
    said = [
        f"{name} ({at[:10]}): {text}" for name in names for at, text in answers.get(name, ()) if at >= since
    ]
    return "; ".join(said) or None
