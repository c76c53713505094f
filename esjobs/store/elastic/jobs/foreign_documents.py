"""Foreign documents as jobs: fields read, values translated, invalid ones counted."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from operator import or_
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.store.elastic.asking.clauses import translated
from esjobs.store.elastic.fields.live_fields import LiveField
from esjobs.store.elastic.jobs.job_index import Documents


def jobs_of(
    documents: Sequence[Mapping[str, list[Any]]], wanted: Sequence[LiveField], judged: Collection[str]
) -> Documents:
    """Convert documents, each a list of values per field; invalid ones are counted by day.

    ``judged``: fields in which invalid values disqualify the document; elsewhere they are missing.
    """
    columns: dict[str, list[Any]] = {}
    bad = [False] * len(documents)
    for live in wanted:
        values = [_value(live, document) for document in documents]
        columns[live.field.name] = [None if value is _INVALID else value for value in values]
        bad = list(map(or_, bad, _disqualifying(live, values, is_judged=live.field.name in judged)))
    times = _times(columns["end_time"])
    of_days = Counter(_day(moment) for moment, wrong in zip(times.to_pylist(), bad, strict=True) if wrong)
    good = pa.array([not wrong for wrong in bad], pa.bool_())
    arrays = []
    for item in PUT_SCHEMA:
        values = columns.get(item.name, [None] * len(documents))
        column = _times(values) if pa.types.is_timestamp(item.type) else pa.array(values, item.type)
        arrays.append(column.filter(good))
    return Documents(pa.RecordBatch.from_arrays(arrays, schema=PUT_SCHEMA), of_days)


def _disqualifying(live: LiveField, values: Sequence[Any], *, is_judged: bool) -> list[bool]:
    """Return the mask of values with which a document is no job."""
    if live.field.required:
        return [value is None or value is _INVALID for value in values]
    return [is_judged and value is _INVALID for value in values]


# Stands for a value that no job has
_INVALID: Any = object()


def _value(live: LiveField, document: Mapping[str, list[Any]]) -> Any:
    if live.state == "constant":
        return live.source.constant
    for name in live.read:
        values = document.get(name) or ()
        first = values[0] if values else None
        # a list of equal values is one value that was written several times
        if any(value != first for value in values):
            return _INVALID
        value = _typed(live, first)
        if value is not None:
            return value
    return None


def _typed(live: LiveField, raw: Any) -> Any:
    kind = live.field.type
    if raw is None or kind == "time":
        return raw
    if kind == "boolean":
        return _truth(raw)
    if kind == "map":
        return _members(raw, bounded=live.field.bounded)
    if kind in ("integer", "number"):
        raw = _finite(raw)
        if raw is _INVALID:
            return _INVALID
    value = translated(live, raw)
    # a negative number that stands for "not measured" has become None by now
    if live.field.bounded and value is not None and value < 0:
        return _INVALID
    return value


def _finite(raw: Any) -> Any:
    try:
        # some indices keep numbers as texts
        number = raw if isinstance(raw, int | float) else float(raw)
    except (TypeError, ValueError):
        return _INVALID
    return number if math.isfinite(number) else _INVALID


def _truth(raw: Any) -> Any:
    # indices hold truth as booleans, texts or numbers
    text = ("true" if raw else "false") if isinstance(raw, bool) else str(raw).lower()
    return True if text in _TRUE else False if text in _FALSE else _INVALID


_TRUE, _FALSE = ("true", "yes", "on", "1", "1.0"), ("false", "no", "off", "0", "0.0")


def _members(raw: Any, *, bounded: bool) -> Any:
    """Return an object as sorted pairs of dotted name and number."""
    if not isinstance(raw, dict):
        return _INVALID
    found: dict[str, float] = {}
    waiting = [(str(name), value) for name, value in raw.items()]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{name}.{inner}", number) for inner, number in value.items()]
        elif value is not None:
            number = _count(value)
            if not math.isfinite(number) or (bounded and number < 0) or name in found:
                return _INVALID
            found[name] = number
    return sorted(found.items()) or None


def _count(value: Any) -> float:
    """Return a number; NaN for anything else."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _times(values: Sequence[str | None]) -> pa.Array:
    return (
        pa.array(values, pa.string())
        # indices may keep nanoseconds; microseconds are what a job has, and the rest is cut off
        .cast(pa.timestamp("ns", "UTC"))
        .cast(pa.timestamp("us", "UTC"), safe=False)
    )


def _day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()
