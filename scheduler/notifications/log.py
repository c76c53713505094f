"""What was sent, when and to whom, and what was answered since."""

from collections.abc import Collection
from datetime import date

import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.query import Days, Filter, In
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
    """Rows of ``notifications``, the newest first, and in ``answers`` what sites said of their names since.

    ``recipients``, ``states``: only these; ``first``, ``last``: only of these nights.
    """
    where: list[Filter] = []
    if recipients:
        where.append(In("recipient", tuple(recipients)))
    if states:
        where.append(In("state", tuple(states)))
    if first is not None or last is not None:
        where.append(Days("night", first or date.min, last or date.max))
    rows = [row for batch in store.read(NOTIFICATIONS, where) for row in batch.to_pylist()]
    rows.sort(key=lambda row: (-row["first_at"].timestamp(), row["recipient"], row["notification"]))
    answers = answers_by_name(store)
    for row in rows:
        names = sorted({notice.name for notice in read(row["content"]) if notice.name is not None})
        said = [
            f"{name} ({at[:10]}): {text}"
            for name in names
            for at, text in answers.get(name, ())
            if row["state"] == "sent" and at >= row["first_at"].isoformat()
        ]
        row["answers"] = "; ".join(said) or None
    schema = table_schema(NOTIFICATIONS).append(pa.field("answers", pa.string()))
    return pa.Table.from_pylist(rows, schema=schema)
