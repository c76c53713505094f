"""Night after night with retention: what the cluster keeps of it all stops growing."""

import json

import pytest

from esjobs.runs.retention import Keep
from esjobs.runs.tables import ACCOUNT, LATEST_RUNS
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.test_latest_runs import TRIAL
from tests.runs.test_retention import nightly
from tests.servers.plugin import server_params
from tests.servers.server import Server

TABLES = (*TRIAL.tables, *ACCOUNT, LATEST_RUNS)
NIGHTS, SETTLED = 200, 40


@pytest.mark.parametrize("server", server_params("elasticsearch8"), indirect=True)
def test_two_hundred_nights_need_the_filters_of_forty(server: Server, index_prefix: str) -> None:
    """Every publication writes the filters of the aliases anew, which list every visible generation."""
    prefix = f"{index_prefix}own"
    store = ElasticStore(connect(Access(server.url)), prefix, tables=TABLES)

    def filters() -> int:
        """Bytes of all aliases of the tables with their filters."""
        return len(json.dumps(server.json("GET", f"{prefix}-*/_alias")))

    sizes = nightly(store, NIGHTS, Keep(newest=2, daily=4, weekly=2, monthly=1), filters)
    assert max(sizes[SETTLED:]) <= max(sizes[:SETTLED])
    counted = server.json("GET", f"{Names(prefix).rows(TRIAL.tables[0])}/_count")["count"]
    assert counted < 3 * 2 * 9
    store.close()
