"""Elasticsearch or OpenSearch as a store.

Questions that a cluster cannot answer exactly are answered from documents by the embedded engine.
"""

import contextlib
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any, Literal, cast

import pyarrow as pa

from esjobs.core.errors import SettingsError, StoreError, UsageError
from esjobs.core.fields import JOB_FIELDS
from esjobs.core.query import Filter, Query, Select
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.store.base import (
    Aggregate,
    Ailment,
    Capabilities,
    Change,
    FieldState,
    Generation,
    JobStore,
    Preparation,
    PutCounts,
    Rewrite,
    Span,
    Undone,
    Work,
)
from esjobs.store.checks import LOAD_FINGERPRINTS, by_name, new_part, require_known, writes
from esjobs.store.duck.compile_sql import compile_read, compile_select
from esjobs.store.elastic.asking.aggregation import aggregate
from esjobs.store.elastic.asking.cost import foresee
from esjobs.store.elastic.asking.selection import selected
from esjobs.store.elastic.fields.field_map import FieldMap, load_field_map
from esjobs.store.elastic.fields.live_fields import OBJECT, LiveField
from esjobs.store.elastic.health import blocked
from esjobs.store.elastic.indices import require_layout
from esjobs.store.elastic.jobs.foreign_jobs import ForeignJobs
from esjobs.store.elastic.jobs.job_index import JobSource
from esjobs.store.elastic.jobs.loads import Jobs
from esjobs.store.elastic.jobs.months import JobMonths
from esjobs.store.elastic.jobs.own_jobs import OwnJobs
from esjobs.store.elastic.layout import LAYOUT, USUAL, IndexSettings, Names
from esjobs.store.elastic.renaming import give_names_back
from esjobs.store.elastic.results.generations import Results
from esjobs.store.elastic.setup import lacking_rights, role, set_up, set_up_jobs
from esjobs.store.elastic.state import State
from esjobs.store.elastic.templates import template_ailments, wanted_templates
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.jobs_of_loads import JobsOfLoads


