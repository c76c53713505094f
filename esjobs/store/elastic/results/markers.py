"""What is known of a generation besides its rows: who writes it, whether it is complete, whether it is over.

The document has the number of the generation for its id, and no partition, so that no reader ever sees it. It
is there before the first row and goes after the last one: rows without it are of nobody.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from esjobs.core.clock import Clock
from esjobs.core.errors import StoreError
from esjobs.core.tables import Table
from esjobs.store.base import Generation
from esjobs.store.elastic.layout import Names
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

    ``over``: readers no longer see it, or nobody will ever publish it.
    """

    number: str
    writer: Process | None
    begun: datetime | None
    over: bool

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
        write(
            self._cluster, [create(self._index(generation.table), generation.number, self._head(generation))]
        )

    def end(self, generation: Generation, rows: int) -> None:
        """Say that it was written whole, and how many rows it has."""
        document = {**self._head(generation), "written": generation.partition, "n_written": rows}
        write(self._cluster, [index(self._index(generation.table), generation.number, document)])

    def require_written(self, table: Table, generations: Sequence[Generation]) -> None:
        """Raises :class:`StoreError` unless all rows of all these generations of a table are there.

        Its index must have been refreshed.
        """
        there = self._documents(table, [generation.number for generation in generations])
        counted = self._counts(table, there)
        for generation in generations:
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
                    f"deletes from {self._index(table)}; run the step again"
                )

    def end_of(self, table: Table, numbers: Iterable[str]) -> None:
        """Say that generations are over: their rows may go at any time, and nobody may publish them.

        One that another process has deleted meanwhile gets its document back, for a later sweep.
        """
        where = self._index(table)
        write(
            self._cluster, (index(where, number, {"generation": number, "over": True}) for number in numbers)
        )

    def unseen(self, table: Table, seen: Iterable[str]) -> Iterator[Marker]:
        """The generations of a table but those that readers see."""
        query = {
            "bool": {"must_not": [{"exists": {"field": "partition"}}, {"terms": {"generation": [*seen]}}]}
        }
        with PointInTime(self._cluster, self._index(table)) as at:
            for hits in at.pages(query):
                for hit in hits:
                    document = hit["_source"]
                    begun = document.get("begun")
                    yield Marker(
                        hit["_id"],
                        Process.parse(document.get("writer", "")),
                        None if begun is None else datetime.fromisoformat(begun),
                        bool(document.get("over")),
                    )

    def _head(self, generation: Generation) -> dict[str, Any]:
        return {
            "generation": generation.number,
            "writer": str(Process.current()),
            "begun": self._clock().isoformat(),
        }

    def _index(self, table: Table) -> str:
        return self._names.rows(table)

    def _documents(self, table: Table, numbers: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        documents: dict[str, Mapping[str, Any]] = {}
        for some in chunks(numbers):
            answer = self._cluster.call("POST", f"/{self._index(table)}/_mget", {"ids": some})
            documents |= {doc["_id"]: doc["_source"] for doc in answer["docs"] if doc.get("found")}
        return documents

    def _counts(self, table: Table, numbers: Iterable[str]) -> dict[str, int]:
        counted: dict[str, int] = {}
        for some in chunks(list(numbers)):
            body = {
                "size": 0,
                "query": {
                    "bool": {"filter": [{"terms": {"generation": some}}, {"exists": {"field": "partition"}}]}
                },
                "aggs": {"rows": {"terms": {"field": "generation", "size": len(some)}}},
            }
            answer = self._cluster.call("POST", f"/{self._index(table)}/_search", body)
            counted |= {
                group["key"]: group["doc_count"] for group in answer["aggregations"]["rows"]["buckets"]
            }
        return counted


def chunks(numbers: Sequence[str]) -> Iterator[list[str]]:
    """As many as one clause or request names."""
    for start in range(0, len(numbers), _CHUNK):
        yield list(numbers[start : start + _CHUNK])
