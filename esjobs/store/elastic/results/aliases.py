"""Visible generations as filters of aliases; `records` holds the second copy.

The alias of a table lists per index the published generation of every partition; a latest alias names one
partition.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from esjobs.core.tables import Table
from esjobs.store.base import PART, Change, Generation, Hide, PointLatest
from esjobs.store.checks import LENGTH
from esjobs.store.elastic.layout import Names, groups, is_monthly, listed
from esjobs.store.elastic.transport.cluster import Cluster, ask

# Placeholder in filters of aliases for a missing generation or partition
_NOTHING = "none"

_ROUTING = ("index_routing", "search_routing")

Shown = dict[str, str]
"""Partition to generation, as a filter lists them."""

NOTHING_SHOWN: Shown = {_NOTHING: _NOTHING}
"""No partition, as a filter lists it."""

UNREADABLE: Shown = {"unreadable": "unreadable"}
"""Stands for an alias that is not as esjobs made it: another filter or none, routing, a right to write."""

Aliases = dict[str, dict[str, Shown]]
"""By index of a table, what each of its aliases shows."""


@dataclass(frozen=True)
class Location:
    """Index and generation of the visible rows of a partition."""

    index: str
    number: str


Partitions = dict[str, Location]
"""The partitions that readers of a table see."""


def aliases_of(
    cluster: Cluster, names: Names, table: Table, months: Collection[str] | None = None
) -> Aliases:
    """Return the content of our aliases by index.

    ``months``: only these, and the undated index; reading two years of filters for a day is too slow. Altered
    aliases are :data:`UNREADABLE`.
    """
    return aliases_by_table(cluster, names, {table: months})[table.name]


def aliases_by_table(
    cluster: Cluster, names: Names, requested: Mapping[Table, Collection[str] | None]
) -> dict[str, Aliases]:
    """Return what :func:`aliases_of` does for several tables with their months, in few requests."""
    # an index that is missing is an error beside others that are there, a pattern is none
    patterns = (
        pattern.removesuffix("*") + "*"
        for table, months in requested.items()
        for pattern in names.patterns(table, months)
    )
    answer: dict[str, Any] = {}
    for some in groups(patterns):
        answer |= ask(cluster, f"/{listed(some)}/_alias") or {}
    return {table.name: _ours(names, table, answer) for table in requested}


def _ours(names: Names, table: Table, answer: Mapping[str, Any]) -> Aliases:
    return {
        index: {
            alias: _read(facts)
            for alias, facts in of_index["aliases"].items()
            # aliases of other programs are none of our business
            if is_alias(names, table, alias)
        }
        for index, of_index in sorted(answer.items())
        if names.is_rows(table, index)
    }


def published_in(aliases: Aliases, names: Names, table: Table) -> Partitions:
    """Return the visible partitions."""
    return {
        partition: Location(index, number)
        for index, of_index in aliases.items()
        for partition, number in _listed_in(of_index, names.alias(table)).items()
    }


def seen_of(of_index: Mapping[str, Shown]) -> dict[str, Shown]:
    """Return aliases that show something."""
    listed_in = {alias: _listed_in(of_index, alias) for alias in of_index}
    return {alias: shown for alias, shown in listed_in.items() if shown}


def _listed_in(of_index: Mapping[str, Shown], alias: str) -> Shown:
    return {partition: number for partition, number in of_index.get(alias, {}).items() if number != _NOTHING}


def aliases_after(before: Aliases, names: Names, table: Table, changes: Iterable[Change]) -> Aliases:
    """Return the aliases of a table after a publication; others are removed."""
    alias = names.alias(table)
    ours = [change for change in changes if change.table == table]
    shown = {index: _listed_in(of_index, alias) for index, of_index in before.items()}
    for change in ours:
        if not isinstance(change, PointLatest) and is_monthly(table):
            _drop_parts(shown.get(names.rows(table, change.partition), {}), change.partition)
        if isinstance(change, Generation):
            shown[names.rows(table, change.partition)][change.partition] = change.number
        elif isinstance(change, Hide):
            shown.get(names.rows(table, change.partition), {}).pop(change.partition, None)
    first = names.rows(table)
    after: Aliases = {
        # an index that another process is just filling is not ours to show
        index: {alias: seen or NOTHING_SHOWN} if seen or index == first or before[index] else {}
        for index, seen in shown.items()
    }
    if first in after:
        points = [change for change in ours if isinstance(change, PointLatest)]
        latest = _latest_after(before[first], names, table, points)
        after[first] |= {name: {one: shown[first].get(one, _NOTHING)} for name, one in latest.items()}
    return after


def _drop_parts(seen: Shown, day: str) -> None:
    for partition in [each for each in seen if each.startswith(f"{day}{PART}")]:
        del seen[partition]


def _latest_after(
    of_first: Mapping[str, Shown], names: Names, table: Table, points: Iterable[PointLatest]
) -> dict[str, str]:
    """Return the partition that each latest alias shows after a publication."""
    latest = {name: next(iter(seen)) for name, seen in of_first.items() if name != names.alias(table)}
    if table.has_latest:
        latest.setdefault(names.latest(table), _NOTHING)
    for change in points:
        name = names.latest(table, change.length)
        if change.partition is not None:
            latest[name] = change.partition
        elif change.length:
            latest.pop(name, None)
        else:
            # dashboards ask the alias of the latest run: it stays, and shows nothing
            latest[name] = _NOTHING
    return latest


def switch(before: Aliases, after: Aliases) -> list[dict[str, dict[str, Any]]]:
    """Return the actions between two states of aliases."""
    added = [
        {"add": {"index": index, "alias": alias, "is_write_index": False, "filter": filter_of(shown)}}
        for index, of_index in after.items()
        for alias, shown in of_index.items()
        if before[index].get(alias) != shown
    ]
    return added + [
        {"remove": {"index": index, "alias": alias}}
        for index, of_index in before.items()
        for alias in of_index
        if alias not in after[index]
    ]


def filter_of(shown: Shown) -> dict[str, Any]:
    """Return the filter of some generations; markers have no partition and never match."""
    of_partitions = shown or NOTHING_SHOWN
    generations = {"terms": {"generation": list(of_partitions.values())}}
    # a generation is of one partition, so the second clause excludes no row; it makes the filter readable
    # again
    return {"bool": {"filter": [generations, {"terms": {"partition": list(of_partitions)}}]}}


def missing_aliases(cluster: Cluster, names: Names, table: Table) -> list[str]:
    """Return the missing aliases of a table."""
    needed = [names.alias(table), *([names.latest(table)] if table.has_latest else ())]
    found = aliases_of(cluster, names, table).get(names.rows(table), {})
    return [alias for alias in needed if alias not in found]


def _read(facts: Mapping[str, Any]) -> Shown:
    """Parse the filter of an alias; writing aliases and routing are unreadable."""
    if facts.get("is_write_index") or not facts.keys().isdisjoint(_ROUTING):
        return UNREADABLE
    try:
        numbers, partitions = facts["filter"]["bool"]["filter"]
        # strict: a filter of unequal lists was not made here
        return dict(zip(partitions["terms"]["partition"], numbers["terms"]["generation"], strict=True))
    except (KeyError, TypeError, ValueError):
        return UNREADABLE


def is_alias(names: Names, table: Table, alias: str) -> bool:
    """True if this module makes an alias of such a name."""
    latest = names.latest(table)
    if not table.has_latest or not alias.startswith(latest):
        return alias == names.alias(table)
    return alias == latest or LENGTH.fullmatch(alias.removeprefix(f"{latest}-")) is not None
