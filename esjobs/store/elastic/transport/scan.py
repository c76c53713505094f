"""Reading of documents from a snapshot, page after page."""

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from esjobs.core.errors import PartialAnswerError, StoreError
from esjobs.store.elastic.asking.hits import Answer, Reader
from esjobs.store.elastic.transport.cluster import Cluster, Decoded, RefusedError
from esjobs.store.elastic.transport.naming import PATTERN

PAGE = 10_000
"""Documents of a page: the largest that ``index.max_result_window`` allows by default."""
PAGE_OF_BYTES = 500
"""Documents of a page where rows have columns of bytes: a packed series may take some hundred kilobytes."""

# By default a slice is a range of documents in Elasticsearch; in OpenSearch it costs more than it saves
_SLICES, _IN_FLIGHT = 4, 2

_WORTH_SLICING = 3 * PAGE
# Documents of a run from which on it is asked for alone, on average
_LONG_RUN = 1000
_KEEP_ALIVE = "5m"
# Always the same copy of a shard, as long as it is there: copies are not refreshed at the same moment
_SAME_COPIES = {"preference": "esjobs"}
# OpenSearch would leave a shard that is just starting out of a snapshot, and no later answer would say so
_ALL_SHARDS = {"allow_partial_pit_creation": "false"}
# A search works on two shards of a node at a time, for the cluster has other users
_COMPLETE = {"allow_partial_search_results": "false", "max_concurrent_shard_requests": 2}


