"""Own indices hidden behind aliases of their names, as the Upgrade Assistant leaves them.

Rows and snapshots rely on index names, so the index gets its name back by a clone, which shares files. Safe
to repeat; ``NAME-moved`` keeps access meanwhile.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from esjobs.core.errors import PublishedError, StoreError
from esjobs.core.tables import Table
from esjobs.store.elastic.layout import LAYOUT, Names
from esjobs.store.elastic.transport.cluster import Cluster

_SUFFIX = "-moved"


@dataclass(frozen=True)
class Present:
    """Indices (open and closed) and aliases under a prefix."""

    indices: Mapping[str, set[str]]
    aliases: Mapping[str, list[str]]

    @classmethod
    def of(cls, cluster: Cluster, names: Names) -> "Present":
        """Return the present ones, in one request."""
        path = f"/_resolve/index/{names.prefix}-*"
        answer = cluster.call("GET", path, params={"expand_wildcards": "open,closed"})
        return cls(
            {each["name"]: {*each.get("aliases", ())} for each in answer["indices"]},
            {each["name"]: each["indices"] for each in answer["aliases"]},
        )

    def renamed(self, is_ours: Callable[[str], bool]) -> dict[str, str]:
        """Return by own index name the index that has it as alias.

        Raises :class:`StoreError` if ambiguous.
        """
        found: dict[str, str] = {}
        for alias, indices in sorted(self.aliases.items()):
            name = alias.removesuffix(_SUFFIX)
            if not is_ours(name):
                continue
            others = {*indices, *([found[name]] if name in found else ())}
            if len(others) > 1:
                raise StoreError(
                    f"alias {alias} has the name of an index and is on {', '.join(sorted(others))}; remove "
                    "it from all but the index with the rows (POST /_aliases)"
                )
            (found[name],) = others
        return found


def give_names_back(cluster: Cluster, names: Names, tables: Collection[Table], *, dry_run: bool) -> list[str]:
    """Restore the names of own indices that are aliases; return a line each."""

    def is_ours(name: str) -> bool:
        ours = names.is_jobs(name) or name == names.state
        return ours or any(names.is_rows(table, name) for table in tables)

    # "-moved" counts: it is what an interrupted attempt leaves
    renamed = Present.of(cluster, names).renamed(is_ours)
    if not dry_run:
        for name, source in renamed.items():
            _give_back(cluster, name, source)
    return [f"index {name} has its name again (it was {source})" for name, source in renamed.items()]


def _give_back(cluster: Cluster, name: str, source: str) -> None:
    """Restore the name of an index, with its other aliases."""
    mapping = cluster.call("GET", f"/{source}/_mapping")[source]["mappings"]
    if mapping.get("_meta", {}).get("layout") != LAYOUT:
        raise PublishedError(
            f"index {name} is now an alias of {source}, whose mappings are not those of esjobs; nothing was "
            "changed. Reindex it with the mappings of esjobs, or restore it from a snapshot"
        )
    # a clone needs a source that nobody writes to
    cluster.call("PUT", f"/{source}/_settings", {"index.blocks.write": True})
    aliases: dict[str, Any] = cluster.call("GET", f"/{source}/_alias")[source]["aliases"]
    # an index and an alias cannot have the same name: the alias goes first, and access stays by another
    # one
    if name in aliases:
        swap = [
            {"remove": {"index": source, "alias": name}},
            {"add": {"index": source, "alias": f"{name}{_SUFFIX}"}},
        ]
        cluster.call("POST", "/_aliases", {"actions": swap})
    # an earlier attempt may have broken off after the clone
    if name not in cluster.call("GET", f"/{name}*/_alias"):
        cluster.call("POST", f"/{source}/_clone/{name}", {"settings": {"index.blocks.write": None}})
    # the clone counts as there before its shards are
    cluster.call("GET", f"/_cluster/health/{name}", params={"wait_for_status": "yellow"})
    before, after = (cluster.call("GET", f"/{index}/_count")["count"] for index in (source, name))
    if after < before:
        raise StoreError(f"index {name} has {after} of the {before} documents of {source}; both were kept")
    # in the request that removes the source: aliases never point to nothing
    kept = [
        {"add": {"index": name, "alias": alias, **facts}}
        for alias, facts in aliases.items()
        if alias not in (name, f"{name}{_SUFFIX}")
    ]
    cluster.call("POST", "/_aliases", {"actions": [{"remove_index": {"index": source}}, *kept]})
