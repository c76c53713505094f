"""A second implementation of what a store promises, in plain Python: slow, obvious, without SQL."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from esjobs.core import fields
from esjobs.core.fields import CoreClassOf, DayOf, Quotient
from esjobs.core.keys import Bins, Named, TimePart
from esjobs.core.query import (
    Count,
    Days,
    DropRule,
    Either,
    Filter,
    In,
    Like,
    Maximum,
    Metric,
    Minimum,
    Missing,
    Moment,
    NotIn,
    NotLike,
    Present,
    Quantile,
    Query,
    Range,
    Sum,
    SumProduct,
    SumWhere,
    Times,
)
from esjobs.store.base import Undone
from tests.contract.jobs import START, Row

_FIELDS = tuple(known.name for known in fields.JOB_FIELDS)

Identity = tuple[str | None, str]


@dataclass(frozen=True)
class Account:
    """What a put says of itself; the members are those of ``PutCounts``."""

    stored: int
    updated: int
    superseded: int
    jobs_changed: int
    changed: dict[str, int]
    kept: dict[str, int]
    unchanged: int


@dataclass(frozen=True)
class Version:
    """What a load says of a job: its rows with its newest end time, field by field the last known value."""

    end_time: datetime
    known: Row


Versions = dict[int, Version]
"""Versions of a job by the number of their load."""


@dataclass
class Loads:
    """The versions of every job, by load; everything else is worked out on demand.

    ``found``: by number of a load and of another one, the rows that were unchanged in the other. ``pruned``:
    the loads that cannot be undone.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    versions: dict[Identity, Versions] = field(default_factory=lambda: defaultdict(dict))
    found: dict[int, Counter[int]] = field(default_factory=dict)
    pruned: set[int] = field(default_factory=set)

    def put(self, load_id: str, rows: Sequence[Row]) -> Account:
        """Put the rows of a load."""
        number = self.numbers.setdefault(load_id, max(self.numbers.values(), default=0) + 1)
        self.found[number] = Counter()
        of_jobs: dict[Identity, list[Row]] = defaultdict(list)
        for row in rows:
            of_jobs[_identity(row)].append(row)
        counts: Counter[str] = Counter()
        changed: Counter[str] = Counter()
        kept: Counter[str] = Counter()
        for identity, mine in of_jobs.items():
            versions = self.versions[identity]
            old = _shown(versions)
            after = {**versions, number: _joined([versions[number]] if number in versions else [], mine)}
            brought = max(row["end_time"] for row in mine)
            unchanged = _said(versions, brought) == _said(after, brought)
            new = old if unchanged else _shown(after)
            incoming = [row for row in mine if row["end_time"] == new["end_time"]]
            counts["stored"] += not versions
            counts["superseded"] += len(mine) - len(incoming)
            if unchanged and incoming:
                counts["unchanged"] += len(incoming)
                for source in _sources(versions, brought) - {number}:
                    self.found[number][source] += len(incoming)
            if not unchanged:
                self.versions[identity] = after
            if incoming:
                before = old or incoming[0]
                moved = [name for name in _FIELDS if before.get(name) != new.get(name)]
                counts["jobs_changed"] += bool(moved)
                changed.update(moved)
                kept.update(name for name in new if all(row.get(name) is None for row in incoming))
        updated = len(rows) - counts["stored"] - counts["superseded"]
        return Account(
            counts["stored"],
            updated,
            counts["superseded"],
            counts["jobs_changed"],
            dict(changed),
            dict(kept),
            counts["unchanged"],
        )

    def undo(self, load_id: str) -> Undone | None:
        """Take a load back; None if that is refused."""
        number = self.numbers.get(load_id, 0)
        if number in self.pruned:
            return None
        self.numbers.pop(load_id, None)
        self.found.pop(number, None)
        names = {each: name for name, each in self.numbers.items()}
        found = {names[each]: of.pop(number) for each, of in self.found.items() if number in of}
        gone = [versions.pop(number, None) for versions in self.versions.values()]
        return Undone(sum(version is not None for version in gone), found)

    def prune(self, load_ids: Sequence[str]) -> int:
        """Remove the versions that others of these loads cover."""
        chosen = {self.numbers[name] for name in load_ids if name in self.numbers}
        removed = 0
        for versions in self.versions.values():
            ranked = sorted(
                chosen & set(versions), key=lambda each: (versions[each].end_time, each), reverse=True
            )
            some = {each: versions[each] for each in ranked}
            kept = _sources(some, versions[ranked[0]].end_time) if ranked else set()
            for place, each in enumerate(ranked):
                if each not in kept:
                    self.pruned.update(ranked[:place])
                    del versions[each]
                    removed += 1
        return removed

    def visible(self) -> dict[Identity, Row]:
        """Of each job the versions with the newest end time, by load; of each field the last value."""
        return {identity: _shown(versions) for identity, versions in self.versions.items() if versions}


