"""What one writes by hand with the official client of a product. The mapping is the store's."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import elasticsearch
import elasticsearch.helpers
import opensearchpy
import orjson

from esjobs.store.elastic.layout import jobs_index

PAGE = 10_000
SLICES, THREADS = 4, 2
SHARDS = 2
_EXACT: Any = {"request_cache": "false", "allow_partial_search_results": "false"}

Document = dict[str, Any]


class _OpenSearchOrjson(opensearchpy.JSONSerializer):
    def dumps(self, data: Any) -> Any:
        return data if isinstance(data, str) else orjson.dumps(data).decode()

    def loads(self, s: str) -> Any:
        return orjson.loads(s)


class Peer:
    """The official client; ``fast``: with orjson as its serializer."""

    def __init__(self, url: str, product: str, *, fast: bool = False) -> None:
        self._elastic = product.startswith("elasticsearch")
        if self._elastic:
            options: Mapping[str, Any] = {"serializer": elasticsearch.OrjsonSerializer()} if fast else {}
            self._client: Any = elasticsearch.Elasticsearch(url, request_timeout=120, **options)
        else:
            options = {"serializer": _OpenSearchOrjson()} if fast else {}
            self._client = opensearchpy.OpenSearch(url, timeout=120, pool_maxsize=10, **options)

    def make_index(self, name: str, *, as_ours: bool = False) -> None:
        """An empty index with the mapping of jobs: two shards and settings as they come, or those of ours."""
        ours = jobs_index(monthly=True)
        settings = ours["settings"] if as_ours else {"number_of_shards": SHARDS}
        body = {"settings": settings, "mappings": ours["mappings"]}
        if self._elastic:
            self._client.options(ignore_status=404).indices.delete(index=name)
            self._client.indices.create(index=name, **body)
        else:
            self._client.indices.delete(index=name, ignore=404)
            self._client.indices.create(index=name, body=body)

    def write(self, index: str, documents: Iterable[Document]) -> None:
        """``helpers.parallel_bulk`` as it comes; with the id of the job, so that it may be run twice."""
        helpers: Any = elasticsearch.helpers if self._elastic else opensearchpy.helpers
        actions = ({"_index": index, "_id": found["job_id"], "_source": found} for found in documents)
        deque(helpers.parallel_bulk(self._client, actions), maxlen=0)
        self._client.indices.refresh(index=index)

    def search(self, index: str, body: Mapping[str, Any]) -> Any:
        """One search."""
        if self._elastic:
            return self._client.search(index=index, **body, **_EXACT)
        return self._client.search(index=index, body=body, params=_EXACT)

    def buckets(self, index: str, query: Mapping[str, Any], keys: Iterable[str]) -> Iterator[Document]:
        """All buckets, page by page in one thread: sums, sums of squares, the product of events and CPU."""
        sums = {name: {"sum": {"field": name}} for name in ("events", "cpu_s", "wall_s")}
        pairs = {f"{name}_sq": (name, name) for name in sums} | {"events_cpu_s": ("cpu_s", "events")}
        means = {
            name: {"weighted_avg": {"value": {"field": value}, "weight": {"field": weight}}}
            for name, (value, weight) in pairs.items()
        }
        sources = [{key: {"terms": {"field": key, "missing_bucket": True}}} for key in keys]
        composite: dict[str, Any] = {"size": PAGE, "sources": sources}
        while True:
            asked = {"buckets": {"composite": composite, "aggs": sums | means}}
            answer = self.search(index, {"size": 0, "query": query, "aggs": asked, "track_total_hits": False})
            found = answer["aggregations"]["buckets"]
            for bucket in found["buckets"]:
                row = {**bucket["key"], "n_jobs": bucket["doc_count"]}
                row |= {name: bucket[name]["value"] for name in sums}
                for name, (_, weight) in pairs.items():
                    mean = bucket[name]["value"]
                    row[name] = None if mean is None else mean * row[weight]
                yield row
            if len(found["buckets"]) < PAGE:
                return
            composite["after"] = found["after_key"]

    def documents(self, index: str) -> list[Document]:
        """All documents behind an index or alias, in slices of a point in time, in two threads."""
        snapshot = self._snapshot(index)
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(lambda number: self._slice(snapshot, number), range(SLICES)))
        return [document for some in found for document in some]

    def _snapshot(self, index: str) -> str:
        if self._elastic:
            return str(self._client.open_point_in_time(index=index, keep_alive="5m")["id"])
        return str(self._client.create_pit(index=index, params={"keep_alive": "5m"})["pit_id"])

    def _slice(self, snapshot: str, number: int) -> list[Document]:
        found: list[Document] = []
        body: dict[str, Any] = {
            "size": PAGE,
            "pit": {"id": snapshot, "keep_alive": "5m"},
            "slice": {"id": number, "max": SLICES},
            "sort": ["_shard_doc" if self._elastic else "_doc"],
            "track_total_hits": False,
        }
        while True:
            answer = self._client.search(**body) if self._elastic else self._client.search(body=body)
            hits = answer["hits"]["hits"]
            found += (hit["_source"] for hit in hits)
            if len(hits) < PAGE:
                return found
            body["search_after"] = hits[-1]["sort"]
