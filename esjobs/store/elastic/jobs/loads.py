"""Jobs in the cluster: loads, duplicates, undoing, fingerprints, all or nothing without transactions.

Every version of a job is a document. It is visible from commit ``from`` on (inclusive) and until commit
``until`` (exclusive; absent: to this day); ``born`` is the commit that brought the document (absent: that of
``from``, as in nearly all of them). What a load writes is of the next commit, which readers do not see until
one document says that it is now. What a process left behind before that is cleared away by whoever writes
next: documents born later are deleted, shown or hidden ones are put back.

Which version of a job is visible, or what several show together, `versions` says. The others wait hidden for
a load to be undone.
"""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.errors import StoreError
from esjobs.core.window import Window
from esjobs.store.base import PutCounts, Rewrite, Span
from esjobs.store.batches import blocks
from esjobs.store.checks import SUPERSEDED
from esjobs.store.elastic.asking.days import fingerprints, within
from esjobs.store.elastic.asking.server_time import server_time
from esjobs.store.elastic.jobs.leftovers import KEPT_PLACE, leftovers, removal, restored
from esjobs.store.elastic.jobs.months import Brought, JobMonths
from esjobs.store.elastic.jobs.rewriting import changes, containing
from esjobs.store.elastic.jobs.stamps import stamped
from esjobs.store.elastic.jobs.versions import (
    MERGED,
    Contest,
    Document,
    Version,
    born_by,
    identity_of,
    named,
    settled,
)
from esjobs.store.elastic.layout import USUAL, IndexSettings, Names
from esjobs.store.elastic.results.lines import PIECE_BYTES, PIECE_ROWS, create_lines, documents
from esjobs.store.elastic.state import Commit, State
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import Action, parts, refresh, sent, update, write
from esjobs.store.lease import Lease

_CHUNK = 1000
"""Identities asked for in one search."""


