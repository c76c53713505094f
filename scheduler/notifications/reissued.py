"""Reissued events: late records make a deviation open on another night.

The reported event is gone, and another one replaces it with another night and so another id. For its reader
it is the same event.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import date

from esjobs.schema.notifications import DUPLICATE, REPETITION
from scheduler.notifications.notices import Kind, Notice
from scheduler.notifications.outbox import Entry

# Kinds of one meaning
_OUTCOME: dict[Kind, str] = {"opened": "open", "reopened": "open", "closed": "over", "withdrawn": "over"}


def reissued(
    entries: Iterable[Entry], notices: Sequence[Notice], existing: Collection[str], since: date
) -> list[Notice]:
    """Return the new notices to a recipient that only replace reported ones.

    ``entries``: reported or pending ones. ``existing``: ids of all events from the night ``since`` on. Each
    missing event is replaced by one other of the same flag and meaning, the earliest first.
    """
    # missing events less those that already have a replacement
    unreplaced: Counter[tuple[str, ...]] = Counter()
    for entry in entries:
        if entry.state == REPETITION:
            continue
        for reported in entry.parsed:
            if reported.is_flag and reported.night >= since:
                unreplaced[_what(reported)] += reported.id not in existing
                unreplaced[_what(reported)] -= entry.state == DUPLICATE
    same = []
    for notice in sorted(notices, key=lambda one: one.night):
        if notice.is_flag and unreplaced[_what(notice)] > 0:
            unreplaced[_what(notice)] -= 1
            same.append(notice)
    return same


def _what(notice: Notice) -> tuple[str, ...]:
    flag = (notice.level or "", notice.processing_type or "", notice.name or "")
    return (*flag, _OUTCOME.get(notice.kind, notice.kind))
