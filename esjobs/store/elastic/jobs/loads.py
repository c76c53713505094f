"""Jobs in the cluster: loads, duplicates, undoing; atomic without transactions.

A version of a job is a document, visible from commit ``from`` to before ``until``; ``born`` is the commit
that created it (default ``from``). A load writes the next commit, invisible until one document switches the
number. The next writer clears the remains of an interrupted one. `versions` decides which version is visible.
"""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.errors import StoreError
from esjobs.core.window import Window
from esjobs.store.base import PutCounts, Rewrite, Span, Undone
from esjobs.store.batches import blocks
from esjobs.store.checks import SUPERSEDED, not_undoable
from esjobs.store.elastic.asking.days import fingerprints, fingerprints_by_load, within
from esjobs.store.elastic.asking.server_time import server_time
from esjobs.store.elastic.jobs.months import Brought, JobMonths
from esjobs.store.elastic.jobs.orphans import KEPT_PLACE, orphans, removal, restored
from esjobs.store.elastic.jobs.pruning import Covered, hidden_jobs
from esjobs.store.elastic.jobs.rewriting import changes, containing
from esjobs.store.elastic.jobs.stamps import stamped
from esjobs.store.elastic.jobs.stored import CHUNK, rows_by_job, stored_versions, versions_of_load
from esjobs.store.elastic.jobs.versions import MERGED, Contest, Document, Version, settled
from esjobs.store.elastic.layout import USUAL, IndexSettings, Names
from esjobs.store.elastic.results.lines import PIECE_BYTES, PIECE_ROWS, create_lines
from esjobs.store.elastic.state import Commit, State
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import Action, parts, refresh, sent, update, write
from esjobs.store.lease import Lease


