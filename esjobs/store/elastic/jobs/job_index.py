"""What aggregating and reading need of indices of jobs, whoever wrote them."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol

import pyarrow as pa

from esjobs.core.window import Window
from esjobs.store.base import Span
from esjobs.store.elastic.asking.clauses import Clause
from esjobs.store.elastic.fields.live_fields import LiveField
from esjobs.store.elastic.transport.scan import PointInTime


@dataclass(frozen=True)
class Documents:
    """Jobs as read: schema ``PUT_SCHEMA``; documents that are no jobs, by day."""

    jobs: pa.RecordBatch
    invalid: Counter[date] = field(default_factory=Counter)


class JobIndex(Protocol):
    """An index, or several that have the fields in the same way, whose documents are jobs."""

    @property
    def index(self) -> str:
        """What is searched."""

    @property
    def live(self) -> Mapping[str, LiveField]:
        """Every stored field of the catalogue, as the index has it."""

    @property
    def several_values(self) -> bool:
        """Whether a field of a document may have several values."""

    def inside(self, window: Window | None) -> list[Clause]:
        """The documents that are jobs now, of a window; at least one clause."""

    def judged(self, names: Collection[str]) -> frozenset[str]:
        """The fields that must be as they should for a question about some of them."""

    def odd(self, names: Collection[str]) -> list[Clause]:
        """The documents whose values of these fields the index cannot judge: any of the clauses."""

    def documents(self, at: PointInTime, clause: Clause, names: Collection[str]) -> Iterator[Documents]:
        """Read documents; fields that are not named may be missing."""


class JobSource(Protocol):
    """Where the jobs of a store are."""

    @property
    def index(self) -> str:
        """What people call it."""

    @property
    def live(self) -> Mapping[str, LiveField]:
        """Every stored field of the catalogue, as it is there."""

    @property
    def most_read(self) -> int | None:
        """How many documents a question may read one by one; None: as many as it takes."""

    def parts(self, window: Window | None, names: Collection[str]) -> Sequence[JobIndex]:
        """What a question about these fields of the jobs of a window is put to, one after the other.

        Together they have each job once. None when there are no such jobs.
        """

    def span(self) -> Span:
        """How many jobs there are and which span their end times cover."""

    def server_time(self) -> datetime | None:
        """The time of the cluster; None where there is no index to ask."""

    def undated(self) -> int:
        """Documents that have no end time, and so are no jobs."""

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Columns day, n_jobs, mark: a mark moves whenever a job of its day is added, changed or removed."""