def _joined(before: Sequence[Version], rows: Sequence[Row]) -> Version:
    said = [(version.end_time, version.known) for version in before]
    said += [(row["end_time"], {name: v for name, v in row.items() if v is not None}) for row in rows]
    newest = max(end_time for end_time, _ in said)
    known: Row = {}
    for end_time, values in said:
        if end_time == newest:
            known |= values
    return Version(newest, known)


def _said(versions: Versions, end_time: datetime) -> Row:
    """What the versions of an end time say together."""
    known: Row = {}
    for number in sorted(versions):
        if versions[number].end_time == end_time:
            known |= versions[number].known
    return known


def _shown(versions: Versions) -> Row:
    return _said(versions, max((version.end_time for version in versions.values()), default=START))


def _sources(versions: Versions, end_time: datetime) -> set[int]:
    """The loads that each value of an end time comes from."""
    of_fields: dict[str, int] = {}
    for number in sorted(versions):
        if versions[number].end_time == end_time:
            of_fields |= dict.fromkeys(versions[number].known, number)
    return set(of_fields.values())


def _identity(row: Row) -> Identity:
    return row.get("source"), row["job_id"]


def value(row: Row, name: str) -> Any:
    """A field of a job, stored or derived."""
    match fields.field(name).derived:
        case DayOf(source):
            return row[source].astimezone(UTC).date()
        case CoreClassOf(source):
            cores = row[source]
            return None if cores is None or cores < 1 else "single" if cores == 1 else "multi"
        case Quotient(over, under):
            top, bottom = [row[name] for name in over], [row[name] for name in under]
            if None in top or None in bottom:
                return None
            divisor = math.prod(float(factor) for factor in bottom)
            return None if divisor == 0 else math.prod(float(factor) for factor in top) / divisor
    return row.get(name)


def holds(item: Filter, row: Row) -> bool:
    """Whether a job passes a filter."""
    if isinstance(item, Either):
        return any(holds(part, row) for part in item.filters)
    found = value(row, item.field)
    match item:
        case Missing():
            return found is None
        case Present():
            return found is not None
        case In(_, values):
            return found is not None and (found in values or (type(found) is date and str(found) in values))
        case Range(_, gt, ge, lt, le):
            if found is None or math.isnan(found):
                return False
            return (
                (gt is None or found > gt)
                and (ge is None or found >= ge)
                and (lt is None or found < lt)
                and (le is None or found <= le)
            )
        case NotIn(_, values):
            return found is not None and found not in values
        case Days(_, first, last):
            return found is not None and first <= found <= last
        case Times(_, start, end):
            return found is not None and (start is None or start <= found) and (end is None or found < end)
        case Like(_, patterns):
            return found is not None and any(like(found, pattern) for pattern in patterns)
        case NotLike(_, patterns):
            return found is None or not any(like(found, pattern) for pattern in patterns)
    raise AssertionError(item)


def like(text: str, pattern: str) -> bool:
    """Whether a text matches a pattern in which * stands for any text; case does not matter."""
    first, *rest = pattern.lower().split("*")
    text = text.lower()
    if not rest:
        return text == first
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return text.endswith(rest[-1]) and len(text) - len(rest[-1]) >= at


