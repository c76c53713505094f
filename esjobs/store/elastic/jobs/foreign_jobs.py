"""Jobs in indices of others, read where they are through a field map; nothing is ever written there."""

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.window import Window
from esjobs.store.base import Span
from esjobs.store.elastic.asking.clauses import Clause, all_of, negated, translated
from esjobs.store.elastic.asking.days import fingerprints, moment_of, within
from esjobs.store.elastic.fields.field_map import FieldMap
from esjobs.store.elastic.fields.live_fields import LiveField, live_fields, require_usable
from esjobs.store.elastic.jobs.job_index import Documents
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError
from esjobs.store.elastic.transport.scan import PATTERN, PointInTime

_USED = ("cpu_s", "wall_s", "events", "cores", "hs06_s")
"""Numbers whose sums tell that documents differ: those that buckets and declared values are made of."""

_MOST_INDICES = 1000
"""Indices in which the jobs of one day may lie."""

_TIME_FORMAT = "strict_date_optional_time_nanos"


class ForeignJobs:
    """The documents of an index, an alias or a pattern, as a field map reads them.

    One document is one job. What the index has not indexed of a document (malformed, too long) is missing.
    Raises :class:`StoreError` when no index matches.
    """

    several_values = True

    def __init__(self, cluster: Cluster, index: str, field_map: FieldMap) -> None:
        self._cluster = cluster
        self.index = index
        self.live = live_fields(cluster, index, field_map)

    @property
    def _time(self) -> str:
        return self.live["end_time"].paths[0]

    def visible(self) -> list[Clause]:
        """The documents that have an end time.

        Raises :class:`StoreError` when the index lacks a field without which nothing makes sense.
        """
        require_usable(self.live, self.index)
        return [{"exists": {"field": self._time}}]

    def odd(self, names: Collection[str]) -> list[Clause]:
        """Documents with a negative number where there is none, or without a field that every job has."""
        clauses: list[Clause] = []
        for name in sorted({*names, *fields.REQUIRED}):
            live = self.live[name]
            if live.state != "present":
                continue
            if name in fields.REQUIRED:
                clauses.append(negated({"exists": {"field": live.paths[0]}}))
            if live.field.bounded:
                below: list[Clause] = [{"range": {path: {"lt": 0}}} for path in live.paths]
                unset = live.source.unset
                clauses += (
                    below
                    if unset is None
                    else [
                        all_of([clause], [{"term": {path: unset}}])
                        for clause, path in zip(below, live.paths, strict=True)
                    ]
                )
        return clauses

    def documents(self, at: PointInTime, clause: Clause, names: Collection[str]) -> Iterator[Documents]:
        """Read documents by their fields, in whatever form the index keeps times and sub-fields."""
        wanted = [self.live[name] for name in sorted({*names, *fields.REQUIRED})]
        asked: list[Any] = []
        for live in wanted:
            if live.field.type == "time":
                asked += [{"field": name, "format": _TIME_FORMAT} for name in live.read]
            else:
                asked += live.read
        tie = [self._time, *self.live["job_id"].paths[:1]]
        for hits in at.field_pages(clause, asked, tie):
            yield _documents([hit.get("fields", {}) for hit in hits], wanted)

    def span(self) -> Span:
        """Count the documents and find the earliest and latest end time, to the millisecond."""
        ends = {kind: {kind: {"field": self._time}} for kind in ("min", "max")}
        body = {"size": 0, "query": all_of(self.visible()), "aggs": ends, "track_total_hits": True}
        with PointInTime(self._cluster, self.index) as at:
            answer = at.search(body)
        jobs = int(answer["hits"]["total"]["value"]) if answer else 0
        if not jobs:
            return Span(0, None, None)
        first, last = (moment_of(answer["aggregations"][kind]["value"]) for kind in ("min", "max"))
        return Span(jobs, first, last)

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Documents per day, with marks of what they say and of where they lie.

        Every write of a document, also one that changes it in place, gives it a new and greater sequence
        number. An index that was deleted and loaded again in the same order gives the same numbers: it has
        another identity, if the user may ask for that, and sums that differ if the documents do.
        """
        numbers = {kind: {kind: {"field": "_seq_no"}} for kind in ("max", "sum")}
        for name in _USED:
            live = self.live[name]
            if live.state == "present":
                numbers |= {path: {"sum": {"field": path}} for path in live.paths}
        indices = {"indices": {"terms": {"field": "_index", "size": _MOST_INDICES}}}
        identities = self._identities()

        def mark_of_indices(day: Mapping[str, Any]) -> str:
            names = sorted(group["key"] for group in day["indices"]["buckets"])
            text = " ".join(identities.get(name, name) for name in names)
            return "." + hashlib.sha256(text.encode()).hexdigest()[:8]

        clauses = [*self.visible(), *within(self._time, window)]
        with PointInTime(self._cluster, self.index) as at:
            return fingerprints(at, self._time, clauses, numbers, indices, mark_of_indices)

    def _identities(self) -> dict[str, str]:
        """The identity of each index, by its name; none where the user may not ask."""
        path = f"/{quote(self.index, safe=PATTERN)}/_settings/index.uuid"
        try:
            answer = self._cluster.call("GET", path)
        except RefusedError:
            return {}
        return {name: facts["settings"]["index"]["uuid"] for name, facts in answer.items()}


def _documents(documents: Sequence[Mapping[str, list[Any]]], wanted: Sequence[LiveField]) -> Documents:
    """Documents, each a list of values per field, as jobs; those that are none are counted by day."""
    columns: dict[str, list[Any]] = {}
    bad = [False] * len(documents)
    for live in wanted:
        values = [_value(live, document) for document in documents]
        for row, value in enumerate(values):
            if value is _INVALID or (value is None and live.field.required):
                bad[row], values[row] = True, None
        columns[live.field.name] = values
    times = _times(columns["end_time"])
    invalid = Counter(_day(moment) for moment, wrong in zip(times.to_pylist(), bad, strict=True) if wrong)
    good = pa.array([not wrong for wrong in bad], pa.bool_())
    arrays = []
    for item in PUT_SCHEMA:
        values = columns.get(item.name, [None] * len(documents))
        column = _times(values) if pa.types.is_timestamp(item.type) else pa.array(values, item.type)
        arrays.append(column.filter(good))
    return Documents(pa.RecordBatch.from_arrays(arrays, schema=PUT_SCHEMA), invalid)


class _Invalid:
    """Stands for a value that no job has."""


_INVALID = _Invalid()


def _value(live: LiveField, document: Mapping[str, list[Any]]) -> Any:
    """The value of a field in a document, of the first foreign field that has one."""
    if live.state == "constant":
        return live.source.constant
    for name in live.read:
        values = document.get(name) or ()
        first = values[0] if values else None
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
    if kind in ("integer", "number") and not isinstance(raw, int | float):
        try:
            raw = float(raw)
        except (TypeError, ValueError):
            return _INVALID
    if kind in ("integer", "number") and not math.isfinite(raw):
        return _INVALID
    value = translated(live, raw)
    if live.field.bounded and value is not None and value < 0:
        return _INVALID
    return value


def _times(values: Sequence[str | None]) -> pa.Array:
    return (
        pa.array(values, pa.string())
        .cast(pa.timestamp("ns", "UTC"))
        .cast(pa.timestamp("us", "UTC"), safe=False)
    )


def _day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()
