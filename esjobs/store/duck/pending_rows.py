"""Cache of the rows of small partitions until they are published."""

import itertools
import uuid
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from esjobs.core.tables import Table
from esjobs.store.base import Generation

# A partition that takes more is written at once
_BYTES = 8 * 1024 * 1024

# Limit for all pending rows together, above which the next are written
_BYTES_OF_ALL = 32 * 1024 * 1024


class PendingRows:
    """Generations whose rows are only in memory, at most 32 MB; lost if the program ends unpublished."""

    def __init__(self) -> None:
        self._cached: dict[str, tuple[Generation, Sequence[pa.Table]]] = {}
        self._bytes = 0

    def __contains__(self, generation: Generation) -> bool:
        # the whole generation: a number alone may belong to another table
        entry, _ = self._cached.get(generation.number, (None, ()))
        return generation == entry

    def take(
        self, table: Table, partition: str, pieces: Iterator[pa.Table]
    ) -> Generation | Iterator[pa.Table]:
        """Cache the rows of a partition; return all of them again if they are too many."""
        taken: list[pa.Table] = []
        size = 0
        for rows in pieces:
            taken.append(rows)
            size += rows.nbytes
            if size > _BYTES or self._bytes + size > _BYTES_OF_ALL:
                # nothing is read again: the pieces that were taken, then those that are still to come
                return itertools.chain(taken, pieces)
        # a name that no other store has: published there, it is not found
        generation = Generation(table, partition, f"held {uuid.uuid4().hex}")
        self._cached[generation.number] = generation, taken
        self._bytes += size
        return generation

    def pieces(self, generation: Generation) -> Sequence[pa.Table]:
        """Return the rows of a generation."""
        return self._cached[generation.number][1]

    def drop(self, generations: Iterable[Generation]) -> None:
        """Drop generations that have been written."""
        for generation in generations:
            _, pieces = self._cached.pop(generation.number, (None, ()))
            self._bytes -= sum(rows.nbytes for rows in pieces)
