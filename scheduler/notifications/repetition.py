"""Repetitions of events that a recipient has read: one wrong declaration, one message.

A declaration is wrong for every kind of work, and each kind is confirmed on a night of its own. A kind is
news only where it would still deviate by more than the limit if the declaration were corrected by what was
sent before. Nothing here reads or writes.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

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
    flags: dict[str, Notice] = {}
    news: dict[str, Notice] = {}
    for notice in new:
        (flags if notice.is_flag else news)[notice.id] = notice
    by_name: dict[Name, dict[str, Notice]] = defaultdict(dict)
    for notice in (*(one for one in history if one.is_flag), *flags.values()):
        by_name[name_of(notice)][notice.id] = notice
    for of_name in by_name.values():
        news |= _news(of_name.values(), _Story(limit, flags, sent))
    order = [notice.id for notice in new]
    return [*filter(None, map(news.get, order))], [one for one in new if one.id not in news]


def _news(notices: Iterable[Notice], story: "_Story") -> dict[str, Notice]:
    """Return the news about one name by id, night by night."""
    for _, night in groupby(sorted(notices, key=lambda one: one.night), key=lambda one: one.night):
        story.go_on(list(night))
    return story.news


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
        match change.kind:
            case "opened" | "reopened":
                return self._covers(change)
            case "closed":
                return self._is_end_covered(change, closing)
            case "candidate":
                others = self._others(self.candidates, {change.processing_type or ""})
                return bool(self.open) or self._agrees(change.deviation, others)
            case "withdrawn":
                size = self.candidates.get(change.processing_type or "")
                others = self._others(self.candidates, closing)
                return bool(self.open) or self._agrees(size, others) or _topic(change) in self.said
            case _:
                return _topic(change) in self.said

    def _is_end_covered(self, change: Notice, closing: Collection[str | None]) -> bool:
        """True if the end of one kind of work is no news: another still deviates by as much."""
        work = change.processing_type or ""
        size = self.open.get(work)
        if self._agrees(size, self._others(self.open, closing)):
            return True
        return work in self.covered and not self._agrees(size, [read for _, read in self.read.values()])

    @staticmethod
    def _others(sizes: Mapping[str, float | None], but: Collection[str | None]) -> list[float | None]:
        return [size for work, size in sizes.items() if work not in but]

    def _agrees(self, size: float | None, others: Iterable[float | None]) -> bool:
        return any(agree(size, other, self.limit) for other in others)

    def _covers(self, change: Notice) -> bool:
        # A sent deviation agrees with this one and still holds, perhaps in another kind of work.
        work = change.processing_type or ""
        remaining = self._others(self.open, {work})
        for identity, size in self.read.values():
            if agree(size, change.deviation, self.limit) and self._agrees(size, remaining):
                leader = self.news.get(identity)
                if leader is not None and work != leader.processing_type:
                    self.news[identity] = replace(leader, also=tuple(sorted({*leader.also, work})))
                return True
        return False

    def _happened(self, change: Notice, *, is_read: bool) -> None:
        work = change.processing_type or ""
        if is_read:
            self.said.add(_topic(change))
        match change.kind:
            case "opened" | "reopened":
                self._opened(work, change, is_read=is_read)
            case "closed":
                size = self.open.pop(work, None)
                if is_read:
                    self._forget(work, size)
            case "candidate":
                self.candidates[work] = change.deviation
            case "withdrawn":
                self.candidates.pop(work, None)

    def _opened(self, work: str, change: Notice, *, is_read: bool) -> None:
        self.candidates.pop(work, None)
        self.open[work] = change.deviation
        # removed first: the order of what was read decides which message names this work
        self.read.pop(work, None)
        if is_read:
            self.covered.discard(work)
            self.read[work] = (change.id, change.deviation)
        else:
            self.covered.add(work)

    def _forget(self, work: str, size: float | None) -> None:
        """Forget what was read of a kind of work, and of those that agreed with it."""
        self.read = {
            other: (identity, read)
            for other, (identity, read) in self.read.items()
            if other != work and not agree(size, read, self.limit)
        }


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
