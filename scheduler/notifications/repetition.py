"""Repetitions of events that a recipient has read: one wrong declaration, one message.

A declaration is wrong for every kind of work, and each kind is confirmed on a night of its own. A kind is
news only where it would still deviate by more than the limit if the declaration were corrected by what was
sent before. Nothing here reads or writes.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from esjobs.core.words import ALL_TYPES
from scheduler.notifications.notices import Notice

OPENINGS = ("opened", "reopened")  # Kinds that say that a deviation is confirmed
Name = tuple[str, str]  # Level and name


def name_of(notice: Notice) -> Name:
    """Return level and name of a notice."""
    return notice.level or "", notice.name or ""


def agree(left: float | None, right: float | None, limit: float) -> bool:
    """True if correcting a declaration by one deviation leaves at most the limit of the other. Deviations to
    different sides never agree.

    >>> agree(-0.31, -0.38, 0.2), agree(-0.31, -0.5, 0.2), agree(0.05, -0.05, 0.2)
    (True, False, False)
    """
    if left is None or right is None or left * right < 0 or min(left, right) <= -1:
        return False
    # deviations are ratios minus 1: corrected by one, the other is the quotient of the ratios
    return abs(math.log1p(left) - math.log1p(right)) <= math.log1p(limit)


def repeated(
    new: Sequence[Notice], history: Iterable[Notice], sent: Collection[str], limit: float
) -> tuple[list[Notice], list[Notice]]:
    """Split new notices to a recipient into news and repetitions.

    ``history``: all changes of the same names. ``sent``: ids that the recipient has read or will read. News
    gets the other kinds of work with the same deviation (``also``). Only flags are repeated: a notice about
    users, incidents or the service is recognised by its id alone.
    """
    wanted = {notice.id: notice for notice in new if notice.is_flag}
    changes = {notice.id: notice for notice in history if notice.is_flag} | wanted
    by_name: dict[Name, list[Notice]] = defaultdict(list)
    for notice in changes.values():
        by_name[name_of(notice)].append(notice)
    news: dict[str, Notice] = {notice.id: notice for notice in new if not notice.is_flag}
    for of_name in by_name.values():
        story = _Story(limit, wanted, sent)
        for night in sorted({notice.night for notice in of_name}):
            story.go_on([notice for notice in of_name if notice.night == night])
        news |= story.news
    order = [notice.id for notice in new]
    return [news[each] for each in order if each in news], [one for one in new if one.id not in news]


@dataclass
class _Story:
    """History of one name, night by night; by kind of work the current and the sent deviations."""

    limit: float
    wanted: Collection[str]
    sent: Collection[str]
    news: dict[str, Notice] = field(default_factory=dict)
    open: dict[str, float | None] = field(default_factory=dict)
    candidates: dict[str, float | None] = field(default_factory=dict)
    read: dict[str, tuple[str, float | None]] = field(default_factory=dict)
    covered: set[str] = field(default_factory=set)
    said: set[tuple[object, ...]] = field(default_factory=set)

    def go_on(self, night: Sequence[Notice]) -> None:
        closing = {one.processing_type for one in night if one.kind in ("closed", "withdrawn")}
        for change in sorted(night, key=_order):
            is_read = change.id in self.sent
            if change.id in self.wanted:
                is_read = not self._repeats(change, closing)
                if is_read:
                    self.news[change.id] = change
            self._happened(change, is_read=is_read)

    def _repeats(self, change: Notice, closing: Collection[str | None]) -> bool:
        work = change.processing_type or ""
        left = {other: size for other, size in self.open.items() if other not in closing}
        match change.kind:
            case "opened" | "reopened":
                return self._covers(change)
            # the end of one kind of work is no news while another still deviates by as much
            case "closed":
                size = self.open.get(work)
                if any(agree(size, other, self.limit) for other in left.values()):
                    return True
                return work in self.covered and not self._was_read(size)
            case "candidate":
                others = (size for other, size in self.candidates.items() if other != work)
                return bool(self.open) or any(agree(change.deviation, size, self.limit) for size in others)
            case "withdrawn":
                size = self.candidates.get(work)
                others = (size for other, size in self.candidates.items() if other not in closing)
                return (
                    bool(self.open)
                    or any(agree(size, other, self.limit) for other in others)
                    or _topic(change) in self.said
                )
            case _:
                return _topic(change) in self.said

    def _covers(self, change: Notice) -> bool:
        # A sent deviation agrees with this one and still holds, perhaps in another kind of work.
        work = change.processing_type or ""
        remaining = [size for other, size in self.open.items() if other != work]
        for identity, size in self.read.values():
            if not agree(size, change.deviation, self.limit):
                continue
            if any(agree(size, other, self.limit) for other in remaining):
                leader = self.news.get(identity)
                if leader is not None and work != leader.processing_type:
                    self.news[identity] = replace(leader, also=tuple(sorted({*leader.also, work})))
                return True
        return False

    def _was_read(self, size: float | None) -> bool:
        return any(agree(size, other, self.limit) for _, other in self.read.values())

    def _happened(self, change: Notice, *, is_read: bool) -> None:
        work = change.processing_type or ""
        if is_read:
            self.said.add(_topic(change))
        match change.kind:
            case "opened" | "reopened":
                self.candidates.pop(work, None)
                self.open[work] = change.deviation
                # removed first: the order of what was read decides which message names this work
                self.read.pop(work, None)
                if is_read:
                    self.covered.discard(work)
                    self.read[work] = (change.id, change.deviation)
                else:
                    self.covered.add(work)
            case "closed":
                size = self.open.pop(work, None)
                if is_read:
                    self.read = {
                        other: (identity, read)
                        for other, (identity, read) in self.read.items()
                        if other != work and not agree(size, read, self.limit)
                    }
            case "candidate":
                self.candidates[work] = change.deviation
            case "withdrawn":
                self.candidates.pop(work, None)


def _order(notice: Notice) -> tuple[bool, str]:
    # all types first: their message stands for the others of the night
    work = notice.processing_type or ""
    return work != ALL_TYPES, work


def _topic(notice: Notice) -> tuple[object, ...]:
    # Declarations and notes concern every kind of work of a name; a value counts to four digits.
    if notice.kind == "declaration_changed" and notice.corepower is not None:
        return notice.kind, f"{notice.corepower:.4g}"
    return notice.kind, notice.night


def lasting(notices: Iterable[Notice]) -> list[Notice]:
    """Return the withheld changes that still hold, without deviations that have ended."""
    pending: dict[tuple[Name, str | None], Notice] = {}
    rest: list[Notice] = []
    for notice in sorted(notices, key=lambda one: (one.night, one.id)):
        key = (name_of(notice), notice.processing_type)
        if notice.kind in OPENINGS:
            pending[key] = notice
        elif notice.kind != "closed" or pending.pop(key, None) is None:
            rest.append(notice)
    return [*rest, *pending.values()]
