"""Interface of stores: a handful of methods that exchange Arrow batches.

Promises that every store keeps, and the contract suite proves:

- ``put_jobs`` is idempotent and all-or-nothing; a load can be undone.
- Counts are exact, or the store refuses. Nothing is dropped without a reason in the books.
- What ``replace`` writes is invisible until ``publish`` switches readers over in one atomic step; a reader
  sees the old rows before it and the new ones after it, never both; a process killed in between leaves the
  old ones. Orphans are collected later.
- ``latest_TABLE`` shows what readers see of one partition, whatever becomes of it, never of two; it moves to
  another one in the same step as the results.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, Protocol, cast, runtime_checkable

import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.core.query import Filter, Query, Select
from esjobs.core.tables import Table
from esjobs.core.text import kind_of
from esjobs.core.window import Window


@dataclass(frozen=True)
class PutCounts:
    """Fate of the rows of a load: every row is stored, updated or superseded.

    ``updated``: rows of jobs already stored, and repeats inside the load. ``superseded_rows``: columns
    source, job_id, origin_file, origin_line. ``jobs_changed``: jobs whose visible values changed, ``changed``
    by field. ``kept``: by field, jobs whose incoming rows lack a value that another version of the same end
    time keeps.
    """

    stored: int
    updated: int
    superseded_rows: pa.Table
    jobs_changed: int = 0
    changed: Mapping[str, int] = field(default_factory=dict)
    kept: Mapping[str, int] = field(default_factory=dict)
    unchanged: int = 0

    @property
    def superseded(self) -> int:
        """Incoming rows older than a stored row or another row of the load."""
        return int(self.superseded_rows.num_rows)


@dataclass(frozen=True)
class Undone:
    """Result of an undone load.

    ``jobs``: versions removed, one per job of the load. ``unchanged``: by load id, rows that other loads did
    not write because they matched this one.
    """

    jobs: int = 0
    unchanged: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Aggregate:
    """Answer to a query.

    ``table``: keys, then metrics, one row per group in any order; exactly one row without keys. Texts may be
    dictionary-encoded. ``books``: columns day, outcome, kind (``binned``, ``dropped``, ``note``), n_jobs;
    binned and dropped add up to the matching jobs of a day, notes count among the binned. Empty for result
    tables.
    """

    table: pa.Table
    books: pa.Table


@dataclass(frozen=True)
class Generation:
    """Rows written for one partition of a table; invisible until published."""

    table: Table
    partition: str
    number: str


@dataclass(frozen=True)
class Hide:
    """Change that hides a partition of a table."""

    table: Table
    partition: str


@dataclass(frozen=True)
class PointLatest:
    """Change that points ``latest_TABLE`` to one partition; None: no rows.

    ``length``: ``latest_TABLE_LENGTH`` instead, such as ``30d``, which exists only while it shows a
    partition.
    """

    table: Table
    partition: str | None
    length: str = ""


Change = Generation | Hide | PointLatest
"""Change that a publication makes to a partition or to a latest name."""


@dataclass(frozen=True)
class Span:
    """Number of stored jobs, with earliest and latest end time (None when empty)."""

    jobs: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True)
class FieldState:
    """Stored field of the catalogue as the jobs index has it.

    ``foreign``: its name there. ``wrong type``: present, but only readable from documents. ``needed``:
    required and absent.
    """

    field: str
    foreign: str
    state: Literal["present", "constant", "wrong type", "absent"]
    type: str
    note: str = ""
    needed: bool = False


@dataclass(frozen=True)
class Preparation:
    """Result of a set-up, or its plan.

    ``done``: a line each. ``role``: the least rights of a user. ``templates``: index templates by name.
    ``product``: elasticsearch or opensearch; empty for a file, as are role and templates.
    """

    done: tuple[str, ...] = ()
    role: str = ""
    templates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    product: str = ""


@dataclass(frozen=True)
class Capabilities:
    """Description of a store; shown by ``esjobs doctor``."""

    engine: str
    version: str
    location: str
    days_per_aggregate: int
    """Days that one ``aggregate`` call may span before it should be split."""
    details: dict[str, str] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()
    """Rights that the user lacks, where the store can tell."""
    undated: int = 0
    """Documents of a jobs index without end time: they belong to no day and count nowhere."""


@dataclass(frozen=True)
class Ailment:
    """Fault of a store: what, state, remedy."""

    what: str
    text: str
    to_do: str


@dataclass(frozen=True)
class Work:
    """Work of a store since it was opened.

    ``jobs_read``: jobs grouped or read, again for each question. ``rows_written``, ``bytes_written``: rows of
    results and jobs handed over to be stored, ``rows_deleted`` removed ones. Of a cluster besides
    ``requests`` by status (``none``: no answer), bytes sent and received, and ``server_s``, its time on our
    requests by its own account.
    """

    jobs_read: int = 0
    rows_written: int = 0
    rows_deleted: int = 0
    bytes_written: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    server_s: float = 0.0
    requests: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "Work") -> "Work":
        return self._joined(other, 1)

    def __sub__(self, other: "Work") -> "Work":
        return self._joined(other, -1)

    def _joined(self, other: "Work", sign: int) -> "Work":
        # not "+" or "-" of counters, which drop what is not positive
        requests = Counter(self.requests)
        requests.update({status: sign * number for status, number in other.requests.items()})
        names = self.__dataclass_fields__.keys() - {"requests"}
        numbers = {name: getattr(self, name) + sign * getattr(other, name) for name in names}
        return Work(**numbers, requests={status: number for status, number in requests.items() if number})


class JobStore(Protocol):
    """Storage of jobs and results. Not safe for use from several threads."""

    def put_jobs(self, batches: Iterable[pa.RecordBatch], load_id: str) -> PutCounts:
        """Store the rows (schema ``PUT_SCHEMA``) of one load, all of them or none.

        Identity is (source, job_id): the newest end time wins. At equal end time the later load or row wins,
        field by field: a missing value never replaces a known one. Rows that change nothing are not written.
        Repeating a load only changes the count of updated rows. An exception of the source leaves the store
        as it was.
        """

    def undo_load(self, load_id: str) -> Undone:
        """Undo a load; every job shows what its remaining versions say.

        Raises :class:`StoreError` if :meth:`prune_versions` removed versions that the load had replaced.
        """

    def prune_versions(self, loads: Collection[str], *, dry_run: bool = False) -> int:
        """Remove versions of jobs replaced by other versions of these loads; return their number.

        Readers see no difference. A load that replaced a removed version cannot be undone any more.
        """

    def select(self, select: Select) -> Iterator[pa.RecordBatch]:
        """Stream jobs as of the call, fields in the requested order, rows in any order."""

    def aggregate(self, query: Query) -> Aggregate:
        """Group and sum jobs, or rows of ``query.over``; table and books are of one snapshot."""

    def span(self) -> Span:
        """Return the number of jobs and the span of their end times."""

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Return columns day, n_jobs, fingerprint, which changes with any change of the day's jobs."""

    def replace(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        """Write the rows of one partition, invisible until published."""

    # called late: what follows from the published runs must be computed while they cannot change
    def publish(self, changes: Sequence[Change], also: Callable[[], Sequence[Change]] | None = None) -> None:
        """Switch all readers to these changes atomically; none if a generation is missing or incomplete.

        ``also`` supplies further changes; it is called while nobody else can publish.
        """

    def sweep(self) -> int:
        """Delete rows that no reader can see; return their number.

        Pending rows of this object and of live processes stay.
        """

    def read(
        self,
        table: Table,
        where: Sequence[Filter] = (),
        columns: Sequence[str] = (),
        *,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the rows visible at the call; all columns if none are named.

        ``order``: sort columns, descending with ``-``; missing last. ``limit``: maximum number of rows.
        """

    def value(self, key: str) -> str | None:
        """Return a named value; None if absent."""

    def compare_and_set(self, key: str, old: str | None, new: str | None) -> bool:
        """Set a named value if it still equals ``old`` (None: absent); return True if set."""

    def capabilities(self) -> Capabilities:
        """Describe the store."""

    def account(self) -> str:
        """Return the account by which the store is used: of a cluster, else of this machine."""

    def work(self) -> Work:
        """Return the work done since the store was opened."""

    def check_fields(self) -> list[FieldState]:
        """Return the state of every stored field, in catalogue order."""

    def set_up(
        self, *, dry_run: bool = False, repair: bool = False, start_empty: Collection[str] = ()
    ) -> Preparation:
        """Create what the store lacks, or only report it.

        ``repair``: restore what readers see after changes by others. ``start_empty``: names of entered tables
        to continue without lost rows.
        """

    def close(self) -> None:
        """Release the store; further calls raise."""


@runtime_checkable
class CostEstimate(Protocol):
    """Store that estimates the cost of questions."""

    def foresee(self, queries: Sequence[Query]) -> None:
        """Log the cost of questions. Raises :class:`StoreError` if it exceeds the settings."""


@runtime_checkable
class Ailing(Protocol):
    """Store that others can damage or block."""

    def ailments(self) -> Sequence[Ailment]:
        """Return all faults."""


@runtime_checkable
class Expiring(Protocol):
    """Store whose old jobs may disappear without an undo."""

    @property
    def forgets(self) -> bool:
        """True if jobs of any day may disappear: those kept by others."""

    def forgotten(self, days: Collection[date]) -> set[date]:
        """Return those of some days without jobs whose jobs have disappeared, as far as can be told."""


PART = "+"
"""Separator between the day of a partition and the name of rows that were added later."""


@runtime_checkable
class Adding(Protocol):
    """Store that can add late rows to a day without rewriting it."""

    def load_fingerprints(self, window: Window) -> pa.Table:
        """Return columns day, load, n_jobs, fingerprint by day and load, in order of the loads.

        A fingerprint is what ``day_fingerprints`` would say if later loads had not been. Empty where the
        order of the loads is unknown.
        """

    def jobs_of_loads(self, after: int, upto: int) -> JobStore:
        """Return this store as if it had the jobs of these loads alone; results are the same."""

    def add(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        """Write further rows of a day, invisible until published.

        Readers then see them beside those that are there; what replaces or hides the day takes them along.
        """


Rewrite = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Function that changes texts of versions of jobs: same number, order and columns (``PUT_SCHEMA``)."""


@runtime_checkable
class Erasing(Protocol):
    """Store that can change texts of stored jobs, and free deleted data."""

    def rewrite_jobs(self, containing: str, rewrite: Rewrite) -> int:
        """Rewrite every version of a job that contains a text, in any case; return the number changed.

        ``rewrite`` may leave rows unchanged. An interrupted run is completed by the next one.
        """

    def erase(self) -> str:
        """Free deleted data; return a sentence on the result."""


@runtime_checkable
class ServerClock(Protocol):
    """Store on a server with a clock of its own."""

    def server_time(self) -> datetime | None:
        """Return the server's time, to the second or better; None if unknown."""


@runtime_checkable
class SpeakingSQL(Protocol):
    """Store that answers one read-only SELECT."""

    def sql(self, text: str, timeout_s: float) -> pa.RecordBatchReader:
        """Stream the rows of a SELECT.

        Raises :class:`UsageError` for other or faulty statements, :class:`StoreError` after ``timeout_s``
        seconds.
        """


def require_store(store: object) -> JobStore:
    """Return the object as a store. Raises :class:`UsageError` that names missing methods."""
    # not isinstance: a protocol tells that something is missing, but not what
    methods = [name for name, value in vars(JobStore).items() if callable(value) and name[0] != "_"]
    lacking = [name for name in methods if not callable(getattr(store, name, None))]
    if lacking or isinstance(store, type):
        what = f"has no {', '.join(lacking)}" if lacking else "must be instantiated"
        raise UsageError(f"{kind_of(store)} is not a store: it {what}; see esjobs.store.base.JobStore")
    return cast("JobStore", store)
