"""Jobs in time: windows as clauses, jobs per day, marks of changed days."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from esjobs.core.query import Days
from esjobs.core.window import Window
from esjobs.store.checks import FINGERPRINTS, LOAD_FINGERPRINTS
from esjobs.store.elastic.transport.scan import PointInTime, only_aggregations

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# The last midnight that 63 bits of nanoseconds reach
_LAST = datetime(2262, 4, 11, tzinfo=UTC)

# many short stretches rather than one: jobs of one hour are mostly of one task
_STRETCHES = 16

# Loads of a day in one answer: with a week of days below the limit of buckets of a search
_MOST_LOADS = 5_000


def within(path: str, window: Window | None) -> list[dict[str, Any]]:
    """Return the clauses of a window; empty for all times."""
    return [] if window is None else [between(path, window.start, window.end)]


def between(path: str, start: datetime | None, end: datetime | None) -> dict[str, Any]:
    """Return the clause of times in [start, end); None: unbounded."""
    # An index of nanoseconds refuses to be asked for times that it cannot hold: such a bound is left out
    # where it excludes nothing, else the nearest one that can be asked for excludes everything.
    limits = {}
    if start is not None and start > _EPOCH:
        limits["gte"] = _written(min(start, _LAST))
    if end is not None and end <= _LAST:
        limits["lt"] = _written(max(end, _EPOCH))
    if not limits:
        return {"exists": {"field": path}}
    return {"range": {path: {**limits, "format": "strict_date_optional_time_nanos"}}}


def around(path: str, window: Window) -> list[dict[str, Any]]:
    """Return the clause of a window of a field with milliseconds, as result rows have.

    Includes up to a millisecond outside a window that is not :func:`is_exact`.
    """
    # rounded outwards: the embedded engine removes what is too much
    end = window.end if window.end.microsecond % 1000 == 0 else _whole_ms(window.end) + _MILLISECOND
    limits = {"gte": _written(_whole_ms(window.start)), "lt": _written(end)}
    return [{"range": {path: {**limits, "format": "strict_date_optional_time_nanos"}}}]


def is_exact(window: Window) -> bool:
    """True if an index with milliseconds can judge a window."""
    return not (window.start.microsecond % 1000 or window.end.microsecond % 1000)


def _whole_ms(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def days_between(path: str, days: Days) -> dict[str, Any]:
    """Return the clause of a field of days."""
    return {"range": {path: {"gte": str(days.first), "lte": str(days.last), "format": "strict_date"}}}


def here_and_there(path: str, first: datetime, last: datetime, share: float) -> dict[str, Any]:
    """Return the clause of evenly spread short times with about a share of the jobs."""
    length = (last - first) / _STRETCHES
    if share >= 1 or length <= timedelta(seconds=1):
        return {"exists": {"field": path}}
    # not always at the same hour of the day, where stretches are whole days
    starts = [first + length * (number + (1 - share) * number / _STRETCHES) for number in range(_STRETCHES)]
    stretches = [between(path, start, start + length * share) for start in starts]
    return {"bool": {"should": stretches, "minimum_should_match": 1}}


def per_day(path: str, inner: Mapping[str, Any]) -> dict[str, Any]:
    """Return an aggregation with a bucket per day that has jobs."""
    # days of UTC are equally long: a fixed interval is the calendar
    histogram = {"field": path, "fixed_interval": "1d", "min_doc_count": 1}
    return {"date_histogram": histogram, "aggs": dict(inner)}


def day_of(bucket: Mapping[str, Any]) -> date:
    """Return the day of a bucket of :func:`per_day`."""
    return moment_of(bucket["key"]).date()


def moment_of(milliseconds: float) -> datetime:
    """Convert milliseconds since the epoch to a time."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def fingerprints(at: PointInTime, path: str, clauses: Sequence[Mapping[str, Any]], mark: str) -> pa.Table:
    """Return columns day, n_jobs, fingerprint; ``mark``: field whose sum it is."""
    query = {"bool": {"filter": list(clauses)}}
    aggs = {"days": per_day(path, {"fingerprint": {"sum": {"field": mark}}})}
    answer = at.search(only_aggregations(query, aggs))
    return pa.Table.from_pylist(
        [
            {
                "day": day_of(group),
                "n_jobs": group["doc_count"],
                "fingerprint": digits(group["fingerprint"]["value"]),
            }
            for group in (answer["aggregations"]["days"]["buckets"] if answer else [])
        ],
        schema=FINGERPRINTS,
    )


def fingerprints_by_load(
    at: PointInTime, path: str, clauses: Sequence[Mapping[str, Any]], mark: str, load: str
) -> pa.Table:
    """Return columns day, load, n_jobs, fingerprint, the sum of marks up to a load.

    Days with more loads than an answer lists are left out.
    """
    query = {"bool": {"filter": list(clauses)}}
    of_load = {"terms": {"field": load, "size": _MOST_LOADS, "order": {"_key": "asc"}}}
    of_load["aggs"] = {"fingerprint": {"sum": {"field": mark}}}
    answer = at.search(only_aggregations(query, {"days": per_day(path, {"loads": of_load})}))
    rows: list[dict[str, Any]] = []
    for group in answer["aggregations"]["days"]["buckets"] if answer else []:
        loads = group["loads"]
        # sums of an incomplete list of loads would be wrong: the day is left out
        if loads["sum_other_doc_count"]:
            continue
        total = 0.0
        for each in loads["buckets"]:
            # whole numbers below 2**31: their sum is exact in any order
            total += each["fingerprint"]["value"]
            rows.append(
                {
                    "day": day_of(group),
                    "load": each["key"],
                    "n_jobs": each["doc_count"],
                    "fingerprint": digits(total),
                }
            )
    return pa.Table.from_pylist(rows, schema=LOAD_FINGERPRINTS)


def digits(value: float | None) -> str:
    """Format a number for a mark, without digits that depend on the order of summation."""
    if value is None or not math.isfinite(value):
        return "-"
    # shards answer in any order, so the last digits of a sum of fractions change from search to search
    return str(int(value)) if value == int(value) else f"{value:.9e}"


def _written(moment: datetime) -> str:
    # not strftime: it writes the year 1 with one digit
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