class Jobs:
    """The documents of the jobs' indices."""

    def __init__(self, cluster: Cluster, names: Names, state: State, how: IndexSettings = USUAL) -> None:
        self._cluster = cluster
        self._months = JobMonths(cluster, names, how)
        self._state = state
        self._lease = Lease(state, cluster.location, request_s=cluster.longest_s())
        self._writing = False

    @property
    def index(self) -> str:
        """The indices in which jobs are now, with commas between."""
        return self._months.target()

    def index_of(self, window: Window | None) -> str:
        """Those of them that may have jobs of a window."""
        return self._months.target(window)

    def visible(self) -> dict[str, Any]:
        """The query of the jobs that readers see."""
        number = self._state.commit().number
        late = {"range": {"until": {"lte": number}}}
        return {"bool": {"filter": [{"range": {"from": {"lte": number}}}], "must_not": [late]}}

    def put(self, batches: Iterable[pa.RecordBatch], load_id: str) -> PutCounts:
        """Write the rows of a load as the next commit, settle which version of each job is visible, commit.

        Jobs that are new, nearly all of them, cost one bulk item each: their id is their identity, which the
        document does not repeat, and the cluster says which ids the index of the month knows already, of
        other loads or of this one. Other months are asked, once per 4096 rows, if they have jobs. Memory
        holds two requests, 8 bytes of each row and the rows of jobs that have several versions.
        """
        old = self._begin()
        try:
            counts, new = self._put(old, batches, load_id)
            refresh(self._cluster, self.index)
            self._lease.keep()
            self._state.advance(old, new)
        except BaseException:
            self._take_back()
            raise
        finally:
            self._end()
        return counts

    def _put(self, old: Commit, batches: Iterable[pa.RecordBatch], load_id: str) -> tuple[PutCounts, Commit]:
        number, load = old.number + 1, old.loads.get(load_id, old.next_load)
        usual = {"load": load, "from": number}
        common = {**usual, "born": number}
        rows = 0
        again: list[pa.RecordBatch] = []
        brought = Brought()
        filled = self._months.filled()
        made: set[str] = set()

        def requests() -> Iterator[tuple[list[bytes], pa.RecordBatch]]:
            nonlocal rows
            for batch in blocks(batches, PUT_SCHEMA, "jobs", PIECE_ROWS, PIECE_BYTES):
                # rows of the same load put again come after those of its earlier commits
                incoming = stamped(batch, (number << 40) + rows)
                rows += incoming.num_rows
                for month, index, some in self._months.split(incoming):
                    if index not in made:
                        self._months.ensure(month=month)
                        made.add(index)
                    known = pa.array(brought.elsewhere(some, index))
                    if any(other != index for other in filled):
                        known = pc.or_(known, pc.is_in(some["identity"], self._months.elsewhere(some, index)))
                    if pc.any(known).as_py():
                        again.append(some.filter(known))
                    bodies = some.drop_columns(["identity"])
                    for first, lines in create_lines(index, some["identity"], bodies, usual):
                        at = first
                        for part in parts(lines):
                            yield part, some.slice(at, len(part))
                            at += len(part)

        with contextlib.closing(sent(self._cluster, requests(), self._lease.keep)) as answers:
            for present, some in answers:
                if present:
                    again.append(some.filter(pc.is_in(some["identity"], pa.array(present))))
        counts = self._settle(again, common, rows, set(old.loads.values()))
        loads = {**old.loads, load_id: load}
        return counts, Commit(number, loads, max(old.next_load, load + 1), old.version)

    def _settle(
        self, again: Sequence[pa.RecordBatch], common: Mapping[str, int], rows: int, loads: Set[int]
    ) -> PutCounts:
        """Decide about the jobs that have several versions, and write those that are not written yet."""
        if not again:
            return PutCounts(rows, 0, SUPERSEDED.empty_table())
        refresh(self._cluster, self.index)
        number = common["born"]
        superseded: list[tuple[int, Document]] = []
        updated = jobs_changed = 0
        changed: Counter[str] = Counter()
        kept: Counter[str] = Counter()

        def actions() -> Iterator[Action]:
            nonlocal updated, jobs_changed
            with PointInTime(self._cluster, self.index) as at:
                for documents_of_jobs in _by_job(again, common):
                    contests = list(self._contests(at, documents_of_jobs, number, loads))
                    for contest in contests:
                        lost = len(contest.loaded) - len(contest.incoming)
                        superseded.extend((v.row, v.document) for v in contest.loaded[-lost:] if lost)
                        if contest.incoming:
                            updated += len(contest.incoming) - (not contest.is_known)
                            moved = contest.changed()
                            jobs_changed += bool(moved)
                            changed.update(moved)
                            kept.update(contest.kept())
                    yield from settled(contests, number)

        write(self._cluster, actions(), before=self._lease.keep)
        superseded.sort(key=lambda item: item[0])
        table = pa.Table.from_pylist(
            [{name: row.get(name) for name in SUPERSEDED.names} for _, row in superseded], schema=SUPERSEDED
        )
        stored = rows - len(superseded) - updated
        return PutCounts(stored, updated, table, jobs_changed, dict(changed), dict(kept))

    def _contests(
        self, at: PointInTime, rows: Sequence[Document], number: int, loads: Set[int]
    ) -> Iterator[Contest]:
        """The jobs of these rows of the load, each with all its versions."""
        versions: dict[str, dict[tuple[int, int], Version]] = {row["identity"]: {} for row in rows}
        merged: dict[str, Version] = {}
        for version in self._stored(at, list(versions), number, loads):
            if version.load == MERGED:
                merged[version.identity] = version
            else:
                versions[version.identity][version.load, version.row] = version
        for version in (Version.incoming(row, self._months.of) for row in rows):
            # a row may be among the stored ones: it was written before another of its request, or a request
            # was repeated and met itself
            versions[version.identity].setdefault((version.load, version.row), version)
        for identity, of_job in versions.items():
            yield Contest(list(of_job.values()), merged.get(identity))

    def _stored(
        self, at: PointInTime, names: Sequence[str], number: int, loads: Set[int], gone: int | None = None
    ) -> Iterator[Version]:
        """All versions of some jobs, those of this commit marked as not stored; merged documents if visible.

        ``gone``: a load to leave out.
        """
        for start in range(0, len(names), _CHUNK):
            query: dict[str, Any] = {"filter": [named(names[start : start + _CHUNK])]}
            if gone is not None:
                query["must_not"] = [{"term": {"load": gone}}]
            for hits in at.pages({"bool": query}):
                for hit in hits:
                    document = hit["_source"]
                    visible, fresh = _was_visible(document, number), born_by(document) == number
                    if not (visible if document["load"] == MERGED else fresh or document["load"] in loads):
                        continue  # of a load that was taken back, or merged and out of date
                    yield _version(hit, visible, stored=not fresh)

    def undo(self, load_id: str) -> int:
        """Hide the versions of a load, show the best remaining one of each of its jobs, commit, delete."""
        old = self._state.commit()
        if load_id not in old.loads:
            return 0
        old = self._begin()
        load, number = old.loads[load_id], old.number + 1
        try:
            gone = list(self._of_load(load, number))
            others = set(old.loads.values()) - {load}
            left: set[str] = set()

            def actions() -> Iterator[Action]:
                yield from (update(v.where, v.name, {"until": number}) for v in gone if v.visible)
                names = sorted({version.identity for version in gone})
                with PointInTime(self._cluster, self.index) as at:
                    for start in range(0, len(names), _CHUNK):
                        some = names[start : start + _CHUNK]
                        contests, unfounded = self._remaining(at, some, number, others, load)
                        left.update(contest.versions[0].identity for contest in contests)
                        yield from settled(contests, number)
                        yield from (update(v.where, v.name, {"until": number}) for v in unfounded)

            write(self._cluster, actions())
            refresh(self._cluster, self.index)
            loads = {name: commit_number for name, commit_number in old.loads.items() if name != load_id}
            self._state.advance(old, Commit(number, loads, old.next_load, old.version))
        except BaseException:
            self._take_back()
            raise
        finally:
            self._end()
        # what cannot be deleted now nobody sees, and the next write clears it away
        with contextlib.suppress(StoreError):
            write(self._cluster, (removal(v.where, v.name, v.identity, left) for v in gone))
        return len({version.identity for version in gone})

    def rewrite(self, text: str, rewrite: Rewrite) -> int:
        """Rewrite every version in which a text stands; how many changed. Visible as it is written."""
        changed = 0
        self._begin()
        try:
            with PointInTime(self._cluster, self.index) as at:
                for hits in at.pages(containing(text)):
                    for written, gone in changes(hits, rewrite):
                        write(self._cluster, written, before=self._lease.keep)
                        write(self._cluster, gone, before=self._lease.keep)
                        changed += len(written)
            refresh(self._cluster, self.index)
        finally:
            self._end()
        return changed

    def _remaining(
        self, at: PointInTime, names: Sequence[str], number: int, loads: Set[int], gone: int
    ) -> tuple[list[Contest], list[Version]]:
        """Of some jobs those that have versions of other loads, and merged documents of the others."""
        versions: dict[str, list[Version]] = {}
        merged: dict[str, Version] = {}
        for version in self._stored(at, names, number, loads, gone):
            if version.load == MERGED:
                merged[version.identity] = version
            else:
                versions.setdefault(version.identity, []).append(version)
        contests = [Contest(of_job, merged.pop(identity, None)) for identity, of_job in versions.items()]
        return contests, list(merged.values())

    def _of_load(self, load: int, number: int) -> Iterator[Version]:
        source = ["identity", "end_time", "load", "row", "from", "until"]
        with PointInTime(self._cluster, self.index) as at:
            for hits in at.pages({"term": {"load": load}}, source):
                yield from (_version(hit, _was_visible(hit["_source"], number), stored=True) for hit in hits)

    def _begin(self) -> Commit:
        """Clear away what an earlier process left, and start to write."""
        if self._writing:
            raise StoreError("the store is in the middle of a write; finish it before the next one starts")
        self._writing = True
        try:
            self._lease.take()
            self._months.prepare()
            commit = self._state.fence()
            self._clear(commit)
        except BaseException:
            self._end()
            raise
        return commit

    def _end(self) -> None:
        self._writing = False
        # a lease that cannot be given back ends with this process
        with contextlib.suppress(StoreError):
            self._lease.give_back()

    def _take_back(self) -> None:
        """Clear away what this write left; if that fails, too, the next write will do it.

        Nothing goes if the commit arrived after all and only the answer to it was lost.
        """
        if self._lease.held:
            with contextlib.suppress(StoreError):
                self._clear(self._state.fence())

    def _clear(self, commit: Commit) -> None:
        """Take back whatever is of a later commit than this one."""
        refresh(self._cluster, self.index)
        loads = {*commit.loads.values(), KEPT_PLACE}
        changed = False
        with PointInTime(self._cluster, self.index) as at:
            for hits in at.pages(
                leftovers(commit.number, loads), ["identity", "load", "born", "from", "until"]
            ):
                write(self._cluster, [restored(hit, commit.number, loads) for hit in hits])
                changed = True
        if changed:
            # the alias shows to others what is visible
            refresh(self._cluster, self.index)

    def forgotten(self, days: Collection[date]) -> set[date]:
        """Those of some days whose index of a month is gone; a load that is taken back leaves it there."""
        return self._months.dropped(days)

    def span(self) -> Span:
        """Count the visible jobs and find the earliest and latest end time."""
        body = {"size": 0, "query": self.visible(), "track_total_hits": True}
        with PointInTime(self._cluster, self.index) as at:
            answer = at.search(body)
            jobs = int(answer["hits"]["total"]["value"]) if answer else 0
            if not jobs:
                return Span(0, None, None)
            # aggregations know milliseconds only: the ends are read from the documents
            first, last = (
                at.search(
                    {
                        "size": 1,
                        "query": body["query"],
                        "_source": ["end_time"],
                        "sort": [{"end_time": order}],
                        "track_total_hits": False,
                    }
                )
                for order in ("asc", "desc")
            )
        return Span(
            jobs, *(_moment(answer["hits"]["hits"][0]["_source"]["end_time"]) for answer in (first, last))
        )

    def server_time(self) -> datetime | None:
        """The time of the cluster."""
        return server_time(self._cluster, self.index, "end_time")

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Jobs per day and sums of their marks: independent of order, moved by any change.

        Jobs that an earlier version stored have a second mark, which counts for them as it did then.
        """
        sums = {name: {"sum": {"field": name}} for name in ("mark_low", "mark_high")}
        clauses = [self.visible(), *within("end_time", window)]
        with PointInTime(self._cluster, self.index_of(window)) as at:
            return fingerprints(at, "end_time", clauses, sums)


def _was_visible(document: Mapping[str, Any], number: int) -> bool:
    """Whether readers saw a version just before a commit."""
    return 0 < document["from"] < number and (document.get("until") or number) >= number


def _version(hit: Mapping[str, Any], visible: bool, *, stored: bool) -> Version:
    document = hit["_source"]
    return Version(
        hit["_index"],
        hit["_id"],
        identity_of(hit),
        document["end_time"],
        document["load"],
        document["row"],
        visible,
        stored,
        document,
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _by_job(again: Sequence[pa.RecordBatch], common: Mapping[str, int]) -> Iterator[list[Document]]:
    """Rows as documents, about 1000 at a time, those of a job together."""
    rows = pa.Table.from_batches(again).combine_chunks().sort_by("identity").to_batches()
    of_job: list[Document] = []
    for batch in rows:
        for start in range(0, batch.num_rows, _CHUNK):
            for document in documents(batch.slice(start, _CHUNK), common):
                if len(of_job) >= _CHUNK and document["identity"] != of_job[-1]["identity"]:
                    yield of_job
                    of_job = []
                of_job.append(document)
    if of_job:
        yield of_job
