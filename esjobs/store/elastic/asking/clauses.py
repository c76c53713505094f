"""Filters as clauses of a search: pure functions of question and index fields.

A clause is true exactly where the filter holds; None: it cannot be expressed, so the caller reads documents.
Patterns without regard to case are matched here, on the distinct values of the index.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from esjobs.core import fields
from esjobs.core.conditions import matches
from esjobs.core.fields import CoreClassOf, DayOf, Field, Quotient
from esjobs.core.query import (
    Days,
    DropRule,
    Either,
    Filter,
    In,
    Like,
    Missing,
    NotIn,
    NotLike,
    Present,
    Range,
    Times,
)
from esjobs.store.elastic.asking import quotients
from esjobs.store.elastic.asking.days import between, days_between
from esjobs.store.elastic.fields.live_fields import LiveField
from esjobs.store.elastic.layout import LONGEST_TERM
from esjobs.store.values import typed

Clause = dict[str, Any]

EVERY: Clause = {"match_all": {}}
NONE: Clause = {"match_none": {}}

Distinct = Callable[[str], list[Any] | None]
"""The distinct values of a path among the jobs in question; None when they are too many."""

# distinct values against which a pattern is matched here
_MOST_VALUES = 10_000
# Values in one clause; both products allow 65 536
_MOST_TERMS = 50_000


class Clauses:
    """Clauses for the fields of one index."""

    def __init__(self, live: Mapping[str, LiveField], distinct: Distinct) -> None:
        self.live = live
        self._distinct = distinct

    def _field(self, name: str) -> Field:
        return self.live[name].field if name in self.live else fields.field(name)

    def filters(self, items: Sequence[Filter]) -> list[Clause] | None:
        """Return all filters, to be joined by and; None if one cannot be expressed."""
        clauses = [self.filter(item) for item in items]
        # one filter that cannot be expressed makes all documents candidates
        exact = [clause for clause in clauses if clause is not None]
        return exact if len(exact) == len(clauses) else None

    def narrowing(self, items: Sequence[Filter]) -> list[Clause]:
        """Return clauses that pass at least what the filters pass."""
        return [clause for clause in map(self._narrowing, items) if clause is not None]

    def _narrowing(self, item: Filter) -> Clause | None:
        clause = self.filter(item)
        if clause is None and isinstance(item, Range):
            derived = self._field(item.field).derived
            return _either(quotients.possibly(self, derived, item) if isinstance(derived, Quotient) else None)
        return clause

    def filter(self, item: Filter) -> Clause | None:
        """Return a filter as clause."""
        match item:
            case Either(filters):
                return _either(self.filters(filters))
            case Missing(name):
                present = self.present(name)
                return None if present is None else negated(present)
            case Present(name):
                return self.present(name)
            case In(name, values):
                return self._membership(name, values)
            case NotIn(name, values):
                return self._other(name, values)
            case Range():
                return self._range(item)
            case Days():
                return self._days(item)
            case Times(name, start, end):
                return self._times(name, start, end)
            case Like(name, patterns):
                return self._like(name, patterns)
            case NotLike(name, patterns):
                like = self._like(name, patterns)
                return None if like is None else negated(like)

    def keep(self, rule: DropRule) -> Clause | None:
        """Return the clause of the jobs that a rule keeps."""
        condition, present = self.filter(rule.keep), self.present(rule.keep.field)
        if condition is None or present is None:
            return None
        # the only condition that a missing value passes by itself
        if isinstance(rule.keep, NotLike):
            return condition if rule.missing == "pass" else all_of([present, condition])
        return any_of([negated(present), condition]) if rule.missing == "pass" else condition

    def present(self, name: str) -> Clause | None:
        """Return the clause of the jobs that have a field."""
        match self._field(name).derived:
            case DayOf(source):
                return self.present(source)
            case CoreClassOf(source):
                # below 1 a number of cores has no class
                return self.filter(Range(source, ge=1))
            case Quotient() as quotient:
                return self._has_quotient(quotient)
        live = self.live[name]
        if live.state in ("constant", "absent"):
            return EVERY if live.state == "constant" else NONE
        if not live.askable:
            return None
        return any_of([has_value(live, path) for path in live.paths])

    def _has_quotient(self, quotient: Quotient) -> Clause | None:
        parts = self.filters([Present(part) for part in (*quotient.over, *quotient.under)])
        zero = self.filters([In(part, (0,)) for part in quotient.under])
        return None if parts is None or zero is None else all_of(parts, zero)

    def distinct(self, name: str) -> list[Any] | None:
        """Return the translated distinct values of a stored field; None if too many."""
        live = self.live[name]
        if not live.askable:
            return None
        canonical: set[Any] = {live.source.constant} if live.state == "constant" else set()
        for path in live.paths:
            values = self._distinct(path)
            if values is None:
                return None
            canonical |= {translated(live, value) for value in values}
        return sorted(value for value in canonical if value is not None)

    def _membership(self, name: str, values: Sequence[Any]) -> Clause | None:
        item = self._field(name)
        usable = [cast for value in values for cast in typed(name, item.type, value)]
        if item.derived is not None:
            return self._derived_membership(item, usable)
        live = self.live[name]
        if live.state == "constant":
            return EVERY if live.source.constant in usable else NONE
        if live.state == "absent":
            return NONE
        if not live.askable or item.type == "time":
            return None
        return _stored_among(live, usable)

    def _derived_membership(self, item: Field, usable: Sequence[Any]) -> Clause | None:
        match item.derived:
            case DayOf(source):
                days = [_times_of(source, Days(item.name, day, day)) for day in usable]
                return _either(self.filters(days))
            case CoreClassOf(source):
                ranges = {"single": Range(source, ge=1, le=1), "multi": Range(source, gt=1)}
                return _either(self.filters([ranges[str(value)] for value in usable if value in ranges]))
        return None

    def _range(self, item: Range) -> Clause | None:
        bounds = (item.gt, item.ge, item.lt, item.le)
        if any(bound is not None and math.isnan(bound) for bound in bounds):
            return NONE
        derived = self._field(item.field).derived
        if isinstance(derived, Quotient):
            return _either(quotients.exactly(self, derived, item))
        # days and classes are no numbers
        if derived is not None:
            return None
        live = self.live[item.field]
        if live.state in ("constant", "absent"):
            return NONE
        return _first_of(live, _between(live, item)) if live.askable else None

    def _other(self, name: str, values: Sequence[Any]) -> Clause | None:
        present, same = self.present(name), self._membership(name, values)
        return None if present is None or same is None else all_of([present], [same])

    def _days(self, item: Days) -> Clause | None:
        derived = self._field(item.field).derived
        if isinstance(derived, DayOf):
            return self.filter(_times_of(derived.field, item))
        live = self.live[item.field]
        return days_between(live.paths[0], item) if live.askable and live.paths else None

    def _times(self, name: str, start: datetime | None, end: datetime | None) -> Clause | None:
        live = self.live[name]
        if live.state == "absent":
            return NONE
        return _first_of(live, lambda path: between(path, start, end)) if live.askable else None

    def _like(self, name: str, patterns: Sequence[str]) -> Clause | None:
        derived = self._field(name).derived
        values = list(_CLASSES) if isinstance(derived, CoreClassOf) else self.distinct(name)
        if values is None or len(values) > _MOST_VALUES:
            return None
        if not all(text.isascii() for text in (*values, *patterns)):
            return None  # engines differ in how they fold other letters
        # the cluster compares whole texts: case and wildcards are decided here
        hit = tuple(value for value in values if any(matches(value, pattern) for pattern in patterns))
        return self.filter(In(name, hit))


def _stored_among(live: LiveField, usable: Sequence[Any]) -> Clause:
    kind = live.field.type
    if kind in ("boolean", "day"):
        return {"terms": {live.paths[0]: [str(value).lower() for value in usable]}}
    if kind == "keyword":
        wanted = [raw for value in usable for raw in foreign_texts(live, str(value))]
        return _first_of(live, lambda path: _terms(path, wanted))
    # a number as the range of all foreign numbers that are translated into it
    # an index holds neither NaN nor infinities
    numbers = [value for value in usable if isinstance(value, int | float) and math.isfinite(value)]
    name = live.field.name
    return any_of([_first_of(live, _between(live, Range(name, ge=n, le=n))) for n in numbers])


def _terms(path: str, values: Sequence[Any]) -> Clause:
    starts = range(0, len(values), _MOST_TERMS)
    return any_of([{"terms": {path: values[start : start + _MOST_TERMS]}} for start in starts])


# The values of a class of cores
_CLASSES = ("single", "multi")


def _times_of(source: str, days: Days) -> Times:
    start = datetime.combine(days.first, time(0), UTC)
    # Python has no day after it
    if days.last == date.max:
        return Times(source, start)
    return Times(source, start, datetime.combine(days.last + timedelta(days=1), time(0), UTC))


def all_of(parts: Sequence[Clause], none_of: Sequence[Clause] = ()) -> Clause:
    """Join by and; ``none_of`` must not hold."""
    if len(parts) == 1 and not none_of:
        return parts[0]
    return {"bool": {"filter": list(parts) or [EVERY], **({"must_not": list(none_of)} if none_of else {})}}


def any_of(parts: Sequence[Clause]) -> Clause:
    """Join by or; nothing matches an empty list."""
    if not parts:
        return NONE
    return parts[0] if len(parts) == 1 else {"bool": {"should": list(parts), "minimum_should_match": 1}}


def _either(parts: Sequence[Clause] | None) -> Clause | None:
    return None if parts is None else any_of(parts)


def negated(part: Clause) -> Clause:
    """Negate a clause."""
    return all_of([], [part])


def has_value(live: LiveField, path: str) -> Clause:
    """True if a document has a value under the path, as a clause."""
    return measured(live, path, {"exists": {"field": path}})


def measured(live: LiveField, path: str, clause: Clause) -> Clause:
    """Return a clause about a path without the number that stands for "not measured"."""
    unset = live.source.unset
    return clause if unset is None else all_of([clause], [{"term": {path: unset}}])


def translated(live: LiveField, value: Any) -> Any:
    """Translate a foreign value, rounding counts; None for missing."""
    if value is None or value == live.source.unset:
        return None
    if live.field.type == "keyword":
        text = str(value)
        return live.source.values.get(text, text)
    # times 1.0 would round integers beyond 2**53
    scaled = value * live.source.factor if live.source.factor != 1 else value
    return round(scaled) if live.field.type == "integer" else float(scaled)


def foreign_texts(live: LiveField, value: str) -> list[Any]:
    """Return the foreign texts that stand for a canonical one."""
    values = live.source.values
    texts = [raw for raw, canonical in values.items() if canonical == value]
    if value not in values:
        texts.append(value)
    if live.whole_numbers:
        # no other spelling: "007" is not the number 7, and other digits than ASCII are not read back
        return [int(text) for text in texts if text.lstrip("-").isdecimal() and str(int(text)) == text]
    # longer texts are not indexed, so no document has them as a term
    return [text for text in texts if len(text) <= LONGEST_TERM]


def _first_of(live: LiveField, leaf: Callable[[str], Clause]) -> Clause:
    *before, last = live.paths
    clause = leaf(last)
    for path in reversed(before):
        exists = has_value(live, path)
        clause = any_of([all_of([exists, leaf(path)]), all_of([clause], [exists])])
    return clause


def _between(live: LiveField, item: Range) -> Callable[[str], Clause]:
    """Return the condition that a path lies in a range, in the units of the index."""
    limits: dict[str, float] = {}
    plain = live.source.factor == 1 and (live.whole_numbers or live.field.type != "integer")
    for key, bound in (("gt", item.gt), ("gte", item.ge), ("lt", item.lt), ("lte", item.le)):
        if bound is None:
            continue
        if math.isinf(bound):
            # nothing is above infinity, and every number is below it
            if (bound > 0) == key.startswith("g"):
                return lambda _: NONE
            continue
        if plain:
            limits[key] = bound
        else:
            # least foreign value that reaches the bound, or goes beyond it
            beyond = key in ("gt", "lte")
            limits["gte" if key.startswith("g") else "lt"] = least_raw(live, bound, beyond=beyond)

    return lambda path: measured(
        live, path, {"range": {path: limits}} if limits else {"exists": {"field": path}}
    )


def least_raw(live: LiveField, bound: float, *, beyond: bool) -> float:
    """Return the least foreign number whose translation reaches the bound, or exceeds it."""

    def reached(raw: float) -> bool:
        value = translated(live, raw)
        return bool(value > bound if beyond else value >= bound)

    low, high = sorted(bound / live.source.factor * scale for scale in (1 - 1e-5, 1 + 1e-5))
    # a count is rounded: half a unit to either side, and as much again
    spread = 1.0 / live.source.factor
    low, high = low - spread, high + spread
    # halving ends when no float lies between both ends, after some 60 steps
    for _ in range(200):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
