"""Deletion of rows that no reader can see, according to the record.

A missing alias is no reason to delete. A generation goes if a publication retired it, or if it is unrecorded
and its writer is gone (not for entered tables). Indices with differences or a lost record are left alone.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from esjobs.core.tables import Table
from esjobs.store.elastic.layout import Names, groups, is_monthly, listed
from esjobs.store.elastic.results.aliases import (
    Aliases,
    Location,
    Shown,
    aliases_by_table,
    aliases_of,
    seen_of,
)
from esjobs.store.elastic.results.differences import Difference, difference_error
from esjobs.store.elastic.results.garbage import GarbageMonths
from esjobs.store.elastic.results.markers import Marker, Markers, chunks
from esjobs.store.elastic.results.pieces import PIECE, is_piece
from esjobs.store.elastic.results.published import Published
from esjobs.store.elastic.results.records import Recorded
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import delete, refresh, write


class Sweep:
    """Sweep over tables.

    ``alone``: context that excludes publishers. ``is_left``: True if nobody will publish a generation.
    """

    def __init__(
        self,
        cluster: Cluster,
        names: Names,
        published: Published,
        markers: Markers,
        alone: Callable[[], AbstractContextManager[None]],
        is_left: Callable[[Marker], bool],
    ) -> None:
        self._cluster = cluster
        self._names = names
        self._published = published
        self._markers = markers
        self._alone = alone
        self._is_left = is_left

    def sweep(self, tables: Collection[Table], garbage_months: GarbageMonths) -> int:
        """Delete garbage; return the number of rows.

        Pending rows of live processes stay (for a day if they run elsewhere). Only mentioned months are
        examined. Raises :class:`PublishedError` afterwards if aliases and record differ.
        """
        listed = garbage_months.now()
        deleted = 0
        left: dict[str, set[str]] = {}
        months = {table.name: listed.months(table) if is_monthly(table) else None for table in tables}
        # deletion follows the record; where alias and record differ nothing is deleted
        aliases, recorded, differing = self._settled(tables, months)
        apart = {each.index for each in differing} | self._published.adopted
        present = _without(aliases, apart)
        unseen = self._unseen([index for of_table in present.values() for index in of_table], recorded)
        for table in tables:
            rows, writing = self._sweep(table, present[table.name], unseen)
            deleted += rows
            if is_monthly(table):
                open_indices = writing | (aliases[table.name].keys() & apart)
                left[table.name] = {self._names.month(table, index) for index in open_indices} - {""}
        garbage_months.settle(listed, left)
        if differing:
            raise difference_error(differing)
        return deleted

    def _settled(
        self, tables: Collection[Table], months: Mapping[str, Collection[str] | None]
    ) -> tuple[dict[str, Aliases], Recorded, list[Difference]]:
        """Survey, after an interrupted publication was completed and lost records were adopted."""
        aliases, recorded, differing = self._surveyed(tables, months)
        lacking = any(index not in recorded for of_table in aliases.values() for index in of_table)
        if not differing and not lacking and self._published.records.publication().done:
            return aliases, recorded, differing
        # somebody may just have published, or was killed while publishing
        with self._alone():
            self._published.recover()
            aliases, recorded, differing = self._surveyed(tables, months)
            apart = {each.index for each in differing}
            sound = [{i: each for i, each in a.items() if i not in apart} for a in aliases.values()]
            self._published.adopt(sound, recorded)
        return aliases, recorded, differing

    def _surveyed(
        self, tables: Collection[Table], months: Mapping[str, Collection[str] | None]
    ) -> tuple[dict[str, Aliases], Recorded, list[Difference]]:
        requested = {table: months[table.name] for table in tables}
        aliases = aliases_by_table(self._cluster, self._names, requested)
        recorded = self._published.records.every()
        return aliases, recorded, self._published.survey(tables, aliases, recorded)

    def _unseen(self, indices: Iterable[str], recorded: Recorded) -> dict[str, list[Marker]]:
        """Return the generations that no reader sees, by index; of many tables in one request."""
        found: dict[str, list[Marker]] = {}
        for some in groups(indices):
            self._refresh(some)
            for marker in self._markers.unseen(listed(some), _numbers(recorded.get(i, {}) for i in some)):
                found.setdefault(marker.index, []).append(marker)
        return found

    def _refresh(self, indices: Sequence[str]) -> None:
        try:
            refresh(self._cluster, listed(indices))
        except RefusedError:
            # one by one: the error then names the index at fault
            for index in indices:
                refresh(self._cluster, index)

    def _sweep(
        self, table: Table, aliases: Aliases, unseen_by_index: Mapping[str, Sequence[Marker]]
    ) -> tuple[int, set[str]]:
        """Return the number of deleted rows, and indices with pending generations."""
        unseen = [marker for index in aliases for marker in unseen_by_index.get(index, ())]
        garbage = self._garbage(table, unseen)
        writing = {marker.index for marker in unseen} - {location.index for location in garbage}
        empty = [index for index in self._empty(table, aliases) if index not in writing]
        dropped = self._dropped(table, empty) if empty else {}
        gone = [location for location in garbage if location.index not in dropped]
        deleted = {location.number for location in garbage}
        unsettled = {marker.index for marker in unseen if marker.number not in deleted}
        return sum(dropped.values()) + remove(self._cluster, gone), unsettled

    def _garbage(self, table: Table, unseen: Sequence[Marker]) -> list[Location]:
        over = [marker.location for marker in unseen if marker.over]
        left = [marker for marker in unseen if not marker.over and self._is_garbage(table, marker)]
        return over + self._ended([marker.location for marker in left])

    def _ended(self, left: Sequence[Location]) -> list[Location]:
        """Return the generations whose writers are gone, now marked as over."""
        if not left:
            return []
        # nobody publishes meanwhile, and afterwards nobody can
        with self._alone():
            self._published.recover()
            published = _numbers(self._published.records.of({location.index for location in left}).values())
            ended = [location for location in left if location.number not in published]
            self._markers.end_of(ended)
        return ended

    def _is_garbage(self, table: Table, marker: Marker) -> bool:
        """True if an unrecorded generation may go; of entered tables only incomplete ones."""
        return self._is_left(marker) and not (table.entered and marker.partition)

    def _empty(self, table: Table, aliases: Aliases) -> list[str]:
        first = self._names.rows(table)
        return [index for index, of_index in aliases.items() if index != first and not seen_of(of_index)]

    def _dropped(self, table: Table, indices: Sequence[str]) -> dict[str, int]:
        dropped = {}
        with self._alone():
            self._published.recover()
            months = {self._names.month(table, index) for index in indices}
            present = aliases_of(self._cluster, self._names, table, months)
            recorded = self._published.records.of(indices)
            differing = {each.index for each in self._published.differences(table, present, recorded)}
            empty = {*self._empty(table, present)} & {*recorded} - differing
            for index in indices:
                if index not in empty or seen_of(recorded[index]):
                    continue
                refresh(self._cluster, index)
                unseen = self._markers.unseen(index, ())
                if all(marker.over or self._is_garbage(table, marker) for marker in unseen):
                    # counted before the index is gone
                    dropped[index] = self._n_rows(index)
                    self._cluster.call("DELETE", f"/{index}")
                    self._published.forget(index)
        return dropped

    def _n_rows(self, index: str) -> int:
        with PointInTime(self._cluster, index) as at:
            body = {"size": 0, "query": {"exists": {"field": "partition"}}, "track_total_hits": True}
            answer = at.search(body)
        return int(answer["hits"]["total"]["value"]) if answer else 0


def remove(cluster: Cluster, places: Sequence[Location]) -> int:
    """Delete the rows of generations, then their markers; return the number of rows."""
    deleted = 0
    by_index: dict[str, list[str]] = {}
    for location in places:
        by_index.setdefault(location.index, []).append(location.number)
    for index, numbers in by_index.items():
        for some in chunks(numbers):
            refresh(cluster, index)
            chosen = [{"terms": {"generation": some}}]
            either = {"should": [{"exists": {"field": "partition"}}, PIECE], "minimum_should_match": 1}
            with PointInTime(cluster, index) as at:
                for hits in at.pages({"bool": {"filter": chosen, **either}}, False):
                    write(cluster, (delete(index, hit["_id"]) for hit in hits))
                    deleted += sum(not is_piece(hit["_id"]) for hit in hits)
            # markers last: rows without one are found by no later sweep
            write(cluster, (delete(index, number) for number in some))
            if deleted:
                refresh(cluster, index)
    return deleted


def _without(aliases: Mapping[str, Aliases], apart: Collection[str]) -> dict[str, Aliases]:
    return {
        name: {index: of_index for index, of_index in of_table.items() if index not in apart}
        for name, of_table in aliases.items()
    }


def _numbers(shown: Iterable[Mapping[str, Shown]]) -> set[str]:
    return {number for of_index in shown for of_alias in of_index.values() for number in of_alias.values()}
