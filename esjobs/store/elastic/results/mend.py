"""Puts aliases right from the record of what is published, or the record where only rows are left."""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from esjobs.core.errors import PublishedError
from esjobs.core.tables import Table
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.results.aliases import NOTHING_SHOWN, Aliases, Shown, aliases_of, seen_of
from esjobs.store.elastic.results.markers import Marker, Markers
from esjobs.store.elastic.results.published import Published, partitions_text
from esjobs.store.elastic.results.records import Recorded
from esjobs.store.elastic.transport.cluster import Cluster, ask
from esjobs.store.elastic.transport.writing import refresh

_EARLY = datetime.min.replace(tzinfo=UTC)


class Mend:
    """One repair of all tables; for whoever has the turn.

    The record wins where its rows are there. Partitions without rows are struck off where a step can make
    them again; of tables that people enter nothing is struck off.
    """

    def __init__(self, cluster: Cluster, names: Names, published: Published, markers: Markers) -> None:
        self._cluster = cluster
        self._names = names
        self._published = published
        self._markers = markers
        self._lines: list[str] = []
        self._lost: list[str] = []

    def mend(self, tables: Mapping[str, Table], keep: Callable[[], None], *, dry_run: bool) -> list[str]:
        """What was done, or would be, a line each.

        Raises :class:`PublishedError`, when all else is put right, for rows that only a snapshot has.
        """
        last = self._published.recover()
        shown = {name: aliases_of(self._cluster, self._names, table) for name, table in tables.items()}
        recorded = self._published.records.every()
        found = self._published.survey(tables.values(), shown, recorded)
        after: dict[str, Aliases] = {}
        gone: list[str] = []
        for each in found:
            of_table = shown[each.table.name]
            if each.index in of_table:
                wanted = self._wanted(each.table, each.index, recorded)
                if wanted is not None:
                    after.setdefault(each.table.name, {})[each.index] = wanted
            elif moved := ask(self._cluster, f"/{each.index}/_alias"):
                self._lost.append(
                    f"index {each.index} is an alias of {min(moved)} now (reindexed?): clone that "
                    f"under the name {each.index}"
                )
            elif self._is_struck(each.table, each.index, self._lost_with(each.table, recorded[each.index])):
                gone.append(each.index)
        if not dry_run:
            before = {name: {i: shown[name][i] for i in indices} for name, indices in after.items()}
            known = {name: {i: recorded.get(i, {}) for i in indices} for name, indices in after.items()}
            self._published.switch(last, before, known, after, keep)
            for index in gone:
                self._published.forget(index)
        if self._lost:
            raise PublishedError("; ".join([*self._lines, *self._lost]))
        return self._lines

    def _wanted(self, table: Table, index: str, recorded: Recorded) -> dict[str, Shown] | None:
        """What the aliases of an index are to show; None where that cannot be said."""
        refresh(self._cluster, index)
        complete = self._markers.complete(index)
        alias = self._names.alias(table)
        if index not in recorded:
            newest = _newest(complete)
            self._lines.append(
                f"index {index} shows the newest rows of {partitions_text(len(newest))}, of which neither "
                "alias nor record was left"
            )
            return {alias: newest}
        seen = seen_of(recorded[index])
        present = {marker.number for marker in complete}
        missing = {p for p, number in seen.get(alias, {}).items() if number not in present}
        if missing and not self._is_struck(table, index, missing):
            return None
        wanted = {
            name: {p: number for p, number in of_alias.items() if p not in missing}
            for name, of_alias in recorded[index].items()
        }
        left = len(wanted.get(alias, {}))
        self._lines.append(f"aliases of index {index} show {partitions_text(left)} again, as the record says")
        return {name: of_alias or NOTHING_SHOWN for name, of_alias in wanted.items()}

    def _lost_with(self, table: Table, recorded: Mapping[str, Shown]) -> set[str]:
        """The partitions of an index that is gone."""
        return {*seen_of(recorded).get(self._names.alias(table), {})}

    def _is_struck(self, table: Table, index: str, missing: Collection[str]) -> bool:
        """True if partitions whose rows are lost may be struck off the record."""
        text = f"index {index} has no rows of {partitions_text(len(missing))} any more"
        if table.entered:
            self._lost.append(f"{text}, which nobody can compute: restore it from a snapshot")
            return False
        self._lines.append(f"{text}, {min(missing)} to {max(missing)}: make them again ({table.made_by})")
        return True


def _newest(complete: Collection[Marker]) -> Shown:
    """The newest generation of each partition."""
    in_order = sorted(complete, key=lambda marker: (marker.begun or _EARLY, marker.number))
    return {marker.partition: marker.number for marker in in_order}
