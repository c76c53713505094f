"""Notes that people enter about flags and incidents, checked in one place."""

from datetime import date, datetime, timedelta
from typing import Any

from esjobs.core.errors import UsageError
from esjobs.core.identity import content_id
from esjobs.core.window import format_time

LONGEST_TEXT = 4000  # Characters of a note
LONGEST_DAYS = 730  # Of an acknowledgement


def require_ahead(until: date, night: date) -> None:
    """Raise :class:`UsageError` for an acknowledgement that ends by the last night, or hardly ever."""
    if until <= night:
        raise UsageError(
            f"an acknowledgement until {until} would have expired: the last night is {night}; use a later "
            "date"
        )
    if until > night + timedelta(days=LONGEST_DAYS):
        raise UsageError(
            f"an acknowledgement until {until} lasts longer than {LONGEST_DAYS} days after the last night, "
            f"{night}; use an earlier date"
        )


def note_row(facts: dict[str, Any], *, night: date, account: str, now: datetime) -> dict[str, Any]:
    """Return a row of ``flag_notes``; ``facts``: level, name, kind, entered_by, until, text and what else.

    Raises :class:`UsageError` without an author, and for a text that is too long or not valid.
    """
    by, text = facts["entered_by"].strip(), facts["text"].strip()
    if not by:
        raise UsageError("the author is missing; specify --who NAME (in Python: by)")
    if len(text) > LONGEST_TEXT or len(by) > LONGEST_TEXT:
        raise UsageError(f"a note has at most {LONGEST_TEXT:,} characters; this one has {len(text):,}")
    # surrogates come from bytes of another encoding on the command line; no store can write them
    if any("\ud800" <= character <= "\udfff" for character in by + text):
        raise UsageError("the note is not valid UTF-8; type it again")
    entered = {**facts, "entered_by": by, "text": text}
    until = facts["until"]
    # the same note sent twice, by an impatient browser, is one note
    known_by = {**entered, "until": until and until.isoformat(), "entered_at": format_time(now)}
    return {**entered, "note_id": content_id(known_by), "entered_at": now, "night": night, "account": account}