class PointInTime:
    """Snapshot of an index; a missing index is empty. Partial answers are refused."""

    def __init__(self, cluster: Cluster, index: str) -> None:
        self._cluster = cluster
        self._elastic = cluster.product == "elasticsearch"
        self.index = index
        self._id: str | None = None
        self._one_shard = self._one_shard_each = False
        self._one_index = not any(character in index for character in PATTERN)
        target = quote(index, safe=PATTERN)
        path = f"/{target}/_pit" if self._elastic else f"/{target}/_search/point_in_time"
        params = {"keep_alive": _KEEP_ALIVE, **_SAME_COPIES, **({} if self._elastic else _ALL_SHARDS)}
        try:
            answer = cluster.call("POST", path, params=params)
            # a pattern that matches nothing: Elasticsearch gives a snapshot of no shards
            if answer["_shards"]["total"]:
                self._id = answer["id" if self._elastic else "pit_id"]
            n_shards = answer["_shards"]["total"]
            self._one_shard = n_shards == 1 and not self._elastic
            self._one_shard_each = "*" not in index and n_shards <= len(index.split(","))
        except RefusedError as error:
            if not error.absent:
                raise

    @property
    def empty(self) -> bool:
        """True if there is no index."""
        return self._id is None

    def search(self, body: Mapping[str, Any]) -> Any:
        """Search the snapshot; None without an index."""
        if self._id is None:
            return None
        with self._told_of_aliases():
            answer = self._cluster.call("POST", "/_search", self._request_body(body), params=_COMPLETE)
        # a search may answer with a new id for the snapshot
        self._id = answer.get("pit_id", self._id)
        shards = answer.get("_shards", {})
        self.require_whole(answer.get("timed_out", False), shards.get("failed", 0), shards.get("total", 0))
        return answer

    def decoded_search(self, body: Mapping[str, Any], decode: Callable[[bytes | str], Decoded]) -> Decoded:
        """Search the snapshot with a decoder; the caller checks :meth:`require_whole`."""
        with self._told_of_aliases():
            return self._cluster.decoded(
                decode, "POST", "/_search", self._request_body(body), params=_COMPLETE
            )

    @contextlib.contextmanager
    def _told_of_aliases(self) -> Iterator[None]:
        try:
            yield
        except RefusedError as error:
            if not error.forbidden:
                raise
            what = (
                f"{error}; if {self.index} is an alias, grant 'read' on its indices as well, because a "
                "snapshot requires it"
            )
            raise RefusedError(what, error.status, error.kind) from error

    def require_whole(self, timed_out: bool, failed: int, total: int) -> None:
        """Raise unless an answer covers all shards in time."""
        _require_whole(self._cluster, self.index, timed_out, failed, total)

    def _request_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {**_timed(self._cluster, body), "pit": {"id": self._id, "keep_alive": _KEEP_ALIVE}}

    def pages(self, query: Mapping[str, Any], source: Sequence[str] | bool = True) -> Iterator[list[Any]]:
        """Yield hits of a query by page, in any order; ``source``: columns to fetch."""
        fetched = source if isinstance(source, bool) else list(source)
        body = {"query": query, "sort": self._order(), "track_total_hits": False, "_source": fetched}
        for answer in self._pages(body):
            if hits := answer["hits"]["hits"]:
                yield hits

    def _pages(self, body: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the answers by page; only the first one counts the documents."""
        body = {"size": PAGE, **body}
        while answer := self.search(body):
            yield answer
            hits = answer["hits"]["hits"]
            # a page that is not full is the last
            if len(hits) < PAGE:
                return
            body = {**body, "track_total_hits": False, "search_after": hits[-1]["sort"]}

    def field_pages(
        self, query: Mapping[str, Any], wanted: Sequence[Any], tie: Sequence[str], objects: Sequence[str] = ()
    ) -> Iterator[list[Any]]:
        """Yield hits with formatted fields by page.

        ``tie``: fields that identify documents, for products without an order over shards. ``objects``:
        members to return as written. Raises :class:`StoreError` if pages and total disagree.
        """
        order: list[Any] = self._order()
        if not self._one_shard and not self._elastic:
            # OpenSearch has no order over shards before 3.3, and then one that is the same for the shards
            # of the same number of several indices
            order = [{"_seq_no": "asc"}, {"_index": "asc"}, *({name: "asc"} for name in tie)]
        body = {"query": query, "sort": order, "fields": list(wanted), "_source": list(objects) or False}
        total = read = 0
        for answer in self._pages({**body, "track_total_hits": True}):
            hits = answer["hits"]["hits"]
            total = total or answer["hits"].get("total", {}).get("value", 0)
            read += len(hits)
            if hits:
                yield hits
        if read != total:
            raise PartialAnswerError(
                f"{self._cluster.location} found {total} documents in {self.index} but returned {read}; "
                "nothing was counted, run it again"
            )

    def first(
        self,
        query: Mapping[str, Any],
        schema: pa.Schema,
        sort: Sequence[Mapping[str, Any]],
        limit: int | None,
        without: Sequence[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Yield the first documents of a query in some order; all without a limit."""
        if self._id is None:
            return
        reader = Reader(schema)
        left = limit
        after: Any = None
        while left is None or left > 0:
            size = page_of(schema) if left is None else min(page_of(schema), left)
            body = {"size": size, "query": query, "sort": [*sort, *self._order()], "track_total_hits": False}
            body |= _lighter(without)
            answer = self._answer(reader, body if after is None else {**body, "search_after": after})
            if answer.rows:
                yield reader.batch(answer.rows)
            if len(answer.rows) < size:
                return
            left = None if left is None else left - size
            after = answer.after

    def batches(
        self,
        query: Mapping[str, Any],
        schema: pa.Schema,
        runs: Sequence[Mapping[str, Any]] = (),
        without: Sequence[str] = (),
        page: int | None = None,
    ) -> Generator[pa.RecordBatch]:
        """Yield documents as columns, in batches of at most 10 000 rows, or ``page``, in any order.

        Large answers are sliced, two requests in flight. ``runs``: clauses of contiguously written documents;
        long ones are read apart, as many as fill a page: pages without gaps cost a fifth, those with a
        few gaps a third. ``without``: omitted members.
        """
        reader = Reader(schema)
        page = page or page_of(schema)
        with contextlib.closing(self._answers(query, reader, runs, without, page)) as answers:
            for answer in answers:
                if answer.rows:
                    yield reader.batch(answer.rows)

    def _answers(
        self,
        query: Mapping[str, Any],
        reader: Reader,
        runs: Sequence[Mapping[str, Any]],
        without: Sequence[str],
        page: int,
    ) -> Generator[Answer]:
        if self._id is None:
            return
        body = {"size": page, "query": query, "sort": self._order(), "track_total_hits": False}
        body |= _lighter(without)
        first = self._answer(reader, {**body, "track_total_hits": True})
        yield first
        left: list[Mapping[str, Any]] = []
        if len(first.rows) == page:
            # the order is that of all documents: each part goes on behind the first page
            left = self._parts({**body, "search_after": first.after}, first.total or 0, runs)
        running: dict[Future[Answer], Mapping[str, Any]] = {}
        pool = ThreadPoolExecutor(_IN_FLIGHT, "esjobs-read")
        try:
            while left or running:
                while left and len(running) < _IN_FLIGHT:
                    requested = left.pop(0)
                    running[pool.submit(self._answer, reader, requested)] = requested
                # in order of arrival: a slow part does not hold up the others
                done = wait(running, return_when=FIRST_COMPLETED).done.pop()
                requested, answer = running.pop(done), done.result()
                if len(answer.rows) == page:
                    # the next page is on its way while this one is made use of
                    requested = {**requested, "search_after": answer.after}
                    running[pool.submit(self._answer, reader, requested)] = requested
                yield answer
        finally:
            pool.shutdown(cancel_futures=True)

    def _parts(
        self, body: Mapping[str, Any], total: int, runs: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """Return the requests of a large answer that is read in parts, or the one that goes on."""
        if total > len(runs) * _LONG_RUN > 0:
            # as many as a page holds
            some = max(1, PAGE * len(runs) // total)
            pieces = (list(runs[first : first + some]) for first in range(0, len(runs), some))
            either = ({"bool": {"should": piece, "minimum_should_match": 1}} for piece in pieces)
            return [{**body, "query": {"bool": {"filter": [body["query"], one]}}} for one in either]
        if self._elastic and total > _WORTH_SLICING:
            return [{**body, "slice": {"id": number, "max": _SLICES}} for number in range(_SLICES)]
        return [body]

    def _answer(self, reader: Reader, body: Mapping[str, Any]) -> Answer:
        answer = self.decoded_search(body, reader.decode)
        self.require_whole(answer.timed_out, answer.shards.failed, answer.shards.total)
        self._id = answer.pit_id or self._id
        return answer

    def _order(self) -> list[Any]:
        """Return a total order, so that pages do not overlap."""
        if self._one_shard:
            return ["_doc"]
        # an implicit tie-breaker of both products; OpenSearch from 3.3
        if self._elastic or self._one_index:
            return ["_shard_doc"]
        # OpenSearch takes the shards of the same number of several indices for one
        order: list[Any] = [{"_seq_no": "asc"}, {"_index": "asc"}]
        return order if self._one_shard_each else [*order, "_shard_doc"]

    def close(self) -> None:
        """Release the snapshot; the cluster also expires it."""
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


def only_aggregations(query: Mapping[str, Any], aggregations: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a search without hits."""
    return {"size": 0, "query": query, "aggs": aggregations, "track_total_hits": False}


def page_of(schema: pa.Schema) -> int:
    """Return the page size for these columns."""
    return PAGE_OF_BYTES if any(pa.types.is_binary(kind) for kind in schema.types) else PAGE


def _lighter(without: Sequence[str]) -> dict[str, Any]:
    return {"_source": {"excludes": list(without)}} if without else {}


def search_once(cluster: Cluster, index: str, body: Mapping[str, Any]) -> Any:
    """Search without a snapshot; None without an index."""
    answer = _asked_once(cluster.call, cluster, index, body)
    shards = {} if answer is None else answer.get("_shards", {})
    if not shards.get("total") and not shards.get("failed"):
        return None
    _require_whole(
        cluster, index, answer.get("timed_out", False), shards.get("failed", 0), shards.get("total", 0)
    )
    return answer


def count_once(cluster: Cluster, index: str, query: Mapping[str, Any]) -> int:
    """Return the number of documents that match a query; 0 without an index."""
    answer = search_once(cluster, index, {"size": 0, "query": query, "track_total_hits": True})
    return int(answer["hits"]["total"]["value"]) if answer else 0


def decoded_once(
    cluster: Cluster, index: str, body: Mapping[str, Any], decode: Callable[[bytes | str], Any]
) -> Any:
    """Search without a snapshot, with a decoder."""
    answer = _asked_once(partial(cluster.decoded, decode), cluster, index, body)
    if answer is None or not (answer.shards.total or answer.shards.failed):
        return None
    _require_whole(cluster, index, answer.timed_out, answer.shards.failed, answer.shards.total)
    return answer


def _asked_once(ask: Callable[..., Any], cluster: Cluster, index: str, body: Mapping[str, Any]) -> Any:
    path = f"/{quote(index, safe=PATTERN)}/_search"
    params = {**_COMPLETE, **_SAME_COPIES, "request_cache": "false"}
    try:
        return ask("POST", path, _timed(cluster, body), params=params)
    except RefusedError as error:
        if not error.absent:
            raise
        return None


def _timed(cluster: Cluster, body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "timeout": f"{cluster.timeout_s * 1000:.0f}ms"}


def _require_whole(cluster: Cluster, index: str, timed_out: bool, failed: int, total: int) -> None:
    if timed_out or failed or not total:
        raise PartialAnswerError(
            f"{cluster.location} answered for a part of {index} only ({failed} of {total} shards failed, or "
            "the search timed out); nothing was counted, run it again"
        )
