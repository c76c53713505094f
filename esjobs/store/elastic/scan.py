"""Reading documents: a point in time that stays as it was, page after page."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from esjobs.core.errors import StoreError
from esjobs.store.elastic.cluster import Cluster, RefusedError

PAGE = 10_000
"""Documents of a page: the largest that ``index.max_result_window`` allows by default."""

_KEEP_ALIVE = "5m"
_NOT_FOUND = 404


class PointInTime:
    """A snapshot of an index. An index that does not exist is an empty one.

    Everything is asked without partial results; an answer that is partial all the same is refused.
    """

    def __init__(self, cluster: Cluster, index: str) -> None:
        self._cluster = cluster
        self._elastic = cluster.product == "elasticsearch"
        self.index = index
        self._id: str | None = None
        self._one_shard = False
        path = f"/{index}/_pit" if self._elastic else f"/{index}/_search/point_in_time"
        try:
            answer = cluster.call("POST", path, params={"keep_alive": _KEEP_ALIVE})
            self._id = answer["id" if self._elastic else "pit_id"]
            self._one_shard = answer["_shards"]["total"] == 1 if not self._elastic else False
        except RefusedError as error:
            if error.status != _NOT_FOUND:
                raise

    def search(self, body: Mapping[str, Any]) -> Any:
        """One search on the snapshot; None when there is no index."""
        if self._id is None:
            return None
        pit = {"id": self._id, "keep_alive": _KEEP_ALIVE}
        answer = self._cluster.call(
            "POST", "/_search", {**body, "pit": pit}, params={"allow_partial_search_results": "false"}
        )
        self._id = answer.get("pit_id", self._id)
        require_whole(self._cluster.location, self.index, answer)
        return answer

    def pages(self, query: Mapping[str, Any], source: Sequence[str] | bool = True) -> Iterator[list[Any]]:
        """Hits of a query, page after page, ordered by nothing; ``source``: the columns to fetch."""
        fetched = source if isinstance(source, bool) else list(source)
        body = {
            "size": PAGE,
            "query": query,
            # OpenSearch before 3.3 has no order over several shards; the indices of esjobs have one
            "sort": ["_doc" if self._one_shard else "_shard_doc"],
            "track_total_hits": False,
            "_source": fetched,
        }
        after: list[Any] | None = None
        while True:
            answer = self.search(body if after is None else {**body, "search_after": after})
            hits = answer["hits"]["hits"] if answer else []
            if hits:
                yield hits
            if len(hits) < PAGE:
                return
            after = hits[-1]["sort"]

    def close(self) -> None:
        """Let go of the snapshot; the cluster forgets it by itself after a while."""
        if self._id is None:
            return
        body = {"id": self._id} if self._elastic else {"pit_id": [self._id]}
        with contextlib.suppress(StoreError):
            self._cluster.call("DELETE", "/_pit" if self._elastic else "/_search/point_in_time", body)
        self._id = None

    def __enter__(self) -> "PointInTime":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def require_whole(location: str, index: str, answer: Mapping[str, Any]) -> None:
    """Refuse an answer that does not cover all shards, or whose search ran out of time."""
    shards = answer.get("_shards", {})
    if answer.get("timed_out") or shards.get("failed"):
        raise StoreError(
            f"{location} answered for a part of {index} only ({shards.get('failed', 0)} of "
            f"{shards.get('total')} shards failed, or the search ran out of time); "
            "nothing was counted, run it again"
        )
