"""Deletes rows that no reader can see, where the record of what is published says so.

That an alias does not show a generation is no reason to delete it: somebody may have removed the alias. A
generation goes when a publication has taken it out of sight, which is written into its marker, or when the
record does not know it and whoever wrote it is gone. Of tables that people enter only the first counts. An
index of which aliases and record differ, or whose record was lost, is left as it is.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from esjobs.core.tables import Table
from esjobs.store.elastic.layout import Names, is_monthly
from esjobs.store.elastic.results.aliases import Aliases, Place, Shown, aliases_of, seen_of
from esjobs.store.elastic.results.differences import Difference, difference_error
from esjobs.store.elastic.results.markers import Marker, Markers, by_index, chunks
from esjobs.store.elastic.results.published import Published
from esjobs.store.elastic.results.records import Recorded
from esjobs.store.elastic.results.untidy import UntidyMonths
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.elastic.transport.writing import delete, refresh, write


class Sweep:
    """One sweep over tables.

    ``alone``: nobody else publishes meanwhile. ``is_left``: whether nobody will publish a generation.
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

    def sweep(self, tables: Collection[Table], untidy_months: UntidyMonths) -> int:
        """The number of rows that went.

        What another process has written and not published yet stays: as long as it lives where this machine
        can see that, and for a day where it cannot. Of a table with months only those are looked into in
        which something was written or taken out of sight since they were swept.

        Raises :class:`PublishedError`, when all else is swept, if aliases and record of an index differ.
        """
        untidy = untidy_months.now()
        swept = 0
        left: dict[str, set[str]] = {}
        months = {table.name: untidy.months(table) if is_monthly(table) else None for table in tables}
        aliases, recorded, differing = self._surveyed(tables, months)
        lacking = any(index not in recorded for of_table in aliases.values() for index in of_table)
        if differing or lacking or not self._published.records.publication().done:
            # somebody may just have published, or was killed while publishing
            with self._alone():
                self._published.recover()
                aliases, recorded, differing = self._surveyed(tables, months)
                apart = {each.index for each in differing}
                sound = [{i: each for i, each in a.items() if i not in apart} for a in aliases.values()]
                self._published.adopt(sound, recorded)
        apart = {each.index for each in differing} | self._published.adopted
        for table in tables:
            there = {i: of_index for i, of_index in aliases[table.name].items() if i not in apart}
            rows, writing = self._sweep(table, there, recorded)
            swept += rows
            if is_monthly(table):
                open_indices = writing | (aliases[table.name].keys() & apart)
                left[table.name] = {self._names.month(table, index) for index in open_indices} - {""}
        untidy_months.settle(untidy, left)
        if differing:
            raise difference_error(differing)
        return swept

    def _surveyed(
        self, tables: Collection[Table], months: Mapping[str, Collection[str] | None]
    ) -> tuple[dict[str, Aliases], Recorded, list[Difference]]:
        """What aliases show, by table; all records; and where the two differ."""
        aliases = {t.name: aliases_of(self._cluster, self._names, t, months[t.name]) for t in tables}
        recorded = self._published.records.every()
        return aliases, recorded, self._published.survey(tables, aliases, recorded)

    def _sweep(self, table: Table, aliases: Aliases, recorded: Recorded) -> tuple[int, set[str]]:
        """The number of rows that went, and the indices in which something may still be published."""
        if not aliases:
            return 0, set()
        indices = self._names.target(table, aliases)
        refresh(self._cluster, indices)
        seen = _numbers(recorded.get(index, {}) for index in aliases)
        # a target that is a pattern has others, too
        unseen = [one for one in self._markers.unseen(indices, seen) if one.index in aliases]
        over = [marker.place for marker in unseen if marker.over]
        left = [marker.place for marker in unseen if not marker.over and self._is_garbage(table, marker)]
        if left:
            # nobody publishes meanwhile, and afterwards nobody can
            with self._alone():
                self._published.recover()
                still = _numbers(self._published.records.of({place.index for place in left}).values())
                left = [place for place in left if place.number not in still]
                self._markers.end_of(left)
        writing = {marker.index for marker in unseen} - {place.index for place in (*over, *left)}
        empty = [index for index in self._empty(table, aliases) if index not in writing]
        dropped = self._dropped(table, empty) if empty else {}
        gone = [place for place in (*over, *left) if place.index not in dropped]
        swept = {place.number for place in (*over, *left)}
        unsettled = {marker.index for marker in unseen if marker.number not in swept}
        return sum(dropped.values()) + remove(self._cluster, gone), unsettled

    def _is_garbage(self, table: Table, marker: Marker) -> bool:
        """True if a generation without a record may go: of what people enter only an incomplete one."""
        return self._is_left(marker) and not (table.entered and marker.partition)

    def _empty(self, table: Table, aliases: Aliases) -> list[str]:
        """The indices of months of which readers see nothing; that of no month keeps the aliases."""
        first = self._names.rows(table)
        return [index for index, of_index in aliases.items() if index != first and not seen_of(of_index)]

    def _dropped(self, table: Table, indices: Sequence[str]) -> dict[str, int]:
        """Drop indices of months of which nothing is seen and will be; the rows that each of them had."""
        dropped = {}
        with self._alone():
            self._published.recover()
            months = {self._names.month(table, index) for index in indices}
            there = aliases_of(self._cluster, self._names, table, months)
            recorded = self._published.records.of(indices)
            differing = {each.index for each in self._published.differences(table, there, recorded)}
            empty = {*self._empty(table, there)} & {*recorded} - differing
            for index in indices:
                if index not in empty or seen_of(recorded[index]):
                    continue
                refresh(self._cluster, index)
                unseen = self._markers.unseen(index, ())
                if all(marker.over or self._is_garbage(table, marker) for marker in unseen):
                    dropped[index] = self._n_rows(index)
                    self._cluster.call("DELETE", f"/{index}")
                    self._published.forget(index)
        return dropped

    def _n_rows(self, index: str) -> int:
        with PointInTime(self._cluster, index) as at:
            body = {"size": 0, "query": {"exists": {"field": "partition"}}, "track_total_hits": True}
            answer = at.search(body)
        return int(answer["hits"]["total"]["value"]) if answer else 0


def remove(cluster: Cluster, places: Sequence[Place]) -> int:
    """Delete the rows of generations, after them the documents about these; the number of rows."""
    deleted = 0
    for index, numbers in by_index(places):
        for some in chunks(numbers):
            refresh(cluster, index)
            chosen = [{"terms": {"generation": some}}, {"exists": {"field": "partition"}}]
            with PointInTime(cluster, index) as at:
                for hits in at.pages({"bool": {"filter": chosen}}, False):
                    write(cluster, (delete(index, hit["_id"]) for hit in hits))
                    deleted += len(hits)
            write(cluster, (delete(index, number) for number in some))
            if deleted:
                refresh(cluster, index)
    return deleted


def _numbers(shown: Iterable[Mapping[str, Shown]]) -> set[str]:
    """The generations that the aliases of some indices show."""
    return {number for of_index in shown for of_alias in of_index.values() for number in of_alias.values()}
