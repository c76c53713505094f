"""Two processes that publish runs at once: what is latest is worked out when it is one's turn."""

import threading
from collections.abc import Iterable

from esjobs.publish.latest import latest_run
from esjobs.schema.catalogue import TABLES
from esjobs.schema.speed import FACTORS
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.test_latest_runs import TRIAL, Nights, asked
from tests.servers.server import Server


def test_the_newest_window_is_the_latest_whoever_published_last(server: Server, index_prefix: str) -> None:
    """Whoever publishes an older window last had not seen the newer one when it began."""
    prefix = f"{index_prefix}own"
    stores = [ElasticStore(connect(Access(server.url)), prefix, tables=TABLES) for _ in range(2)]
    errors: list[BaseException] = []

    def work(store: ElasticStore, lasts: Iterable[int]) -> None:
        nights = Nights(store)
        try:
            for last in lasts:
                nights.publish(asked(last))
        except BaseException as error:
            errors.append(error)

    shares = (range(0, 8, 2), range(7, 0, -2))
    threads = [threading.Thread(target=work, args=pair) for pair in zip(stores, shares, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    found = latest_run(stores[0], TRIAL)
    assert found is not None
    assert found.run == asked(7).run
    alias = Names(prefix).latest(FACTORS)
    hits = server.json("GET", f"{alias}/_search")["hits"]["hits"]
    assert {hit["_source"]["run"] for hit in hits} == {found.run}
    for store in stores:
        store.close()