class Jobs:
    """Documents of the jobs indices."""

    def __init__(self, cluster: Cluster, names: Names, state: State, how: IndexSettings = USUAL) -> None:
        self._cluster = cluster
        self._months = JobMonths(cluster, names, how)
        self._state = state
        self._lease = Lease(state, cluster.location, request_s=cluster.longest_s())
        self._writing = False

    @property
    def index(self) -> str:
        """Indices of the jobs, with commas between."""
        return self._months.target()

    def index_of(self, window: Window | None) -> str:
        """Return the indices that may have jobs of a window."""
        return self._months.target(window)

    def visible(self) -> dict[str, Any]:
        """Return the query of the visible jobs."""
        number = self._state.commit().number
        # a version without "until" lasts; while the next commit is written, so does one that ends with it
        late = {"range": {"until": {"lte": number}}}
        return {"bool": {"filter": [{"range": {"from": {"lte": number}}}], "must_not": [late]}}

    def put(self, batches: Iterable[pa.RecordBatch], load_id: str) -> PutCounts:
        """Write the rows of a load as the next commit, settle visible versions, commit.

        A new job costs one bulk item: its id is its identity, so the cluster reports duplicates. Other months
        are asked once per 4096 rows. Memory: two requests, 8 bytes per row, and the rows of jobs with several
        versions.
        """
        old = self._begin()
        try:
            counts, new = self._put(old, batches, load_id)
            refresh(self._cluster, self.index)
            # the switch is the point of no return: nobody may have taken over meanwhile
            self._lease.keep()
            self._state.advance(old, new)
        except BaseException:
            self._take_back()
            raise
        finally:
            self._end()
        return counts

    def _put(self, old: Commit, batches: Iterable[pa.RecordBatch], load_id: str) -> tuple[PutCounts, Commit]:
        # a load that is put again keeps its number
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
                    duplicates = pa.array(brought.elsewhere(some, index))
                    # only months that had documents before the load can have older versions
                    if any(other != index for other in filled):
                        duplicates = pc.or_(
                            duplicates, pc.is_in(some["identity"], self._months.elsewhere(some, index))
                        )
                    if pc.any(duplicates).as_py():
                        again.append(some.filter(duplicates))
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
        found: Counter[int] = Counter()
        counts = self._settle(again, common, rows, set(old.loads.values()), found)
        # rows that repeat others of the same load are no find
        del found[load]
        new = replace(
            old,
            number=number,
            loads={**old.loads, load_id: load},
            next_load=max(old.next_load, load + 1),
            unchanged=_with_found(old.unchanged, load, found),
        )
        return counts, new

    def _settle(
        self,
        again: Sequence[pa.RecordBatch],
        common: Mapping[str, int],
        rows: int,
        loads: Set[int],
        found: Counter[int],
    ) -> PutCounts:
        """Settle jobs with several versions, and write the remaining ones.

        ``found``: receives unchanged rows by the loads that supply the visible values.
        """
        if not again:
            return PutCounts(rows, 0, SUPERSEDED.empty_table())
        refresh(self._cluster, self.index)
        number = common["born"]
        superseded: list[tuple[int, Document]] = []
        updated = unchanged = jobs_changed = 0
        changed: Counter[str] = Counter()
        kept: Counter[str] = Counter()

        def actions() -> Iterator[Action]:
            nonlocal updated, unchanged, jobs_changed
            with PointInTime(self._cluster, self.index) as at:
                for documents_of_jobs in rows_by_job(again, common):
                    contests = list(self._contests(at, documents_of_jobs, number, loads))
                    for contest in contests:
                        lost = len(contest.loaded) - len(contest.incoming)
                        superseded.extend((v.row, v.document) for v in contest.loaded[-lost:] if lost)
                        if contest.incoming:
                            updated += len(contest.incoming) - (not contest.is_known)
                            kept.update(contest.kept())
                            if contest.unchanged:
                                unchanged += len(contest.incoming)
                                found.update(dict.fromkeys(contest.sources(), len(contest.incoming)))
                                continue
                            differing = contest.changed()
                            jobs_changed += bool(differing)
                            changed.update(differing)
                    yield from settled(contests, number)

        write(self._cluster, actions(), before=self._lease.keep)
        superseded.sort(key=lambda item: item[0])
        table = pa.Table.from_pylist(
            [{name: row.get(name) for name in SUPERSEDED.names} for _, row in superseded], schema=SUPERSEDED
        )
        stored = rows - len(superseded) - updated
        return PutCounts(stored, updated, table, jobs_changed, dict(changed), dict(kept), unchanged)

    def _contests(
        self, at: PointInTime, rows: Sequence[Document], number: int, loads: Set[int]
    ) -> Iterator[Contest]:
        versions: dict[str, dict[tuple[int, int], Version]] = {row["identity"]: {} for row in rows}
        merged: dict[str, Version] = {}
        for version in stored_versions(at, list(versions), number, loads):
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

    def undo(self, load_id: str) -> Undone:
        """Hide the versions of a load, show the best remaining ones, commit, delete."""
        old = self._state.commit()
        if load_id not in old.loads:
            return Undone()
        old = self._begin()
        try:
            if load_id not in old.loads:
                return Undone()
            load, number = old.loads[load_id], old.number + 1
            if load in old.pruned:
                raise not_undoable(load_id)
            # read before anything changes: the list also serves the deletion after the commit
            gone = list(versions_of_load(self._cluster, self.index, load, number))
            others = set(old.loads.values()) - {load}
            left: set[str] = set()

            def actions() -> Iterator[Action]:
                yield from (update(v.where, v.name, {"until": number}) for v in gone if v.visible)
                names = sorted({version.identity for version in gone})
                with PointInTime(self._cluster, self.index) as at:
                    for start in range(0, len(names), CHUNK):
                        some = names[start : start + CHUNK]
                        contests, unfounded = self._remaining(at, some, number, others, load)
                        left.update(contest.versions[0].identity for contest in contests)
                        yield from settled(contests, number)
                        yield from (update(v.where, v.name, {"until": number}) for v in unfounded)

            write(self._cluster, actions())
            refresh(self._cluster, self.index)
            loads = {name: each for name, each in old.loads.items() if name != load_id}
            found = {
                name: old.unchanged[each][load]
                for name, each in loads.items()
                if load in old.unchanged.get(each, {})
            }
            unchanged = _with_found(old.unchanged, load, {})
            self._state.advance(old, replace(old, number=number, loads=loads, unchanged=unchanged))
        except BaseException:
            self._take_back()
            raise
        finally:
            self._end()
        # what cannot be deleted now nobody sees, and the next write clears it away
        with contextlib.suppress(StoreError):
            write(self._cluster, (removal(v.where, v.name, v.identity, left) for v in gone))
        return Undone(len({version.identity for version in gone}), found)

    def prune(self, load_ids: Collection[str], *, dry_run: bool) -> int:
        """Delete covered versions and mark the loads that replaced them.

        Readers see no difference, so the commit number stays.
        """
        # first without the lease: mostly there is nothing to prune
        n_covered = self._covered(self._state.commit(), load_ids).versions
        if dry_run or not n_covered:
            return n_covered
        old = self._begin()
        try:
            covered = self._covered(old, load_ids)
            if covered.versions:
                # before anything is deleted: afterwards these loads cannot be undone exactly
                self._state.advance(old, replace(old, pruned=old.pruned | covered.loads))
                write(self._cluster, covered.actions, before=self._lease.keep)
                refresh(self._cluster, self.index)
        finally:
            self._end()
        return covered.versions

    def _covered(self, old: Commit, load_ids: Collection[str]) -> Covered:
        loads = set(old.loads.values())
        chosen = {old.loads[name] for name in load_ids if name in old.loads}
        found = Covered()
        with PointInTime(self._cluster, self.index) as at:
            names = hidden_jobs(at, chosen)
            for start in range(0, len(names), CHUNK):
                some = names[start : start + CHUNK]
                found.add(stored_versions(at, some, old.number + 1, loads), chosen)
        return found

    def rewrite(self, text: str, rewrite: Rewrite) -> int:
        """Rewrite every version that contains a text; return the number changed. Visible at once."""
        changed = 0
        self._begin()
        try:
            with PointInTime(self._cluster, self.index) as at:
                for hits in at.pages(containing(text)):
                    for written, gone in changes(hits, rewrite):
                        # new ids before old ones go: a killed process leaves a version twice, never not
                        # at all
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
        versions: dict[str, list[Version]] = {}
        merged: dict[str, Version] = {}
        for version in stored_versions(at, names, number, loads, gone):
            if version.load == MERGED:
                merged[version.identity] = version
            else:
                versions.setdefault(version.identity, []).append(version)
        contests = [Contest(of_job, merged.pop(identity, None)) for identity, of_job in versions.items()]
        return contests, list(merged.values())

    def _begin(self) -> Commit:
        """Clear the remains of an earlier process and start to write."""
        if self._writing:
            raise StoreError(
                "a write is already in progress in this session; close it before starting another"
            )
        self._writing = True
        try:
            # before the fence: only the holder may refuse requests of others
            self._lease.take()
            self._months.prepare()
            # requests of a former writer that are still under way fail from here on
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
        # without the lease another process writes, and what it wrote is not ours to clear
        if self._lease.is_held:
            with contextlib.suppress(StoreError):
                self._clear(self._state.fence())

    def _clear(self, commit: Commit) -> None:
        refresh(self._cluster, self.index)
        loads = {*commit.loads.values(), KEPT_PLACE}
        changed = False
        with PointInTime(self._cluster, self.index) as at:
            for hits in at.pages(
                orphans(commit.number, loads), ["identity", "load", "born", "from", "until"]
            ):
                write(self._cluster, [restored(hit, commit.number, loads) for hit in hits])
                changed = True
        if changed:
            # the alias shows to others what is visible
            refresh(self._cluster, self.index)

    def forgotten(self, days: Collection[date]) -> set[date]:
        """Return those of some days whose monthly index is gone."""
        return self._months.dropped(days)

    def span(self) -> Span:
        """Count the visible jobs and find earliest and latest end time."""
        body = {"size": 1, "query": self.visible(), "_source": ["end_time"]}
        with PointInTime(self._cluster, self.index) as at:
            # aggregations know milliseconds only: the ends are read from the documents
            first, last = (
                at.search({**body, "sort": [{"end_time": order}], "track_total_hits": order == "asc"})
                for order in ("asc", "desc")
            )
        jobs = int(first["hits"]["total"]["value"]) if first else 0
        if not jobs:
            return Span(0, None, None)
        ends = (answer["hits"]["hits"][0]["_source"]["end_time"] for answer in (first, last))
        return Span(jobs, *map(datetime.fromisoformat, ends))

    def server_time(self) -> datetime | None:
        return server_time(self._cluster, self.index, "end_time")

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Return jobs per day with sums of their marks; see :class:`JobStore`."""
        clauses = [self.visible(), *within("end_time", window)]
        with PointInTime(self._cluster, self.index_of(window)) as at:
            return fingerprints(at, "end_time", clauses, "mark_low")

    def load_fingerprints(self, window: Window) -> pa.Table:
        """Return jobs per day and commit with sums of the marks up to it."""
        clauses = [self.visible(), *within("end_time", window)]
        with PointInTime(self._cluster, self.index_of(window)) as at:
            return fingerprints_by_load(at, "end_time", clauses, "mark_low", "from")


def _with_found(
    unchanged: Mapping[int, Mapping[int, int]], load: int, found: Mapping[int, int]
) -> dict[int, Mapping[int, int]]:
    """Return unchanged counts with those of a load replaced, and those found in it removed."""
    others = {
        each: {other: rows for other, rows in of.items() if other != load}
        for each, of in unchanged.items()
        if each != load
    }
    return {each: of for each, of in {**others, load: found}.items() if of}