class ElasticStore:
    """Jobs and results in the indices of a cluster under ``prefix``; see :class:`JobStore`.

    ``jobs_index``: foreign index, alias or pattern of jobs, read through ``field_map``; ``read_at_most``:
    limit of individually read documents there. ``how``: shards and replicas. Raises :class:`SchemaError` for
    indices of another layout, :class:`SettingsError` for shards that the product cannot page.
    """

    def __init__(
        self,
        cluster: Cluster,
        prefix: str = "esjobs",
        *,
        tables: Iterable[Table],
        jobs_index: str | None = None,
        field_map: FieldMap | None = None,
        how: IndexSettings = USUAL,
        read_at_most: int | None = None,
        read_only: bool = False,
    ) -> None:
        self.read_only = read_only
        _require_shards(cluster, how)
        self._cluster: Cluster | None = cluster
        self._meter = cluster.meter
        self._tables = by_name(tables)
        self._location = cluster.location
        self._names = Names(prefix)
        self._how = how
        self._state = State(cluster, self._names, how)
        self._foreign = jobs_index
        self._jobs = Jobs(cluster, self._names, self._state, how)
        self._source: JobSource = (
            OwnJobs(self._jobs)
            if jobs_index is None
            else ForeignJobs(cluster, jobs_index, field_map or load_field_map("esjobs"), prefix, read_at_most)
        )
        self._results = Results(cluster, self._names, self._state, self._tables, how=how)
        self._streams: weakref.WeakSet[_Stream] = weakref.WeakSet()
        # at opening: a store of another version is refused before it is read
        for index in (self._names.jobs, self._names.state):
            require_layout(cluster, index)

    @writes
    def put_jobs(self, batches: Iterable[pa.RecordBatch], load_id: str) -> PutCounts:
        self._require_own()
        return self._jobs.put(batches, load_id)

    @writes
    def undo_load(self, load_id: str) -> Undone:
        self._require_own()
        return self._jobs.undo(load_id)

    @writes
    def prune_versions(self, loads: Collection[str], *, dry_run: bool = False) -> int:
        self._open()
        # jobs of others have no versions
        return self._jobs.prune(loads, dry_run=dry_run) if self._foreign is None else 0

    def select(self, select: Select) -> Iterator[pa.RecordBatch]:
        """Stream jobs as of the call, in batches of at most 10 000 rows."""
        compile_select(select)  # refuses what makes no sense before anything is asked
        return self._stream(self._meter.read_jobs(selected(self._open(), self._source, select)))

    def aggregate(self, query: Query) -> Aggregate:
        """Group and sum, with the books; see `aggregation` and `row_groups`."""
        cluster = self._open()
        if query.over is None:
            return self._meter.grouped(aggregate(cluster, self._source, query))
        require_known(self._tables, query.over)
        return self._results.aggregate(query.over, query)

    def foresee(self, queries: Sequence[Query]) -> None:
        cluster = self._open()
        if self._foreign is not None:
            foresee(cluster, self._source, queries)

    @property
    def forgets(self) -> bool:
        """True if jobs of any day may disappear: those in foreign indices."""
        return self._foreign is not None

    def forgotten(self, days: Collection[date]) -> set[date]:
        self._open()
        return set(days) if self.forgets else self._jobs.forgotten(days)

    def span(self) -> Span:
        self._open()
        return self._source.span()

    def server_time(self) -> datetime | None:
        self._open()
        return self._source.server_time()

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        self._open()
        return self._source.day_fingerprints(window)

    def load_fingerprints(self, window: Window) -> pa.Table:
        """Return jobs per day and load; of foreign jobs nobody knows the order."""
        self._open()
        if not isinstance(self._source, OwnJobs):
            return LOAD_FINGERPRINTS.empty_table()
        return self._source.load_fingerprints(window)

    def jobs_of_loads(self, after: int, upto: int) -> JobStore:
        """Return this store with the jobs of some loads only. Raises :class:`StoreError` for foreign jobs."""
        cluster = self._open()
        if not isinstance(self._source, OwnJobs):
            raise StoreError(f"the order in which jobs came to {self._source.index} is unknown")
        jobs = self._source.of_commits(after, upto)
        later = JobsOfLoads(
            self,
            lambda select: self._stream(self._meter.read_jobs(selected(cluster, jobs, select))),
            lambda query: self._meter.grouped(aggregate(cluster, jobs, query)),
        )
        return cast("JobStore", later)

    @writes
    def add(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        self._open()
        return self._results.replace(table, new_part(table, partition), batches)

    @writes
    def replace(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        self._open()
        return self._results.replace(table, partition, batches)

    @writes
    def publish(self, changes: Sequence[Change], also: Callable[[], Sequence[Change]] | None = None) -> None:
        self._open()
        self._results.publish(changes, also)

    @writes
    def rewrite_jobs(self, containing: str, rewrite: Rewrite) -> int:
        """Rewrite versions that contain a text, a document at a time."""
        self._require_own()
        return self._jobs.rewrite(containing, rewrite)

    @writes
    def erase(self) -> str:
        """Do nothing: a cluster frees deleted documents when it merges segments."""
        return (
            "the files of the cluster contain deleted documents until it merges segments; to merge now: "
            f"POST /{self._names.prefix}-*/_forcemerge?max_num_segments=1"
        )

    @writes
    def sweep(self) -> int:
        self._open()
        return self._results.sweep()

    def read(
        self,
        table: Table,
        where: Sequence[Filter] = (),
        columns: Sequence[str] = (),
        *,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the visible rows as of the call."""
        self._open()
        require_known(self._tables, table)
        # refuses what makes no sense before anything is asked
        compile_read(table, where, columns, order, limit)
        return self._stream(self._results.read(table, where, columns, order, limit))

    def search(self, table: Table | None) -> Any:
        """Return an ``elasticsearch.dsl`` search on the visible rows of a table (None: of the jobs).

        Tables of runs: the latest run. Raises :class:`UsageError` for OpenSearch and foreign jobs.
        """
        cluster = self._open()
        if table is None:
            if self._foreign is not None:
                raise UsageError(
                    f"jobs are in {self._foreign}, which has other field names; use s.query() and s.jobs()"
                )
            return cluster.search("jobs", self._names.jobs, {field.name: field.type for field in JOB_FIELDS})
        require_known(self._tables, table)
        index = self._names.latest(table) if table.has_latest else self._names.alias(table)
        return cluster.search(table.name, index, {each.name: each.type for each in table.columns})

    def value(self, key: str) -> str | None:
        self._open()
        return self._state.value(key)

    @writes
    def compare_and_set(self, key: str, old: str | None, new: str | None) -> bool:
        self._open()
        return self._state.compare_and_set(key, old, new)

    def capabilities(self) -> Capabilities:
        """Return product, version and limits, with the rights that the user lacks; asks the cluster."""
        cluster = self._open()
        details = {
            "prefix": self._names.prefix,
            "layout": LAYOUT,
            "jobs in": self._foreign or self._names.jobs,
        }
        lacking = lacking_rights(cluster, self._names, self._foreign)
        return Capabilities(
            cluster.product,
            cluster.version,
            self._location,
            1,
            details,
            tuple(lacking),
            self._source.undated(),
        )

    def account(self) -> str:
        return self._open().account()

    def work(self) -> Work:
        return self._meter.work

    def check_fields(self) -> list[FieldState]:
        self._open()
        undated = self._source.undated()
        return [
            _state(live, undated if live.field.name == "end_time" else 0)
            for live in self._source.live.values()
        ]

    def ailments(self) -> list[Ailment]:
        """Return blocks, altered or foreign templates, and differences of aliases and records."""
        cluster, own = self._open(), self._foreign is None
        found = list(blocked(cluster, self._names))
        found += template_ailments(cluster, self._names, self._tables.values(), self._how, jobs=own)
        found += [
            Ailment(f"table {each.table.name}", each.what, each.to_do) for each in self._results.differences()
        ]
        if own:
            months = JobMonths(cluster, self._names, self._how)
            found += [Ailment("jobs", each.what, each.to_do) for each in months.differences()]
        return found

    @writes
    def set_up(
        self, *, dry_run: bool = False, repair: bool = False, start_empty: Collection[str] = ()
    ) -> Preparation:
        """Create all indices and aliases.

        Raises :class:`PublishedError` if aliases and record differ, unless ``repair`` repairs them first.
        """
        cluster = self._open()
        tables = self._tables.values()
        own = self._foreign is None
        templates = wanted_templates(cluster, self._names, tables, self._how, jobs=own)
        done = self._repair(cluster, start_empty, dry_run=dry_run) if repair else []
        if not (repair and dry_run):
            self._results.check()
            done += set_up(cluster, self._names, tables, templates, self._how, jobs=own, dry_run=dry_run)
        if not dry_run:
            self._results.prepare()
        if own and not (repair and dry_run):
            done += set_up_jobs(cluster, self._names, self._how, dry_run=dry_run)
        least = role(cluster.product, self._names, self._foreign)
        return Preparation(tuple(done), least, templates, cluster.product)

    def _repair(self, cluster: Cluster, start_empty: Collection[str], *, dry_run: bool) -> list[str]:
        """Restore index names, then aliases; return a line each."""
        done = give_names_back(cluster, self._names, self._tables.values(), dry_run=dry_run)
        if done and dry_run:
            return done  # what else there is can be seen afterwards
        if self._foreign is None:
            done += JobMonths(cluster, self._names, self._how).repair(dry_run=dry_run)
        return done + self._results.repair(dry_run=dry_run, start_empty=start_empty)

    def close(self) -> None:
        """Release the connections; repeated calls do nothing, other calls raise :class:`StoreError`."""
        if self._cluster is None:
            return
        for stream in list(self._streams):
            stream.close()
        # other stores of this process may sweep what this one will not publish any more
        self._results.forget()
        self._cluster.close()
        self._cluster = None

    def _require_own(self) -> None:
        self._open()
        if not isinstance(self._source, OwnJobs):
            raise StoreError(
                f"jobs are read from {self._source.index}, an index that esjobs never writes to; omit "
                "--jobs-index to load into an index of esjobs"
            )

    def _open(self) -> Cluster:
        if self._cluster is None:
            raise StoreError(f"store {self._location} is closed; open it again")
        return self._cluster

    def _stream(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        stream = _Stream(batches, self._location)
        self._streams.add(stream)
        return stream


# From here on documents of several shards have an order in which pages can be read
_OPENSEARCH_WITH_SHARDS = (3, 3)


def _require_shards(cluster: Cluster, how: IndexSettings) -> None:
    # a suffix such as 3.3.0-SNAPSHOT does not matter
    version = tuple(int(part) for part in cluster.version.split(".")[:2] if part.isdigit())
    if how.shards > 1 and cluster.product == "opensearch" and version < _OPENSEARCH_WITH_SHARDS:
        raise SettingsError(
            f"{cluster.location} is OpenSearch {cluster.version}, which cannot page through an index with "
            f"{how.shards} shards (cluster.shards); omit cluster.shards, or use OpenSearch 3.3 or newer"
        )


def _state(live: LiveField, n_without: int) -> FieldState:
    """Return the state of a field; ``n_without``: documents without it."""
    source = live.source
    note = f"{n_without:,} documents have no value" if n_without else live.note
    foreign = (
        _literal(source.constant) if source.constant is not None else ", ".join(live.paths or source.names)
    )
    missing = live.state == "absent" or (live.field.name == "end_time" and not live.askable)
    needed = missing and source.absent == "refuse"
    return FieldState(live.field.name, foreign, _shown_state(live), live.type, note, needed)


def _shown_state(live: LiveField) -> Literal["present", "constant", "wrong type", "absent"]:
    if live.state == "mixed":
        # the indices that differ are asked one after the other
        return "present"
    if live.state != "unindexed":
        return live.state
    # nobody asks for what is inside a map: it is read from documents anyway
    as_meant = live.field.type == "map" and live.type in ("", OBJECT)
    return "present" if as_meant else "wrong type"


def _literal(constant: str | bool) -> str:
    return repr(constant) if isinstance(constant, str) else str(constant).lower()


class _Stream:
    """Batches that end with the store."""

    def __init__(self, batches: Iterator[pa.RecordBatch], location: str) -> None:
        self._batches = batches
        self._location = location
        self._state = "open"

    def __iter__(self) -> "_Stream":
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._state == "closed":
            raise StoreError(f"store {self._location} was closed during a read; open it again")
        try:
            return next(self._batches)
        except StopIteration:
            self._state = "ended"
            raise

    def close(self) -> None:
        if self._state == "open":
            self._state = "closed"
            # a generator keeps its snapshot until it is closed
            if hasattr(self._batches, "close"):
                # one that another thread is in ends at its next batch
                with contextlib.suppress(ValueError):
                    self._batches.close()
