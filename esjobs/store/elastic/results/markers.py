"""What is known of a generation besides its rows: who writes it, whether it is complete, whether it is over.

The document has the number of the generation for its id, and no partition, so that no reader ever sees it. It
is in the index of the rows, there before the first one, and goes after the last one: rows without it are of
nobody.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from esjobs.core.clock import Clock
from esjobs.core.errors import StoreError
from esjobs.core.tables import Table
from esjobs.store.base import Generation
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.results.aliases import Place
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import create, index, write
from esjobs.store.process import Process

WRITER_LIVES = timedelta(days=1)
"""Between the first row of a generation and its publication passes less; a day is also more than clocks of
two machines are ever apart."""

_CHUNK = 1000


@dataclass(frozen=True)
class Marker:
    """A generation that readers do not see. ``writer``, ``begun``: missing where an earlier version wrote it.

    ``index``: where its rows are. ``over``: readers no longer see it, or nobody will ever publish it.
    ``partition``: what it is of; empty as long as it is not complete. ``n_rows``: that were written; missing
    where an earlier version wrote it.
    """

    index: str
    number: str
    writer: Process | None
    begun: datetime | None
    over: bool
    partition: str = ""
    n_rows: int | None = None

    @property
    def place(self) -> Place:
        """Where its rows are."""
        return Place(self.index, self.number)

    def is_left(self, now: datetime) -> bool:
        """Whether whoever wrote it can no longer publish it, as far as another process can tell."""
        if self.over or self.begun is None or (self.writer is not None and self.writer.is_gone):
            return True
        return now - self.begun > WRITER_LIVES and not (self.writer is not None and self.writer.is_near)


class Markers:
    """The documents about generations, in the index of their rows."""

    def __init__(self, cluster: Cluster, names: Names, clock: Clock) -> None:
        self._cluster = cluster
        self._names = names
        self._clock = clock

    def begin(self, generation: Generation) -> None:
        """Say who begins to write."""
        write(self._cluster, [create(self._index(generation), generation.number, self._head(generation))])

    def end(self, generation: Generation, rows: int) -> None:
        """Say that it was written whole, and how many rows it has."""
        document = {**self._head(generation), "written": generation.partition, "n_written": rows}
        write(self._cluster, [index(self._index(generation), generation.number, document)])

    def require_written(self, table: Table, generations: Sequence[Generation]) -> None:
        """Raises :class:`StoreError` unless all rows of all these generations of a table are there.

        Their indices must have been refreshed.
        """
        places = [Place(self._index(generation), generation.number) for generation in generations]
        there = self._documents(places)
        counted = self._counts([place for place in places if place.number in there])
        for generation, place in zip(generations, places, strict=True):
            document = there.get(generation.number, {})
            rows, expected = counted.get(generation.number, 0), document.get("n_written")
            what = f"generation {generation.number} of '{table.name}' {generation.partition}"
            if document.get("written") != generation.partition or document.get("over"):
                raise StoreError(
                    f"{what} is not in the store (swept, or of another store); run the step again"
                )
            if expected is not None and rows != expected:
                raise StoreError(
                    f"{what} has {rows} of the {expected} rows that were written: something else "
                    f"deletes from {place.index}; run the step again"
                )

    def end_of(self, places: Iterable[Place]) -> None:
        """Say that generations are over: their rows may go at any time, and nobody may publish them.

        One that another process has deleted meanwhile gets its document back, for a later sweep.
        """
        write(
            self._cluster,
            (
                index(place.index, place.number, {"generation": place.number, "over": True})
                for place in places
            ),
        )

    def unseen(self, indices: str, seen: Iterable[str]) -> Iterator[Marker]:
        """The generations in an index, or in several with commas between, but those that readers see."""
        query = {
            "bool": {"must_not": [{"exists": {"field": "partition"}}, {"terms": {"generation": [*seen]}}]}
        }
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
        """The generations of an index of which all rows are there, and that no publication took out of sight.

        The index must have been refreshed.
        """
        written = [marker for marker in self.unseen(index, ()) if marker.partition and not marker.over]
        counted = self._counts([marker.place for marker in written])
        return [m for m in written if m.n_rows in (None, counted.get(m.number, 0))]

    def _head(self, generation: Generation) -> dict[str, Any]:
        return {
            "generation": generation.number,
            "writer": str(Process.current()),
            "begun": self._clock().isoformat(),
        }

    def _index(self, generation: Generation) -> str:
        return self._names.rows(generation.table, generation.partition)

    def _documents(self, places: Sequence[Place]) -> dict[str, Mapping[str, Any]]:
        documents: dict[str, Mapping[str, Any]] = {}
        for some in chunks(places):
            asked = [{"_index": place.index, "_id": place.number} for place in some]
            answer = self._cluster.call("POST", "/_mget", {"docs": asked})
            documents |= {doc["_id"]: doc["_source"] for doc in answer["docs"] if doc.get("found")}
        return documents

    def _counts(self, places: Sequence[Place]) -> dict[str, int]:
        """How many rows of each generation there are; an answer of a part of the shards is refused."""
        counted: dict[str, int] = {}
        for where, numbers in by_index(places):
            for some in chunks(numbers):
                rows = [{"terms": {"generation": some}}, {"exists": {"field": "partition"}}]
                body = {
                    "size": 0,
                    "query": {"bool": {"filter": rows}},
                    "aggs": {"rows": {"terms": {"field": "generation", "size": len(some)}}},
                }
                with PointInTime(self._cluster, where) as at:
                    answer = at.search(body)
                groups = answer["aggregations"]["rows"]["buckets"] if answer else []
                counted |= {group["key"]: group["doc_count"] for group in groups}
        return counted


def by_index(places: Iterable[Place]) -> Iterator[tuple[str, list[str]]]:
    """Generations by the index that their rows are in."""
    numbers: dict[str, list[str]] = {}
    for place in places:
        numbers.setdefault(place.index, []).append(place.number)
    yield from numbers.items()


Item = TypeVar("Item")


def chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """As many as one clause or request names."""
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]
