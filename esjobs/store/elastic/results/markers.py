"""Markers of generations: writer, completeness, end.

The document's id is the generation; it has no partition, so no reader sees it. It exists before the first row
and goes after the last: rows without it are orphans.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from esjobs.core.clock import Clock
from esjobs.core.errors import StoreError
from esjobs.store.base import Generation
from esjobs.store.elastic.layout import Names, groups, listed
from esjobs.store.elastic.results.aliases import Location
from esjobs.store.elastic.results.pieces import PIECE
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import create, index, write
from esjobs.store.process import Process

WRITER_LIVES = timedelta(days=1)
"""Longest time from the first row of a generation to its publication; above any difference of clocks."""

_CHUNK = 1000


@dataclass(frozen=True)
class Marker:
    """Generation that readers do not see.

    ``over``: retired, or never to be published; restored without ``writer`` and ``begun``. ``partition``,
    ``n_rows``: missing until complete.
    """

    index: str
    number: str
    writer: Process | None
    begun: datetime | None
    over: bool
    partition: str = ""
    n_rows: int | None = None

    @property
    def location(self) -> Location:
        """Location of its rows."""
        return Location(self.index, self.number)

    def is_left(self, now: datetime) -> bool:
        """True if its writer can no longer publish it, as far as can be told."""
        if self.over or self.begun is None or (self.writer is not None and self.writer.is_gone):
            return True
        return now - self.begun > WRITER_LIVES and not (self.writer is not None and self.writer.is_near)


class Markers:
    """Markers in the index of their rows."""

    def __init__(self, cluster: Cluster, names: Names, clock: Clock) -> None:
        self._cluster = cluster
        self._names = names
        self._clock = clock

    def begin(self, generation: Generation) -> None:
        """Record the writer."""
        write(self._cluster, [create(self._index(generation), generation.number, self._head(generation))])

    def end(self, generation: Generation, rows: int) -> None:
        """Record completion and the number of rows."""
        # replaces the first marker: a generation is complete in one write
        document = {**self._head(generation), "written": generation.partition, "n_written": rows}
        write(self._cluster, [index(self._index(generation), generation.number, document)])

    def require_written(self, generations: Sequence[Generation]) -> None:
        """Raise :class:`StoreError` unless all rows of these generations are there, after a refresh."""
        places = [Location(self._index(generation), generation.number) for generation in generations]
        found = self._documents(places)
        counted = self._counts([location for location in places if location.number in found])
        for generation, location in zip(generations, places, strict=True):
            document = found.get(generation.number, {})
            what = f"generation {generation.number} of '{generation.table.name}' {generation.partition}"
            if document.get("written") != generation.partition or document.get("over"):
                raise StoreError(
                    f"{what} is not in the store (removed, or of another store); run the step again"
                )
            rows, expected = counted.get(generation.number, 0), document["n_written"]
            if rows != expected:
                raise StoreError(
                    f"{what} has {rows} of the {expected} written rows, because another program deleted rows "
                    f"from {location.index}; run the step again"
                )

    def end_of(self, places: Iterable[Location]) -> None:
        """Mark generations as over: nobody may publish them.

        Restores markers that another process deleted, for a later sweep.
        """
        write(
            self._cluster,
            (
                index(location.index, location.number, {"generation": location.number, "over": True})
                for location in places
            ),
        )

    def unseen(self, indices: str, seen: Iterable[str]) -> Iterator[Marker]:
        """Yield the generations of indices, except the visible ones."""
        others = [{"exists": {"field": "partition"}}, PIECE, {"terms": {"generation": [*seen]}}]
        query = {"bool": {"must_not": others}}
        with PointInTime(self._cluster, indices) as at:
            for hits in at.pages(query):
                for hit in hits:
                    document = hit["_source"]
                    begun = document.get("begun")
                    yield Marker(
                        hit["_index"],
                        hit["_id"],
                        Process.parse(document.get("writer", "")),
                        None if begun is None else datetime.fromisoformat(begun),
                        bool(document.get("over")),
                        document.get("written", ""),
                        document.get("n_written"),
                    )

    def complete(self, index: str) -> list[Marker]:
        """Return complete generations that were not retired, after a refresh."""
        written = [marker for marker in self.unseen(index, ()) if marker.partition and not marker.over]
        counted = self._counts([marker.location for marker in written])
        return [marker for marker in written if marker.n_rows == counted.get(marker.number, 0)]

    def _head(self, generation: Generation) -> dict[str, Any]:
        return {
            "generation": generation.number,
            "writer": str(Process.current()),
            "begun": self._clock().isoformat(),
        }

    def _index(self, generation: Generation) -> str:
        return self._names.rows(generation.table, generation.partition)

    def _documents(self, places: Sequence[Location]) -> dict[str, Mapping[str, Any]]:
        documents: dict[str, Mapping[str, Any]] = {}
        for some in chunks(places):
            # by id, which needs no refresh
            docs = [{"_index": location.index, "_id": location.number} for location in some]
            answer = self._cluster.call("POST", "/_mget", {"docs": docs})
            documents |= {doc["_id"]: doc["_source"] for doc in answer["docs"] if doc.get("found")}
        return documents

    def _counts(self, places: Sequence[Location]) -> dict[str, int]:
        counted: dict[str, int] = {}
        for some in chunks(sorted(places, key=lambda location: location.index)):
            numbers = [location.number for location in some]
            rows = [{"terms": {"generation": numbers}}, {"exists": {"field": "partition"}}]
            body = {
                "size": 0,
                "query": {"bool": {"filter": rows}},
                "aggs": {"rows": {"terms": {"field": "generation", "size": len(numbers)}}},
            }
            for group in groups(sorted({location.index for location in some})):
                with PointInTime(self._cluster, listed(group)) as at:
                    answer = at.search(body)
                buckets = answer["aggregations"]["rows"]["buckets"] if answer else []
                counted |= {bucket["key"]: bucket["doc_count"] for bucket in buckets}
        return counted


Item = TypeVar("Item")


def chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield pieces that one request may name."""
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]
