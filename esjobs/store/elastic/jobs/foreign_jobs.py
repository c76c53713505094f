"""Jobs in foreign indices, read through a field map, never written.

Indices of an archive may disagree on types. A question goes to the indices with jobs in its window, in groups
that have its fields in the same way.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime
from urllib.parse import quote

import pyarrow as pa

from esjobs.core.errors import StoreError
from esjobs.core.window import Window
from esjobs.store.base import Span
from esjobs.store.checks import FINGERPRINTS
from esjobs.store.elastic.asking.clauses import EVERY, all_of
from esjobs.store.elastic.asking.days import day_of, digits, moment_of, per_day, within
from esjobs.store.elastic.asking.server_time import server_time
from esjobs.store.elastic.fields.field_map import FieldMap
from esjobs.store.elastic.fields.live_fields import foreign_names, index_groups, live_fields, require_usable
from esjobs.store.elastic.fields.mappings import Mappings, mappings_of
from esjobs.store.elastic.jobs.foreign_part import JUDGED, ForeignPart
from esjobs.store.elastic.layout import groups
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError
from esjobs.store.elastic.transport.naming import PATTERN, nameable, without
from esjobs.store.elastic.transport.scan import count_once, search_once

# Numbers whose sums tell that documents differ: those that buckets and declared values are made of
_USED = ("cpu_s", "wall_s", "events", "cores", "hs06_s")

# Characters of names in one address; a cluster refuses more than 4096 in its first line by default
_LONGEST = 3000

# Indices that one question may be about
_MOST_INDICES = 10_000


class ForeignJobs:
    """Documents of an index, alias or pattern, one job each.

    ``own``: prefix excluded from patterns. ``most_read``: limit of individually read documents. Raises
    :class:`StoreError` if no index matches.
    """

    def __init__(
        self,
        cluster: Cluster,
        index: str,
        field_map: FieldMap,
        own: str = "esjobs",
        most_read: int | None = None,
    ) -> None:
        self._cluster = cluster
        self._field_map = field_map
        self._expression = without(index, own)
        self.index = index
        self.most_read = most_read
        mappings = mappings_of(cluster, self._expression, foreign_names(field_map))
        if not mappings.indices:
            raise StoreError(
                f"no readable index matches '{index}' at {cluster.location}; check --jobs-index and the "
                "user's read privilege"
            )
        self.live = live_fields(field_map, mappings, {"end_time"})
        self._is_one = mappings.indices == (self._expression,)

    @property
    def _time(self) -> str:
        return self.live["end_time"].paths[0]

    def parts(
        self, window: Window | None, names: Collection[str], summed: Collection[str] = ()
    ) -> list[ForeignPart]:
        """Return the indices with jobs in a window, in parts that have the fields in the same way.

        ``summed``: fields whose numeric types may differ. Raises :class:`StoreError` if a required field is
        absent.
        """
        require_usable(self.live, self.index)
        found = None if window is None or self._is_one else self._having_jobs(window)
        # no index has jobs of the window; an empty list of names would address all indices
        if found == []:
            return []
        # a pattern may match indices without jobs of the window, which differ from the others
        mappings = self._mappings_by_name(found) if found is not None else None
        apart = mappings is not None
        if mappings is None:
            mappings = mappings_of(self._cluster, self._expression, foreign_names(self._field_map))
        groupings = index_groups(self._field_map, mappings, JUDGED.union(names), summed)
        if found is None and len(groupings) > 1:
            apart = nameable(self._cluster, self._expression, mappings.indices)
        if not apart:
            return [self._part(self._expression, mappings, {*summed, "end_time"})]
        # what has no end time is no job
        dated = [group for group in groupings if mappings.kind(self._time, group[0]) is not None]
        pieces = [piece for group in dated for piece in groups(group, _LONGEST)]
        return [self._part(",".join(piece), mappings.of(piece), summed) for piece in pieces]

    def _part(self, index: str, mappings: Mappings, summed: Collection[str]) -> ForeignPart:
        return ForeignPart(index, mappings.indices, live_fields(self._field_map, mappings, summed))

    def _mappings_by_name(self, indices: Sequence[str]) -> Mappings | None:
        """Return the mappings of some indices by name; None if they cannot be addressed by name."""
        if not nameable(self._cluster, self._expression, indices):
            return None
        names = foreign_names(self._field_map)
        mappings = Mappings((), {})
        try:
            for piece in groups(indices, _LONGEST):
                mappings = mappings.joined(mappings_of(self._cluster, ",".join(piece), names))
        except RefusedError as error:
            if not error.forbidden:
                raise
            return None  # rights to an alias are no rights to what stands behind it
        return mappings

    def _having_jobs(self, window: Window) -> list[str]:
        """Return the indices that have jobs of a window.

        Not by ``_field_caps`` with a filter: Elasticsearch does not refresh idle indices for it, so the
        newest jobs could be missed.
        """
        answer = search_once(
            self._cluster,
            self._expression,
            {
                "size": 0,
                "query": all_of(within(self._time, window)),
                # one job per shard is enough to know the index
                "terminate_after": 1,
                "track_total_hits": False,
                "aggs": {"indices": {"terms": {"field": "_index", "size": _MOST_INDICES}}},
            },
        )
        if answer is None:
            return []
        return sorted(group["key"] for group in answer["aggregations"]["indices"]["buckets"])

    def span(self) -> Span:
        """Count the documents and find earliest and latest end time, to the millisecond.

        Three searches, none of which scans documents.
        """
        jobs = count_once(self._cluster, self._expression, {"exists": {"field": self._time}})
        if not jobs:
            return Span(0, None, None)
        return Span(jobs, self._end("asc"), self._end("desc"))

    def server_time(self) -> datetime | None:
        paths = self.live["end_time"].paths
        return server_time(self._cluster, self._expression, paths[0]) if paths else None

    def undated(self) -> int:
        """Return the number of documents without end time."""
        if not self.live["end_time"].paths:
            return 0
        # in this order: what arrives in between has a time, and does not seem to lack one
        everything, dated = (
            count_once(self._cluster, self._expression, clause)
            for clause in (EVERY, {"exists": {"field": self._time}})
        )
        return max(0, everything - dated)

    def _end(self, order: str) -> datetime:
        how = {"order": order, "unmapped_type": "date", "numeric_type": "date", "missing": "_last"}
        body = {"size": 1, "sort": [{self._time: how}], "_source": False, "track_total_hits": False}
        answer = search_once(self._cluster, self._expression, body)
        return moment_of(answer["hits"]["hits"][0]["sort"][0])

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Return documents per day with marks of content and location.

        Every write raises the sequence number; a reloaded index has a new identity, or other sums.
        """
        marks: dict[date, list[tuple[str, int, str]]] = defaultdict(list)
        for part in self.parts(window, _USED, _USED):
            for day, name, n_jobs, mark in self._marks(part, window):
                marks[day].append((name, n_jobs, mark))
        rows = [
            {"day": day, "n_jobs": sum(n_jobs for _, n_jobs, _ in of_day), "fingerprint": _joined(of_day)}
            for day, of_day in sorted(marks.items())
        ]
        return pa.Table.from_pylist(rows, schema=FINGERPRINTS)

    def _marks(self, part: ForeignPart, window: Window | None) -> Iterator[tuple[date, str, int, str]]:
        # the sum moves when an old document is written again, the maximum when a new one comes
        numbers = {kind: {kind: {"field": "_seq_no"}} for kind in ("max", "sum")}
        for name in _USED:
            live = part.live[name]
            if live.state == "present":
                numbers |= {path: {"sum": {"field": path}} for path in live.paths}
        by_index = {"indices": {"terms": {"field": "_index", "size": _MOST_INDICES}, "aggs": numbers}}
        alone = len(part.names) == 1
        body = {
            "size": 0,
            "query": all_of(part.inside(window)),
            "aggs": {"days": per_day(part.time, numbers if alone else by_index)},
            "track_total_hits": False,
        }
        answer = search_once(self._cluster, part.index, body)
        if answer is None:
            return
        identities = self._identities(part)
        for day in answer["aggregations"]["days"]["buckets"]:
            for group in [{"key": part.names[0], **day}] if alone else day["indices"]["buckets"]:
                index = part.names[0] if alone else group["key"]
                sums = ".".join(digits(group[number]["value"]) for number in numbers)
                # of the index itself: loaded again under its name it has another one
                identity = hashlib.sha256(identities.get(index, index).encode()).hexdigest()[:8]
                yield day_of(day), index, group["doc_count"], f"{sums}.{identity}"

    def _identities(self, part: ForeignPart) -> dict[str, str]:
        """Return the identity of each index; empty without the right."""
        path = f"/{quote(part.index, safe=PATTERN)}/_settings/index.uuid"
        try:
            answer = self._cluster.call("GET", path)
        except RefusedError:
            return {}
        return {name: facts["settings"]["index"]["uuid"] for name, facts in answer.items()}


def _joined(of_day: Sequence[tuple[str, int, str]]) -> str:
    if len(of_day) == 1:
        return of_day[0][2]
    text = " ".join(f"{name} {mark}" for name, _, mark in sorted(of_day))
    return f"{len(of_day)}.{hashlib.sha256(text.encode()).hexdigest()[:32]}"
