"""The seam between esjobs and whatever holds the jobs: a handful of methods, Arrow batches across.

Promises that every store keeps, and the contract suite proves:

- ``put_jobs`` is idempotent and all-or-nothing; a load can be taken back.
- Counts are exact, or the store refuses. Nothing is dropped without a reason in the books.
- What ``replace`` writes is invisible until ``publish`` switches readers over in one atomic step; a reader
  sees the old rows before it and the new ones after it, never both; a process killed in between leaves the
  old ones. Leftovers are swept later.
- ``latest_TABLE`` shows what readers see of one partition, whatever becomes of it, never of two; it moves to
  another one in the same step as the results.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, Protocol, cast, runtime_checkable

import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.core.query import Filter, Query, Select
from esjobs.core.tables import Table
from esjobs.core.text import kind_of
from esjobs.core.window import Window


@dataclass(frozen=True)
class PutCounts:
    """What became of the rows of a load: every row in is stored, updated or superseded.

    ``stored``: jobs that were not there before. ``updated``: rows of jobs that were, and repeats inside the
    load, unless a newer end time beats them.
    ``superseded_rows``: columns source, job_id, origin_file, origin_line of the rows that lost against a
    newer end time (incoming rows only).

    ``jobs_changed``: of the jobs with updated rows, those that readers see with another value than before;
    ``changed``: by field, how many. What a new job was before is its first row. ``kept``: by field, the jobs
    whose incoming rows lack a value that is known from another version of the same end time, and stays.
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
        """Incoming rows older than what is stored or than another row of the load."""
        return int(self.superseded_rows.num_rows)


@dataclass(frozen=True)
class Undone:
    """Result of an undone load.

    ``jobs``: job versions removed, one per job that the load wrote, visible or not; 0 for an unknown load.
    ``unchanged``: by load id, the rows that other loads had found unchanged in this one, and did not write.
    """

    jobs: int = 0
    unchanged: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Aggregate:
    """Answer to a query.

    ``table``: the keys, then the metrics by their names, one row per group, order unspecified; without keys
    exactly one row, also when no job matches. Counts are integers, sums numbers; texts among the keys may be
    dictionary-encoded.
    ``books``: columns day, outcome, kind (``binned``, ``dropped``, ``note``), n_jobs. Per day, the jobs that
    match window and ``where`` are the sum over ``binned`` and ``dropped``; notes count among the binned. Of a
    query over a result table they are empty: no rule drops its rows.
    """

    table: pa.Table
    books: pa.Table


@dataclass(frozen=True)
class Generation:
    """One answer written for one partition of a table; invisible until published."""

    table: Table
    partition: str
    number: str


@dataclass(frozen=True)
class Retired:
    """Takes a partition of a table out of sight when published."""

    table: Table
    partition: str


@dataclass(frozen=True)
class Pointed:
    """Makes ``latest_TABLE`` show one partition of a table when published; None: no rows.

    ``length``: instead of it ``latest_TABLE_LENGTH``, for runs of windows of one length, such as ``30d``; a
    name that there is only while it shows a partition. Tables that are replaced per run have such names.
    """

    table: Table
    partition: str | None
    length: str = ""


Change = Generation | Retired | Pointed
"""What a publication does, to a partition or to a latest name."""


@dataclass(frozen=True)
class Span:
    """What is stored: how many jobs, and the earliest and latest end time (None when empty)."""

    jobs: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True)
class FieldState:
    """A stored field of the catalogue as the place of the jobs has it.

    ``foreign``: what it is called there. ``state``: ``present``, ``constant``, ``wrong type`` (documents have
    it, but it must be read from them), ``absent``. ``needed``: nothing makes sense without it, and it is not
    there. ``note``: what is wrong.
    """

    field: str
    foreign: str
    state: Literal["present", "constant", "wrong type", "absent"]
    type: str
    note: str = ""
    needed: bool = False


@dataclass(frozen=True)
class Preparation:
    """What setting up did, or would do: ``done``, a line each; ``role``: the least rights of a user."""

    done: tuple[str, ...]
    role: str


@dataclass(frozen=True)
class Capabilities:
    """What a store is and can do; shown by ``esjobs doctor``."""

    engine: str
    version: str
    location: str
    days_per_aggregate: int
    """How many days one ``aggregate`` call may span before the answer should be cut."""
    details: dict[str, str] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()
    """Rights that the user lacks, where the store can tell."""
    undated: int = 0
    """Documents in the place of the jobs that have no end time: they belong to no day, and count nowhere."""


@dataclass(frozen=True)
class Ailment:
    """Something in the place of the store that keeps it from working: what, how it is, what to do."""

    what: str
    text: str
    to_do: str


