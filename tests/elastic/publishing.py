"""A process that is killed at a given moment of a publication; run by ``test_published``."""

import os
import signal
import sys
from datetime import date

from esjobs.schema.declared import COREPOWER
from esjobs.schema.flags import FLAG_NOTES
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.notifications import NOTIFICATIONS
from esjobs.schema.speed import FACTORS
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Request
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import table_batch

HELD = (COREPOWER, FLAG_NOTES, NOTIFICATIONS, BUCKETS, FACTORS)
DAY = date(2026, 10, 27)

MOMENTS = {
    "begun": ("/_doc/", rb"\"after\""),
    "switched": ("/_aliases", b""),
    "recorded": ("/_bulk", b'"published-'),
    "over": ("/_bulk", b'"over"'),
    "done": ("/_doc/", rb"\"done\":true"),
}
"""By moment, what is in the path of the request that begins it, and in its body."""


def publish(store: ElasticStore, rows: int) -> None:
    """The same partitions of all tables, with so many rows each."""
    made = []
    for table in HELD:
        monthly = table.column(table.partition).type == "day"
        values = {table.partition: DAY if monthly else "one"}
        partition = str(DAY) if monthly else "one"
        made.append(store.replace(table, partition, [table_batch(table, [values] * rows)]))
    store.publish(made)


def main(url: str, prefix: str, moment: str) -> None:
    """Publish, and be killed as soon as the request of a moment is answered."""
    cluster = connect(Access(url))
    store = ElasticStore(cluster, prefix, tables=HELD)
    send = cluster._send
    asked, sought = MOMENTS[moment]

    def dying(request: Request) -> bytes | str:
        answer = send(request)
        if asked in request.path and sought in (request.body or b"") and request.method != "GET":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    cluster._send = dying  # type: ignore[method-assign]
    publish(store, 2)


if __name__ == "__main__":
    main(*sys.argv[1:])
