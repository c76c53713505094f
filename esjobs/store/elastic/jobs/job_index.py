"""Interface of jobs indices for aggregation and reading."""

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
    """Jobs as read (schema ``PUT_SCHEMA``), and the count of invalid documents by day."""

    jobs: pa.RecordBatch
    invalid: Counter[date] = field(default_factory=Counter)


class JobIndex(Protocol):
    """Indices that have the fields in the same way, and whose documents are jobs."""

    @property
    def index(self) -> str:
        """Search target."""

    @property
    def live(self) -> Mapping[str, LiveField]:
        """Every stored field as the index has it."""

    @property
    def several_values(self) -> bool:
        """True if a field may have several values in a document."""

    def inside(self, window: Window | None) -> list[Clause]:
        """Return the clauses of current jobs in a window; at least one."""

    def judged(self, names: Collection[str]) -> frozenset[str]:
        """Return the fields that must be valid for a question."""

    def unjudged(self, names: Collection[str]) -> list[Clause]:
        """Return clauses of documents that the index cannot judge by these fields."""

    def documents(self, at: PointInTime, clause: Clause, names: Collection[str]) -> Iterator[Documents]:
        """Read documents; other fields may be missing."""


class JobSource(Protocol):
    """Location of the jobs of a store."""

    @property
    def index(self) -> str:
        """Displayed name."""

    @property
    def live(self) -> Mapping[str, LiveField]:
        """Every stored field as it is there."""

    @property
    def most_read(self) -> int | None:
        """Limit of individually read documents; None: unlimited."""

    def parts(self, window: Window | None, names: Collection[str]) -> Sequence[JobIndex]:
        """Return the parts to ask, which together hold each job once; empty without jobs."""

    def span(self) -> Span:
        """Return number and span of the jobs."""

    def server_time(self) -> datetime | None:
        """Return the time of the cluster; None without an index."""

    def undated(self) -> int:
        """Return the number of documents without end time."""

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Return columns day, n_jobs, fingerprint; see :class:`JobStore`."""
