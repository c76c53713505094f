"""Reading documents: a point in time that stays as it was, page after page."""

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import msgspec
import pyarrow as pa

from esjobs.core.errors import StoreError
from esjobs.store.elastic.cluster import Cluster, RefusedError, no_json
from esjobs.store.elastic.hits import Answer, Reader

PAGE = 10_000
"""Documents of a page: the largest that ``index.max_result_window`` allows by default."""

_SLICES, _IN_FLIGHT = 4, 2
"""By default a slice is a range of documents in Elasticsearch; in OpenSearch it costs more than it saves."""

_WORTH_SLICING = 3 * PAGE
_KEEP_ALIVE = "5m"
_WHOLE = {"allow_partial_search_results": "false"}
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
        answer = self._cluster.call("POST", "/_search", {**body, "pit": self._pit()}, params=_WHOLE)
        self._id = answer.get("pit_id", self._id)
        require_whole(self._cluster.location, self.index, answer)
        return answer

    def pages(self, query: Mapping[str, Any], source: Sequence[str] | bool = True) -> Iterator[list[Any]]:
        """Hits of a query, page after page, ordered by nothing; ``source``: the columns to fetch."""
        fetched = source if isinstance(source, bool) else list(source)
        body = {
            "size": PAGE,
            "query": query,
            "sort": self._order(),
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

    def batches(self, query: Mapping[str, Any], schema: pa.Schema) -> Generator[pa.RecordBatch]:
        """Documents of a query as columns, in batches of at most 10 000 rows, ordered by nothing.

        Many documents are asked for in slices, two at a time; memory holds that many pages.
        """
        reader = Reader(schema)
        with contextlib.closing(self._answers(query, reader)) as answers:
            for answer in answers:
                if answer.rows:
                    yield reader.batch(answer.rows)

    def _answers(self, query: Mapping[str, Any], reader: Reader) -> Generator[Answer]:
        if self._id is None:
            return
        body = {"size": PAGE, "query": query, "sort": self._order(), "track_total_hits": False}
        first = self._answer(reader, {**body, "track_total_hits": True})
        left: list[Mapping[str, Any]] = []
        if self._elastic and (first.total or 0) > _WORTH_SLICING:
            left += [{**body, "slice": {"id": number, "max": _SLICES}} for number in range(_SLICES)]
        else:
            if len(first.rows) == PAGE:
                left.append({**body, "search_after": first.after})
            yield first
        running: dict[Future[Answer], Mapping[str, Any]] = {}
        pool = ThreadPoolExecutor(_IN_FLIGHT, "esjobs-read")
        try:
            while left or running:
                while left and len(running) < _IN_FLIGHT:
                    asked = left.pop(0)
                    running[pool.submit(self._answer, reader, asked)] = asked
                done = wait(running, return_when=FIRST_COMPLETED).done.pop()
                asked, answer = running.pop(done), done.result()
                if len(answer.rows) == PAGE:
                    # the next page is on its way while this one is made use of
                    asked = {**asked, "search_after": answer.after}
                    running[pool.submit(self._answer, reader, asked)] = asked
                yield answer
        finally:
            pool.shutdown(cancel_futures=True)

    def _answer(self, reader: Reader, body: Mapping[str, Any]) -> Answer:
        raw = self._cluster.raw("POST", "/_search", {**body, "pit": self._pit()}, params=_WHOLE)
        try:
            answer = reader.decode(raw)
        except msgspec.MsgspecError as error:
            raise no_json(self._cluster.location, str(error)) from error
        shards = {"total": answer.shards.total, "failed": answer.shards.failed}
        require_whole(self._cluster.location, self.index, {"timed_out": answer.timed_out, "_shards": shards})
        self._id = answer.pit_id or self._id
        return answer

    def _pit(self) -> dict[str, Any]:
        return {"id": self._id, "keep_alive": _KEEP_ALIVE}

    def _order(self) -> list[str]:
        # OpenSearch before 3.3 has no order over several shards; the indices of esjobs have one
        return ["_doc" if self._one_shard else "_shard_doc"]

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
