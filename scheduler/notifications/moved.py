"""Changes that were told and whose night has moved: late records make a deviation open a day earlier.

The event that was told is gone then, and there is another one in its place, of another night and so of
another name. For who reads it that is the same change.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import date

from esjobs.schema.notifications import KNOWN, SAME
from scheduler.notifications.notices import Kind, Notice
from scheduler.notifications.outbox import Entry

_STANDING: dict[Kind, str] = {"opened": "open", "reopened": "open", "closed": "over", "withdrawn": "over"}
"""Kinds that tell the same of a flag."""


def moved(
    entries: Iterable[Entry], notices: Sequence[Notice], there: Collection[str], since: date
) -> list[Notice]:
    """Those of some new notices to a recipient that only take the place of what it was told.

    ``entries``: what it was told, or is to be. ``there``: ids of all events that there are
    from the night ``since`` on. Each event that
    is gone gives its place to one other of the same flag that says the same, the earliest first.
    """
    places: Counter[tuple[str, ...]] = Counter()
    for entry in entries:
        if entry.state == SAME:
            continue
        for told in entry.told:
            if told.is_flag and told.night >= since:
                places[_what(told)] += told.id not in there
                places[_what(told)] -= entry.state == KNOWN
    same = []
    for notice in sorted(notices, key=lambda one: one.night):
        if notice.is_flag and places[_what(notice)] > 0:
            places[_what(notice)] -= 1
            same.append(notice)
    return same


def _what(notice: Notice) -> tuple[str, ...]:
    """A flag, and what is told of it."""
    flag = (notice.level or "", notice.processing_type or "", notice.name or "")
    return (*flag, _STANDING.get(notice.kind, notice.kind))
