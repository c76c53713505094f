"""What readers of a table see, as the filters of its aliases; these are the only record of it.

The alias of a table lists the generation of every partition that is published. The aliases of what is latest
name one partition each, and its generation, if it is published.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from esjobs.core.tables import Table
from esjobs.store.base import Change, Generation, Pointed
from esjobs.store.checks import LENGTH
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.transport.cluster import Cluster, ask

_NOTHING = "none"
"""Stands in the filter of an alias for a generation that there is not, or a partition."""

Shown = dict[str, str]
"""Partition to generation, as a filter lists them."""


def aliases_of(cluster: Cluster, names: Names, table: Table) -> dict[str, Shown]:
    """What each alias of a table that is ours shows; none where there is no index."""
    index = names.rows(table)
    answer = ask(cluster, f"/{index}/_alias")
    listed = {} if answer is None else answer[index]["aliases"]
    return {alias: _read(facts["filter"]) for alias, facts in listed.items() if _is_ours(names, table, alias)}


def published_in(aliases: Mapping[str, Shown], names: Names, table: Table) -> Shown:
    """The generation that readers of a table see of each partition."""
    shown = aliases.get(names.alias(table), {})
    return {partition: number for partition, number in shown.items() if number != _NOTHING}


def aliases_after(
    before: Mapping[str, Shown], names: Names, table: Table, changes: Iterable[Change]
) -> dict[str, Shown]:
    """What the aliases of a table are to show after a publication; those that are not among them go."""
    shown = published_in(before, names, table)
    latest = {alias: next(iter(listed)) for alias, listed in before.items() if alias != names.alias(table)}
    if table.has_latest:
        latest.setdefault(names.latest(table), _NOTHING)
    for change in changes:
        if change.table != table:
            continue
        if isinstance(change, Pointed):
            alias = names.latest(table, change.length)
            if change.partition is None and change.length:
                latest.pop(alias, None)
            else:
                latest[alias] = _NOTHING if change.partition is None else change.partition
            continue
        shown.pop(change.partition, None)
        if isinstance(change, Generation):
            shown[change.partition] = change.number
    pointed = {alias: {partition: shown.get(partition, _NOTHING)} for alias, partition in latest.items()}
    return {names.alias(table): shown or {_NOTHING: _NOTHING}, **pointed}


def switch(
    index: str, before: Mapping[str, Shown], after: Mapping[str, Shown]
) -> list[dict[str, dict[str, Any]]]:
    """The actions that take the aliases of an index from one state to the next."""
    added = [
        {"add": {"index": index, "alias": alias, "is_write_index": False, "filter": filter_of(shown)}}
        for alias, shown in after.items()
        if before.get(alias) != shown
    ]
    return added + [{"remove": {"index": index, "alias": alias}} for alias in before if alias not in after]


def filter_of(shown: Shown) -> dict[str, Any]:
    """The rows of these generations, as a filter: two lists in the same order.

    The document that says that a generation was written has no partition and so is never shown.
    """
    listed = shown or {_NOTHING: _NOTHING}
    generations = {"terms": {"generation": list(listed.values())}}
    return {"bool": {"filter": [generations, {"terms": {"partition": list(listed)}}]}}


def missing_aliases(cluster: Cluster, names: Names, table: Table) -> list[str]:
    """The aliases that readers of a table ask and that it has not."""
    needed = [names.alias(table), *([names.latest(table)] if table.has_latest else ())]
    there = aliases_of(cluster, names, table)
    return [alias for alias in needed if alias not in there]


def ensure_aliases(cluster: Cluster, names: Names, table: Table) -> None:
    """Give a table that has never been published aliases that show nothing."""
    before = aliases_of(cluster, names, table)
    actions = switch(names.rows(table), before, aliases_after(before, names, table, ()))
    if actions:
        cluster.call("POST", "/_aliases", {"actions": actions})


def _read(filtered: Mapping[str, Any]) -> Shown:
    numbers, partitions = filtered["bool"]["filter"]
    return dict(zip(partitions["terms"]["partition"], numbers["terms"]["generation"], strict=True))


def _is_ours(names: Names, table: Table, alias: str) -> bool:
    """Whether an alias is one that this module makes: an administrator may have added others."""
    latest = names.latest(table)
    if not table.has_latest or not alias.startswith(latest):
        return alias == names.alias(table)
    return alias == latest or LENGTH.fullmatch(alias.removeprefix(f"{latest}-")) is not None
