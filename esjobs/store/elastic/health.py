"""Blocks on our indices and on the cluster."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from esjobs.core.errors import BlockedError
from esjobs.store.base import Ailment
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError

# Number of the block of a closed index
_CLOSED = "4"

_WRITING = {"write", "metadata_write"}

CLUSTER = "the cluster"


def blocked(cluster: Cluster, names: Names) -> Iterator[Ailment]:
    """Yield the blocks of our indices, and cluster blocks on writing."""
    # only the blocks: the state of a large cluster is large
    wanted = f"blocks.global,blocks.indices.{names.prefix}-*"
    try:
        answer = cluster.call("GET", "/_cluster/state/blocks", params={"filter_path": wanted})
    except RefusedError:
        return  # this user may not see them; whatever is blocked is refused
    blocks: Mapping[str, Any] = (answer or {}).get("blocks", {})
    of_cluster = [block for block in blocks.get("global", {}).values() if _WRITING & {*block["levels"]}]
    if of_cluster:
        yield Ailment(CLUSTER, _text(of_cluster), "remove the block (cluster.blocks in /_cluster/settings)")
    for index, of_index in sorted(blocks.get("indices", {}).items()):
        if _CLOSED in of_index:
            yield Ailment(f"index {index}", "closed", f"POST /{index}/_open")
        else:
            to_do = f"remove the block (index.blocks in /{index}/_settings)"
            yield Ailment(f"index {index}", _text(of_index.values()), to_do)


def require_unblocked(cluster: Cluster, names: Names, indices: Collection[str]) -> None:
    """Raise :class:`BlockedError` if one of some indices, or the cluster, is blocked."""
    named = {CLUSTER, *(f"index {index}" for index in indices)}
    for each in blocked(cluster, names):
        if each.what in named:
            raise BlockedError(f"{each.what} is {each.text}; nothing was published: {each.to_do}")


def _text(blocks: Collection[Mapping[str, Any]]) -> str:
    return "blocked: " + ", ".join(block["description"] for block in blocks)
