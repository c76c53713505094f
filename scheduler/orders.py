"""Orders of people about nights: pause, resume, forget; kept with person and account."""

from collections.abc import Mapping
from datetime import date, datetime
from itertools import takewhile
from typing import Any

from esjobs.core.errors import UsageError
from esjobs.core.identity import content_id
from esjobs.core.query import In
from esjobs.core.window import format_time
from esjobs.publish.publication import rows_table
from esjobs.schema.nights import NIGHT_ORDERS
from esjobs.store.base import JobStore

_LONGEST_TEXT = 1_000  # Characters


def enter(
    store: JobStore,
    action: str,
    *,
    by: str | None,
    text: str,
    now: datetime,
    night: date | None = None,
    removed: Mapping[str, int] | None = None,
) -> None:
    """Keep an order; ``by`` None: the account; ``removed``: numbers of nights by table.

    Raises :class:`UsageError` for an empty name, or texts that are too long.
    """
    account = store.account()
    who, why = (account if by is None else by.strip()), text.strip()
    if not who:
        raise UsageError("the name is empty; use --who NAME, or omit it for the account")
    if len(who) > _LONGEST_TEXT or len(why) > _LONGEST_TEXT:
        raise UsageError(f"the name or the note is longer than {_LONGEST_TEXT:,} characters; shorten it")
    numbers = ", ".join(f"{name} {number}" for name, number in (removed or {}).items())
    row = {
        "order_id": content_id({"action": action, "at": format_time(now), "by": who}),
        "action": action,
        "night": night,
        "entered_by": who,
        "text": "; ".join(filter(None, (why, numbers and f"nights removed: {numbers}"))) or None,
        "entered_at": now,
        "account": account,
    }
    rows = rows_table(NIGHT_ORDERS, [row]).to_batches()
    store.publish([store.replace(NIGHT_ORDERS, str(row["order_id"]), rows)])


def pause_in_force(store: JobStore) -> str | None:
    """Describe the pauses in force, oldest first; None if nights are run. One end is that of all of them."""
    where = [In("action", ("pause", "resume"))]
    found = store.read(NIGHT_ORDERS, where, order=("-entered_at",))
    newest = (row for batch in found for row in batch.to_pylist())
    pauses = [*takewhile(lambda row: row["action"] == "pause", newest)]
    return "; ".join(map(_described, reversed(pauses))) or None


def _described(pause: Mapping[str, Any]) -> str:
    why = f": {pause['text']}" if pause["text"] else ""
    return f"by {pause['entered_by']} since {format_time(pause['entered_at'].replace(microsecond=0))}{why}"
