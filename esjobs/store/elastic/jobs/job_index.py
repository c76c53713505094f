"""What aggregating and reading need of an index of jobs, whoever wrote it."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
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
    """An index, or a pattern of several, whose documents are jobs."""

    @property
    def index(self) -> str:
        """What is searched."""

    @property
    def live(self) -> Mapping[str, LiveField]:
        """Every stored field of the catalogue, as the index has it."""

    @property
    def several_values(self) -> bool:
        """Whether a field of a document may have several values."""

    def visible(self) -> list[Clause]:
        """The documents that are jobs now."""

    def odd(self, names: Collection[str]) -> list[Clause]:
        """The documents whose values of these fields the index cannot judge: any of the clauses."""

    def documents(self, at: PointInTime, clause: Clause, names: Collection[str]) -> Iterator[Documents]:
        """Read documents; fields that are not named may be missing."""

    def span(self) -> Span:
        """How many jobs there are and which span their end times cover."""

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Columns day, n_jobs, mark: a mark moves whenever a job of its day is added, changed or removed."""
