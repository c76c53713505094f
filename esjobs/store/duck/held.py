"""Rows of small partitions, in memory from when they are given until they are published."""

import itertools
import uuid
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from esjobs.core.tables import Table
from esjobs.store.base import Generation

_BYTES = 8 * 1024 * 1024
"""A partition that takes more is written at once."""

_BYTES_OF_ALL = 32 * 1024 * 1024
"""So is one after which all that are held would take more."""


class Held:
    """Generations whose rows are in no file yet; a program that ends before it publishes them leaves nothing.

    At most 32 MB.
    """

    def __init__(self) -> None:
        self._held: dict[str, tuple[Generation, Sequence[pa.Table]]] = {}
        self._bytes = 0

    def __contains__(self, generation: Generation) -> bool:
        known, _ = self._held.get(generation.number, (None, ()))
        return generation == known

    def take(
        self, table: Table, partition: str, pieces: Iterator[pa.Table]
    ) -> Generation | Iterator[pa.Table]:
        """Hold the rows of a partition; where they are too many, all of them again, to be written.

        What the source of the rows raises reaches the caller, and nothing is held.
        """
        taken: list[pa.Table] = []
        size = 0
        for rows in pieces:
            taken.append(rows)
            size += rows.nbytes
            if size > _BYTES or self._bytes + size > _BYTES_OF_ALL:
                return itertools.chain(taken, pieces)
        # a name that no other store has: published there, it is not found
        generation = Generation(table, partition, f"held {uuid.uuid4().hex}")
        self._held[generation.number] = generation, taken
        self._bytes += size
        return generation

    def pieces(self, generation: Generation) -> Sequence[pa.Table]:
        """The rows of a generation."""
        return self._held[generation.number][1]

    def drop(self, generations: Iterable[Generation]) -> None:
        """Forget what is written by now."""
        for generation in generations:
            _, pieces = self._held.pop(generation.number, (None, ()))
            self._bytes -= sum(rows.nbytes for rows in pieces)
