"""Repair of aliases from the record, or of the record from rows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from esjobs.core.errors import PublishedError
from esjobs.core.numbers import many
from esjobs.core.tables import Table
from esjobs.store.base import PART
from esjobs.store.elastic.layout import Names, is_monthly
from esjobs.store.elastic.results.aliases import NOTHING_SHOWN, Aliases, Shown, aliases_by_table, seen_of
from esjobs.store.elastic.results.differences import Difference, restore_text
from esjobs.store.elastic.results.markers import Marker, Markers
from esjobs.store.elastic.results.published import Published
from esjobs.store.elastic.results.records import Recorded
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.writing import refresh

_EARLY = datetime.min.replace(tzinfo=UTC)


class Repair:
    """Repair of all tables, for the holder of the publishing turn.

    The record wins where its rows exist. For other partitions the newest complete rows are shown, except for
    runs, whose tables must match. The rest is struck off if a step can recompute it; entered tables only with
    ``start_empty``.
    """

    def __init__(
        self,
        cluster: Cluster,
        names: Names,
        published: Published,
        markers: Markers,
        start_empty: Collection[str] = (),
    ) -> None:
        self._cluster = cluster
        self._names = names
        self._published = published
        self._markers = markers
        self._start_empty = start_empty
        self._lines: list[str] = []
        self._lost: list[str] = []

    def repair(self, tables: Mapping[str, Table], keep: Callable[[], None], *, dry_run: bool) -> list[str]:
        """Return a line per repair, done or planned.

        Raises :class:`PublishedError` afterwards for what a person must decide.
        """
        last = self._published.recover()
        shown = aliases_by_table(self._cluster, self._names, dict.fromkeys(tables.values()))
        recorded = self._published.records.every()
        found = self._published.survey(tables.values(), shown, recorded)
        # an index with the name of an alias: nothing of its table can be switched
        taken = {each.table.name for each in found if each.kind == "taken"}
        after: dict[str, Aliases] = {}
        gone: list[str] = []
        strangers: list[Difference] = []
        for each in found:
            if each.kind == "taken":
                self._lost.append(f"{each.what}: {each.to_do}")
            elif each.kind == "stranger" and self._is_replaceable(each, found):
                strangers.append(each)
            elif each.kind == "gone":
                lost = {*seen_of(recorded[each.index]).get(self._names.alias(each.table), {})}
                if self._is_struck(each.table, each.index, lost):
                    gone.append(each.index)
            elif each.kind == "alias" and each.table.name not in taken:
                wanted = self._wanted(each.table, each.index, shown[each.table.name], recorded)
                if wanted is not None:
                    after.setdefault(each.table.name, {})[each.index] = wanted
        if not dry_run:
            self._take_from(strangers)
            before = _of_indices(shown, after)
            recorded_now = _of_indices(dict.fromkeys(after, recorded), after)
            self._published.switch(last, before, recorded_now, after, keep)
            for index in gone:
                self._published.forget(index)
        if self._lost:
            raise PublishedError("; ".join([*self._lines, *self._lost]))
        return self._lines

    def _is_replaceable(self, stranger: Difference, found: Sequence[Difference]) -> bool:
        """True if our alias may be taken from a foreign index: it has no rows that are missing elsewhere."""
        missing = sorted(one.index for one in found if (one.table, one.kind) == (stranger.table, "gone"))
        if missing:
            self._lost.append(
                f"{stranger.what}, and {missing[0]} is missing: if it has these rows, give it the alias "
                f"{missing[0]}, otherwise take that alias from it (POST /_aliases); then run --repair again"
            )
            return False
        self._lines.append(f"{stranger.what}: taken from it")
        return True

    def _take_from(self, strangers: Collection[Difference]) -> None:
        actions = [{"remove": {"index": each.index, "alias": each.alias}} for each in strangers]
        if actions:
            self._cluster.call("POST", "/_aliases", {"actions": actions})

    def _wanted(
        self, table: Table, index: str, shown: Aliases, recorded: Recorded
    ) -> dict[str, Shown] | None:
        """Return the wanted aliases of an index; None if undecidable."""
        # rows count after a refresh only
        refresh(self._cluster, index)
        complete = self._markers.complete(index)
        alias = self._names.alias(table)
        if index not in recorded:
            newest = _numbers(_newest(complete))
            self._lines.append(
                f"index {index} shows the newest rows of {many(len(newest), 'partition')}, which had neither "
                "alias nor record"
            )
            return {alias: newest}
        seen = seen_of(recorded[index])
        published = seen.get(alias, {})
        present = {marker.number for marker in complete}
        missing = {partition for partition, number in published.items() if number not in present}
        older = self._older(table, shown.get(index, {}).get(alias, {}), complete, missing)
        missing -= older.keys()
        # nothing of an index is switched while a person has to decide about a part of it
        if missing and not self._is_struck(table, index, missing):
            return None
        if older:
            self._lines.append(_older_text(table, index, older))
        main = {p: n for p, n in published.items() if p not in missing} | _numbers(older)
        wanted = {
            name: {p: main[p] for p in of_alias if p in main} or NOTHING_SHOWN
            for name, of_alias in recorded[index].items()
        }
        again = many(len(main) - len(older), "partition")
        self._lines.append(f"aliases of index {index} show {again} again, as recorded")
        return wanted

    def _older(
        self, table: Table, shown: Shown, complete: Collection[Marker], missing: Collection[str]
    ) -> dict[str, Marker]:
        """Return substitutes for lost partitions: those shown, or the newest complete ones."""
        # tables of runs must match each other: older rows of one of them would not
        if not (table.entered or is_monthly(table)):
            return {}
        by_number = {marker.number: marker for marker in complete}
        newest = _newest(complete)
        found = {p: by_number.get(shown.get(p, ""), newest.get(p)) for p in missing}
        return {p: marker for p, marker in found.items() if marker is not None}

    def _is_struck(self, table: Table, index: str, missing: Collection[str]) -> bool:
        """True if partitions without rows may be struck off the record."""
        text = f"index {index} has no complete rows of {many(len(missing), 'partition')}"
        if table.entered and table.name not in self._start_empty:
            self._lost.append(f"{text}, which cannot be computed again: {restore_text(table)}")
            return False
        if table.entered:
            self._lines.append(f"{text}: {table.name} continues without them (--start-empty)")
        else:
            self._lines.append(
                f"{text}, {min(missing)} to {max(missing)}; compute them again ({table.made_by})"
            )
        return True


def _of_indices(
    aliases: Mapping[str, Mapping[str, dict[str, Shown]]], after: Mapping[str, Aliases]
) -> dict[str, Aliases]:
    """Return the aliases of the indices that change, empty where an index has none."""
    return {name: {i: aliases[name].get(i, {}) for i in indices} for name, indices in after.items()}


def _newest(complete: Collection[Marker]) -> dict[str, Marker]:
    """Return the newest generation of each partition, and what was added to it since."""
    newest: dict[str, Marker] = {}
    for marker in sorted(complete, key=lambda marker: (marker.begun or _EARLY, marker.number)):
        # a day that is made again has what was added to it before
        for part in [name for name in newest if name.startswith(f"{marker.partition}{PART}")]:
            del newest[part]
        newest[marker.partition] = marker
    return newest


def _numbers(markers: Mapping[str, Marker]) -> Shown:
    return {partition: marker.number for partition, marker in markers.items()}


def _older_text(table: Table, index: str, older: Mapping[str, Marker]) -> str:
    times = sorted(marker.begun.isoformat(" ", "minutes") for marker in older.values() if marker.begun)
    written = f", written {times[0]} to {times[-1]}" if times else ""
    again = "" if table.entered else f"; compute them again ({table.made_by})"
    which = f"{many(len(older), 'partition')}, {min(older)} to {max(older)}"
    return (
        f"index {index} shows other rows than the published ones of {which}: its newest complete "
        f"rows{written}{again}"
    )
