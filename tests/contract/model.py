"""A second implementation of what a store promises, in plain Python: slow, obvious, without SQL."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, timedelta
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
from tests.contract.jobs import Row

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


@dataclass
class Loads:
    """Every row that was ever put, by load; everything else is worked out on demand."""

    numbers: dict[str, int] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))

    def put(self, load_id: str, rows: Sequence[Row]) -> Account:
        """Put the rows of a load."""
        before = self.visible()
        self.numbers.setdefault(load_id, max(self.numbers.values(), default=0) + 1)
        self.rows[load_id] += rows
        after = self.visible()
        incoming: dict[Identity, list[Row]] = defaultdict(list)
        for row in rows:
            if row["end_time"] == after[_identity(row)]["end_time"]:
                incoming[_identity(row)].append(row)
        stored = len({_identity(row) for row in rows} - set(before))
        superseded = len(rows) - sum(map(len, incoming.values()))
        changed: Counter[str] = Counter()
        kept: Counter[str] = Counter()
        jobs_changed = 0
        for identity, mine in incoming.items():
            old, new = before.get(identity, mine[0]), after[identity]
            moved = [name for name in _FIELDS if old.get(name) != new.get(name)]
            jobs_changed += bool(moved)
            changed.update(moved)
            kept.update(
                name
                for name in _FIELDS
                if new.get(name) is not None and all(row.get(name) is None for row in mine)
            )
        updated = len(rows) - stored - superseded
        return Account(stored, updated, superseded, jobs_changed, dict(changed), dict(kept))

    def undo(self, load_id: str) -> int:
        """The number of jobs of the load."""
        self.numbers.pop(load_id, None)
        return len({_identity(row) for row in self.rows.pop(load_id, [])})

    def visible(self) -> dict[Identity, Row]:
        """Of each job the rows with the newest end time, by load, then row; of each field the last value."""
        jobs: dict[Identity, list[Row]] = defaultdict(list)
        for load_id in sorted(self.rows, key=lambda name: self.numbers[name]):
            for row in self.rows[load_id]:
                jobs[_identity(row)].append(row)
        found: dict[Identity, Row] = {}
        for identity, rows in jobs.items():
            newest = max(row["end_time"] for row in rows)
            found[identity] = {}
            for row in rows:
                if row["end_time"] == newest:
                    found[identity] |= {name: known for name, known in row.items() if known is not None}
        return found


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
