"""Orders of people about nights: pause, resume, forget; kept with person and account."""

from datetime import date, datetime
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
    store: JobStore, action: str, *, by: str | None, text: str, now: datetime, night: date | None = None
) -> None:
    """Keep an order; ``by`` None: the account.

    Raises :class:`UsageError` for an empty name, or texts that are too long.
    """
    account = store.account()
    who, why = (account if by is None else by.strip()), text.strip()
    if not who:
        raise UsageError("say who: by is empty")
    if len(who) > _LONGEST_TEXT or len(why) > _LONGEST_TEXT:
        raise UsageError(f"who and why have at most {_LONGEST_TEXT:,} characters each")
    row = {
        "order_id": content_id({"action": action, "at": format_time(now), "by": who}),
        "action": action,
        "night": night,
        "entered_by": who,
        "text": why or None,
        "entered_at": now,
        "account": account,
    }
    rows = rows_table(NIGHT_ORDERS, [row]).to_batches()
    store.publish([store.replace(NIGHT_ORDERS, str(row["order_id"]), rows)])


def pause_in_force(store: JobStore) -> str | None:
    """Describe the pause in force; None if nights are run."""
    where = [In("action", ("pause", "resume"))]
    found = store.read(NIGHT_ORDERS, where, order=("-entered_at",), limit=1)
    last: dict[str, Any] = next((row for batch in found for row in batch.to_pylist()), {})
    if last.get("action") != "pause":
        return None
    why = f": {last['text']}" if last["text"] else ""
    return f"by {last['entered_by']} since {format_time(last['entered_at'])}{why}"
