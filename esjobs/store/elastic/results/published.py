"""Visible state of tables by alias and record, and its switch.

A publication records its intent, switches aliases in one request, updates records, records completion.
Readers follow the aliases. The next holder of the turn completes an interrupted publication if the aliases
were switched, else cancels it.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from esjobs.core.errors import StoreError
from esjobs.core.numbers import many
from esjobs.core.tables import Table
from esjobs.store.checks import KnownTables
from esjobs.store.elastic.health import require_unblocked
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.renaming import Present
from esjobs.store.elastic.results.aliases import (
    UNREADABLE,
    Aliases,
    Location,
    Shown,
    aliases_by_table,
    aliases_of,
    is_alias,
    published_in,
    seen_of,
    switch,
)
from esjobs.store.elastic.results.differences import Difference, difference_error
from esjobs.store.elastic.results.markers import Markers
from esjobs.store.elastic.results.records import Publication, Recorded, Records, agree
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.retry import PassingError

_log = logging.getLogger(__name__)

# A reader may ask for the aliases before a publication and for the record after it
_ATTEMPTS, _PAUSE_S = 5, 0.05

Requested = Sequence[tuple[Table, Collection[str] | None]]
"""Tables, and the months of each that are asked for; None: all."""


class Published:
    """Visible state of the tables."""

    def __init__(
        self, cluster: Cluster, names: Names, records: Records, markers: Markers, tables: KnownTables
    ) -> None:
        self._cluster = cluster
        self._names = names
        self._tables = tables
        self.records = records
        self._markers = markers
        self._recorded: set[str] = set()
        self.adopted: set[str] = set()
        """Indices whose record was lost: nothing of them is collected while this object lives."""

    def aliases(self, table: Table, months: Collection[str] | None = None) -> Aliases:
        """Return the aliases of a table for a reader.

        Raises :class:`PublishedError` if the record differs, unless a publication is in progress.
        """
        for attempt in range(_ATTEMPTS):
            aliases = aliases_of(self._cluster, self._names, table, months)
            recorded = self.records.of(self._needed(table, months, aliases))
            found = self.differences(table, aliases, recorded)
            if not found:
                return aliases
            found = self.without_open(found, aliases)
            if not found:
                return aliases
            # a publication may have ended between the two reads
            time.sleep(_PAUSE_S * (attempt + 1))
        raise difference_error(found)

    def without_open(self, found: Sequence[Difference], aliases: Aliases) -> list[Difference]:
        """Return differences that no publication in progress explains."""
        after = self.records.publication().indices
        return [
            each
            for each in found
            if each.index not in after or not agree(aliases.get(each.index, {}), after[each.index])
        ]

    def settled(self, requested: Requested) -> tuple[dict[str, Aliases], dict[str, Aliases]]:
        """Return shown and recorded aliases by table, which agree; requires the turn.

        Missing records are taken from the aliases. Raises :class:`PublishedError` on differences.
        """
        shown = aliases_by_table(self._cluster, self._names, dict(requested))
        needed = {i for t, months in requested for i in self._needed(t, months, shown[t.name])}
        recorded = self.records.of(needed)
        found = [
            each for table, _ in requested for each in self.differences(table, shown[table.name], recorded)
        ]
        if found:
            raise difference_error(found)
        wanted = {
            name: {index: recorded.get(index, of_index) for index, of_index in aliases.items()}
            for name, aliases in shown.items()
        }
        self.adopt(shown.values(), recorded)
        return shown, wanted

    def adopt(self, shown: Iterable[Aliases], recorded: Recorded) -> None:
        """Record the aliases of unrecorded indices."""
        new = {i: of_index for aliases in shown for i, of_index in aliases.items() if i not in recorded}
        if new:
            # existing records stay: another process may just have written one
            self.records.create(new)
        adopted = {index for index, of_index in new.items() if seen_of(of_index)}
        if adopted:
            _log.warning(
                "the record of published %s is lost; it was restored from the aliases, and no garbage is "
                "collected this time",
                ", ".join(sorted(adopted)),
            )
        self.adopted |= adopted

    def ensure_index(self, table: Table, index: str, make: Callable[[], bool]) -> None:
        """Create an index and record it as empty before its first row.

        A recorded index that is gone is not recreated. ``make`` returns True if it created one.
        """
        # known to this object and still there: no look at aliases
        if index in self._recorded and not make():
            return
        months = [month] if (month := self._names.month(table, index)) else []
        aliases = self.aliases(table, months)
        make()
        indices: Aliases = {index: {}, self._names.rows(table): {}} | aliases
        self.adopt([indices], self.records.of(indices))
        self._recorded |= {*indices}

    def forget(self, index: str) -> None:
        """Forget a dropped index."""
        self._recorded.discard(index)
        self.records.remove(index)

    def differences(self, table: Table, aliases: Aliases, recorded: Recorded) -> list[Difference]:
        """Return the differences of a table."""
        ours = [index for index in recorded if self._names.is_rows(table, index)]
        found = (
            self._difference(table, index, aliases.get(index), recorded.get(index))
            for index in sorted({*aliases, *ours})
        )
        return [each for each in found if each is not None]

    def survey(
        self, tables: Iterable[Table], aliases: Mapping[str, Aliases], recorded: Recorded
    ) -> list[Difference]:
        """Return the differences of several tables. ``recorded``: all records."""
        present = Present.of(self._cluster, self._names)
        found: list[Difference] = []
        for table in tables:
            shown = aliases[table.name]
            requested = {
                i: each
                for i, each in recorded.items()
                if self._names.is_rows(table, i)
                and (i in shown or not seen_of(each).keys() <= present.indices.get(i, set()))
            }
            bare: Aliases = {i: {} for i in requested if i in present.indices and i not in shown}
            found += self._strange(table, present)
            found += self.differences(table, {**bare, **shown}, requested)
        return found

    def _strange(self, table: Table, present: Present) -> Iterator[Difference]:
        """Yield our aliases on foreign indices, and indices with their names."""
        for alias, indices in present.aliases.items():
            for index in indices if is_alias(self._names, table, alias) else ():
                if not self._names.is_rows(table, index):
                    what = f"alias {alias} is on index {index}, which does not belong to esjobs"
                    yield Difference(table, index, "stranger", what, alias)
        for index in present.indices:
            if is_alias(self._names, table, index):
                yield Difference(table, index, "taken", f"index {index} has the name of an alias of esjobs")

    def _difference(
        self, table: Table, index: str, shown: dict[str, Shown] | None, recorded: dict[str, Shown] | None
    ) -> Difference | None:
        if shown is None:
            return self._missing(table, index, seen_of(recorded or {}))
        what = self._what(index, shown, recorded)
        return Difference(table, index, "alias", what) if what else None

    def _missing(self, table: Table, index: str, seen: Mapping[str, Shown]) -> Difference | None:
        other = Present.of(self._cluster, self._names).renamed(index.__eq__).get(index) if seen else None
        if other is not None:
            what = f"index {index} is now an alias of index {other} (reindexed?)"
            return Difference(table, index, "moved", what)
        lost = many(len(seen.get(self._names.alias(table), {})), "partition")
        what = f"index {index} is missing, and {lost} of it were published"
        return Difference(table, index, "gone", what) if seen else None

    def _what(self, index: str, shown: dict[str, Shown], recorded: dict[str, Shown] | None) -> str:
        """Return a line about wrong aliases; empty if they are right."""
        for alias, of_alias in shown.items():
            if of_alias is UNREADABLE:
                return f"alias {alias} of index {index} was changed (filter, routing, writing)"
        if recorded is None:
            lost = 0 if seen_of(shown) else len(self._markers.complete(index))
            return f"index {index} has {many(lost, 'partition')} without alias and record" if lost else ""
        if agree(shown, recorded):
            return ""
        for alias, of_alias in seen_of(recorded).items():
            if alias not in shown:
                return (
                    f"alias {alias} of index {index} is missing; it shows {many(len(of_alias), 'partition')}"
                )
        return f"an alias of index {index} shows other rows than the published ones"

    def _needed(self, table: Table, months: Collection[str] | None, aliases: Aliases) -> list[str]:
        """Return the indices whose records are needed, missing ones included."""
        named = {self._names.rows(table), *(f"{self._names.alias(table)}-{month}" for month in months or ())}
        return sorted({*aliases, *named})

    def recover(self) -> Publication:
        """Complete or cancel an interrupted publication; requires the turn."""
        # the redo log: what was intended, and whether it was completed
        last = self.records.publication()
        if last.done:
            return last
        unknown = [name for name in last.after if name not in self._tables]
        if unknown:
            raise StoreError(
                f"a publication of '{unknown[0]}', a table of another version of esjobs, was interrupted; "
                "run any step of the version that wrote it"
            )
        shown = {name: self._now(self._tables[name], after) for name, after in last.after.items()}
        indices = {index: of_index for aliases in shown.values() for index, of_index in aliases.items()}
        recorded = self.records.of(last.indices)
        if not _all_agree(indices, last.indices):
            if all(agree(indices.get(index, {}), recorded.get(index, {})) for index in last.indices):
                # never switched: the state of before still holds
                return self.records.finish(last)
            _log.warning("another program changed aliases during publication; they were switched again")
            # without indices that have been dropped since
            restorable = {
                name: {index: of_index for index, of_index in after.items() if index in shown[name]}
                for name, after in last.after.items()
            }
            self._switch([action for name in shown for action in switch(shown[name], restorable[name])])
        return self._complete(last)

    def _now(self, table: Table, after: Aliases) -> Aliases:
        months = {self._names.month(table, index) for index in after} - {""}
        aliases = aliases_of(self._cluster, self._names, table, months)
        return {index: of_index for index, of_index in aliases.items() if index in after}

    def switch(
        self,
        last: Publication,
        shown: Mapping[str, Aliases],
        wanted: Mapping[str, Aliases],
        after: Mapping[str, Aliases],
        keep: Callable[[], None],
    ) -> None:
        """Switch aliases to the next state; ``wanted``: the recorded one."""
        actions = [action for name in after for action in switch(shown[name], after[name])]
        changed = {
            name: {i: of_index for i, of_index in aliases.items() if of_index != wanted[name].get(i)}
            for name, aliases in after.items()
        }
        if not actions and not any(changed.values()):
            return
        # half of a publication is not made: rows, state and aliases are all of these
        indices = {index for aliases in after.values() for index in aliases}
        require_unblocked(self._cluster, self._names, {*indices, self._names.state})
        over = self._hidden_by(wanted, after)
        begun = self.records.begin(last, {name: each for name, each in changed.items() if each}, over)
        try:
            self._switch(actions)
        except PassingError as error:
            if not error.passing:
                self._give_up(begun)
                raise
            # the answer may be lost and the switch made
            if not self._is_switched(after):
                raise
        except StoreError:
            self._give_up(begun)
            raise
        try:
            keep()
            self._complete(begun)
        except StoreError as error:
            # readers are switched over; the next publication completes the record
            _log.warning("results are published; their record will be completed later: %s", error)

    def _hidden_by(self, wanted: Mapping[str, Aliases], after: Mapping[str, Aliases]) -> list[Location]:
        over: list[Location] = []
        for name, aliases in after.items():
            seen = (published_in(each, self._names, self._tables[name]) for each in (wanted[name], aliases))
            gone, still = (set(published.values()) for published in seen)
            over += sorted((one for one in gone - still if one.index in aliases), key=lambda one: one.number)
        return over

    def _is_switched(self, after: Mapping[str, Aliases]) -> bool:
        return all(
            _all_agree(self._now(self._tables[name], aliases), aliases) for name, aliases in after.items()
        )

    def _give_up(self, begun: Publication) -> None:
        with contextlib.suppress(StoreError):
            self.records.finish(begun)

    def _switch(self, actions: Sequence[Mapping[str, object]]) -> None:
        if actions:
            self._cluster.call("POST", "/_aliases", {"actions": list(actions)})

    def _complete(self, begun: Publication) -> Publication:
        """Do all that follows the switch; idempotent."""
        self.records.write(begun.indices, begun.number)
        self._markers.end_of(begun.over)
        return self.records.finish(begun)


def _all_agree(shown: Aliases, wanted: Aliases) -> bool:
    return all(agree(shown.get(index, {}), each) for index, each in wanted.items())