def outcome(row: Row, drops: Iterable[DropRule]) -> tuple[str | None, list[str]]:
    """The reason of the first rule that a job fails, and the notes of those that it passes unknown."""
    notes = []
    for rule in drops:
        if value(row, rule.keep.field) is None:
            if rule.missing == "drop":
                return rule.reason, []
            if rule.unknown is not None:
                notes.append(rule.unknown)
        elif not holds(rule.keep, row):
            return rule.reason, []
    return None, notes


Books = dict[tuple[date, str, str], int]


def answer(rows: Iterable[Row], query: Query) -> tuple[dict[tuple[Any, ...], Row], Books]:
    """The groups of a query and its books."""
    grouped: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    books: Counter[tuple[date, str, str]] = Counter()
    for row in rows:
        if query.window and not query.window.start <= row["end_time"] < query.window.end:
            continue
        if not all(holds(item, row) for item in query.where):
            continue
        day = value(row, "day")
        reason, notes = outcome(row, query.drops)
        if reason is not None:
            books[day, reason, "dropped"] += 1
            continue
        books[day, "binned", "binned"] += 1
        for note in notes:
            books[day, note, "note"] += 1
        grouped[tuple(_key(row, key, query) for key in query.keys)].append(row)
    tables = {
        key: {metric.name: measure(members, metric) for metric in query.metrics}
        for key, members in grouped.items()
    }
    return tables, dict(books)


def measure(rows: Sequence[Row], metric: Metric) -> Any:
    """A metric over the jobs of a group."""
    match metric:
        case Count():
            return len(rows)
        case Sum(name):
            return _total([value(row, name) for row in rows])
        case SumProduct(left, right):
            pairs = [(value(row, left), value(row, right)) for row in rows]
            return _total([None if None in pair else float(pair[0]) * float(pair[1]) for pair in pairs])
        case SumWhere(name, having):
            kept = [row for row in rows if all(value(row, other) is not None for other in having)]
            return _total([value(row, name) for row in kept])
        case Moment():
            return _moment(rows, metric)
        case Quantile(name, fraction):
            return _quantile([value(row, name) for row in rows], fraction)
        case Minimum(name):
            return min((value(row, name) for row in rows if value(row, name) is not None), default=None)
        case Maximum(name):
            return max((value(row, name) for row in rows if value(row, name) is not None), default=None)


def _key(row: Row, name: str, query: Query) -> Any:
    made = query.made_key(name)
    stored = value(row, name if made is None else made.field)
    match made:
        case Named(names=names):
            return dict(names).get(stored)
        case Bins(edges=edges):
            known = stored is not None and not math.isnan(stored)
            return sum(stored >= edge for edge in edges) if known else None
        case TimePart(part="hour"):
            return stored.astimezone(UTC).hour
        case TimePart(part=part):
            day = stored.astimezone(UTC).date()
            return day - timedelta(days=day.weekday()) if part == "week" else day.replace(day=1)
    return stored


def _moment(rows: Sequence[Row], moment: Moment) -> Any:
    kept = [
        row
        for row in rows
        if all(value(row, name) is not None for name in (*moment.factors, *moment.having))
        and all(holds(item, row) for item in moment.where)
    ]
    if not moment.factors:
        return len(kept)
    return _total([math.prod(float(value(row, name)) for name in moment.factors) for row in kept])


def _quantile(values: Sequence[float | None], fraction: float) -> float | None:
    present = sorted(float(one) for one in values if one is not None and not math.isnan(one))
    if not present:
        return None
    place = fraction * (len(present) - 1)
    low = math.floor(place)
    high = min(low + 1, len(present) - 1)
    return present[low] + (place - low) * (present[high] - present[low])


def _total(values: Sequence[float | None]) -> float | None:
    present = [float(found) for found in values if found is not None]
    return math.fsum(present) if present else None
