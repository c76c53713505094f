"""The refused rows of a file: the first of each kind one by one, the others counted.

A file may hold any number of bad rows, and a gzip of a few kilobytes millions of them: what is kept of them
is bounded, what is counted is exact.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from esjobs.core.tables import Table
from esjobs.records.ingest.base import EXCERPT, Parsed, Reject, RowError

LISTED = 1000
"""Rows of a file that are listed one by one under the same reason and field."""


class Refusals:
    """Rejected rows of one file; ``listed``: how many of one reason and field are listed individually."""

    def __init__(self, file: str, listed: int = LISTED) -> None:
        self.file = file
        self._limit = listed
        self._listed: Counter[tuple[str, str]] = Counter()
        self._fresh: list[Reject] = []
        self._counted: dict[tuple[str, str], tuple[int, int, int]] = {}

    def add(self, reject: Reject) -> None:
        """List a row, or count it when enough of its kind are listed."""
        if self.room(reject.reason, reject.field):
            self._listed[reject.reason, reject.field] += 1
            self._fresh.append(reject)
        else:
            self._count(reject.reason, reject.field, 1, reject.line, reject.line)

    def refuse(self, error: RowError, line: int, excerpt: str) -> None:
        """Refuse a row of the file because of an error in it."""
        self.add(Reject(error.reason, self.file, line, error.field, error.detail, excerpt[:EXCERPT]))

    def room(self, reason: str, field: str) -> int:
        """Return how many more rows of a kind will be listed."""
        return self._limit - self._listed[reason, field]

    def count(self, reason: str, field: str, lines: npt.NDArray[np.int64]) -> None:
        """Count rows of a kind, of which enough are listed, by their line numbers in ascending order."""
        if len(lines):
            self._count(reason, field, len(lines), int(lines[0]), int(lines[-1]))

    def _count(self, reason: str, field: str, n_rows: int, first: int, last: int) -> None:
        before, earliest, latest = self._counted.get((reason, field), (0, first, last))
        self._counted[reason, field] = before + n_rows, min(first, earliest), max(last, latest)

    def take(self) -> tuple[Reject, ...]:
        """The rows listed since the last call, in the order of the file."""
        fresh, self._fresh = self._fresh, []
        # columns are checked one after the other, not in the order of rows
        return tuple(sorted(fresh, key=lambda reject: reject.line))

    def rest(self) -> tuple[Reject, ...]:
        """Return one entry for the counted rows of each kind; for the end of the file."""
        like = f"more rows like the {self._limit:,} listed ones, lines"
        return tuple(
            Reject(reason, self.file, first, field, f"{n_rows:,} {like} {first} to {last}", "", n_rows)
            for (reason, field), (n_rows, first, last) in self._counted.items()
        )

    def last_piece(self, notes: Iterable[str] = (), table: Table | None = None) -> Parsed:
        """Return the last piece of the file: its remaining rejects, and the notes."""
        return Parsed.of((), (*self.take(), *self.rest()), notes, table)