class JobStore(Protocol):
    """Where jobs and results live. Not safe for use from several threads."""

    def put_jobs(self, batches: Iterable[pa.RecordBatch], load_id: str) -> PutCounts:
        """Store the rows (schema ``PUT_SCHEMA``) of one load, all of them or none.

        Identity is (source, job_id): the newest end time wins. At equal end time the later version does (of
        the load that was first put last, inside a load the later row), field by field: a missing value never
        replaces a known one. Rows of a job that change nothing of what the stored versions of their end time
        say are not written. Putting the same load again changes nothing but the count of updated rows. An
        exception of the batches' source leaves the store as it was and reaches the caller.
        """

    def undo_load(self, load_id: str) -> Undone:
        """Take back the rows of a load; every job is again what the remaining versions say.

        Raises :class:`StoreError` for a load of which :meth:`prune_versions` removed what it had replaced.
        """

    def prune_versions(self, loads: Collection[str], *, dry_run: bool = False) -> int:
        """Remove the versions of jobs that other versions of these loads have replaced; how many.

        Readers see no difference, and undoing any other load brings back what it would have. A load of these
        that has replaced a removed version cannot be undone from now on. ``dry_run``: count only.
        """

    def select(self, select: Select) -> Iterator[pa.RecordBatch]:
        """Stream jobs as of the moment of the call, fields in the order asked for, ordered by nothing."""

    def aggregate(self, query: Query) -> Aggregate:
        """Group and sum jobs, or rows of the table ``query.over``; with the books of the same snapshot."""

    def span(self) -> Span:
        """How many jobs are stored and which span their end times cover."""

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Columns day, n_jobs, mark: a mark moves whenever a job of its day is added, changed or removed."""

    def replace(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        """Write the rows of one partition beside the visible ones. The partition is written as text."""

    def publish(self, changes: Sequence[Change], also: Callable[[], Sequence[Change]] | None = None) -> None:
        """Switch every reader to these generations at once, or none of them when one is not in the store.

        A generation of which rows are missing is not in the store either. ``also``: gives what else is to
        change in the same step. It is called when nobody else can publish any more, so that it may go by what
        readers see then.
        """

    def sweep(self) -> int:
        """Delete rows that no reader can see; the number of rows deleted.

        What this object wrote and has not published yet stays, and what another process may still publish;
        what a process left behind that has ended goes.
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
        """Stream the rows of a table visible at the moment of the call; all columns when none are named.

        ``order``: columns to sort by, the largest first behind ``-``; missing values come last either way,
        equal ones in any order. ``limit``: so many rows at most.
        """

    def value(self, key: str) -> str | None:
        """A named value; None when there is none."""

    def compare_and_set(self, key: str, old: str | None, new: str | None) -> bool:
        """Set a named value if it is still the old one (None: absent); whether it was."""

    def capabilities(self) -> Capabilities:
        """What this store is."""

    def check_fields(self) -> list[FieldState]:
        """Every stored field, in the order of the catalogue, as the place of the jobs has it now."""

    def set_up(
        self, *, dry_run: bool = False, mend: bool = False, start_empty: Collection[str] = ()
    ) -> Preparation:
        """Make what the store lacks before anything is written, or only say what; again: nothing is left.

        ``mend``: also put right what readers see, where somebody else has changed it. ``start_empty``: names
        of tables that people enter and that go on without rows that are lost.
        """

    def close(self) -> None:
        """Release the store; further calls raise."""


@runtime_checkable
class Foreseeing(Protocol):
    """A store that can say what questions will cost before they are asked."""

    def foresee(self, queries: Sequence[Query]) -> None:
        """Log it, and raise :class:`StoreError` when it is more than the settings allow."""


@runtime_checkable
class Ailing(Protocol):
    """A store that others can damage or block while it is not used."""

    def ailments(self) -> Sequence[Ailment]:
        """All that is wrong with it; empty if nothing is."""


@runtime_checkable
class Forgetting(Protocol):
    """A store whose jobs may go because they are old, without anybody having taken them back."""

    @property
    def forgets(self) -> bool:
        """Whether jobs of any day may go so: those of others, who keep them as long as they like."""

    def forgotten(self, days: Collection[date]) -> set[date]:
        """Of some days that have no jobs, those whose jobs went so, as far as can be told."""


Rewrite = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Gives versions of jobs with other texts: as many, in the same order, columns of ``PUT_SCHEMA``."""


@runtime_checkable
class Erasing(Protocol):
    """A store that can change texts of stored jobs, and free what was deleted."""

    def rewrite_jobs(self, containing: str, rewrite: Rewrite) -> int:
        """Rewrite every version of a job, visible or not, in which a text stands, in any case.

        ``rewrite`` may leave rows as they are. The number of versions that it changed. A run that was broken
        off may have changed some of them; the next one changes the others.
        """

    def erase(self) -> str:
        """Free what was deleted and is not visible any more; a sentence: what became of it."""


@runtime_checkable
class ServerClock(Protocol):
    """A store on a server, whose clock is a second opinion about the time."""

    def server_time(self) -> datetime | None:
        """The time there, to the second or better; None where nothing tells it."""


@runtime_checkable
class SpeakingSQL(Protocol):
    """A store that answers SQL: one SELECT, which changes nothing and reaches nothing but the store."""

    def sql(self, text: str, timeout_s: float) -> pa.RecordBatchReader:
        """The rows as a stream. Raises :class:`UsageError` for anything but one SELECT, and what is wrong
        in one, :class:`StoreError` when it takes longer than ``timeout_s`` seconds.
        """


def require_store(given: object) -> JobStore:
    """The object as a store, or :class:`UsageError` that names the methods it lacks."""
    methods = [name for name, value in vars(JobStore).items() if callable(value) and name[0] != "_"]
    lacking = [name for name in methods if not callable(getattr(given, name, None))]
    if lacking or isinstance(given, type):
        what = f"lacks {', '.join(lacking)}" if lacking else "is to be made first"
        raise UsageError(f"{kind_of(given)} is no store; it {what}: see esjobs.store.base.JobStore")
    return cast("JobStore", given)
