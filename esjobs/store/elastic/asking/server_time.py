"""Time of a cluster, requested with the right to read one index.

Answers of Elasticsearch before August 2026 have no ``Date`` header, and proxies write their own.
"""

from datetime import datetime

from esjobs.store.elastic.asking.days import moment_of
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import search_once

_NAME = "now"


def server_time(cluster: Cluster, index: str, field: str) -> datetime | None:
    """Return the time to which the cluster resolves ``now``; None without an index."""
    now = {"date_range": {"field": field, "format": "epoch_millis", "ranges": [{"from": "now"}]}}
    # no document is touched: the cluster resolves "now" when it parses the bounds of the bucket
    body = {"size": 0, "query": {"match_none": {}}, "aggs": {_NAME: now}}
    answer = search_once(cluster, index, body)
    if answer is None:
        return None
    # one range has one bucket, also without documents
    (bucket,) = answer["aggregations"][_NAME]["buckets"]
    return moment_of(int(bucket["from"]))
