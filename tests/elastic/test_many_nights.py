"""Night after night with retention: what the cluster keeps of it all stops growing."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from esjobs.core.report import RunReport
from esjobs.publish.account import entry, record
from esjobs.publish.latest import publish
from esjobs.publish.publication import Outcome, rows_table
from esjobs.publish.retention import Keep, prune
from esjobs.schema.kinds import Kind
from esjobs.schema.runs import ACCOUNT, LATEST_RUNS
from esjobs.schema.speed import FACTORS
from esjobs.store.base import Change
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.test_latest_runs import asked_of
from tests.servers.plugin import server_params
from tests.servers.server import Server

ONE_STEP = Kind("one step", (FACTORS,))
NIGHTS, TOGETHER, SETTLED = 120, 10, 4


def run(store: ElasticStore, night: int) -> tuple[list[Change], dict[str, object]]:
    """A run of a night with one row, written and not published; and its entry in ``runs``."""
    question = asked_of(ONE_STEP, night)
    report = RunReport("fit", question.run, 1, 1, 0.0)
    row = entry(question, Outcome(report), datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=night))
    rows = rows_table(FACTORS, [{"run": question.run, "name": "A"}])
    written = store.replace(FACTORS, question.run, rows.to_batches())
    return [written, *record(store, row, report)], row


@pytest.mark.parametrize("server", server_params("elasticsearch8"), indirect=True)
def test_a_hundred_and_twenty_nights_need_the_filters_of_forty(server: Server, index_prefix: str) -> None:
    """Every publication writes the filters of the aliases anew, which list every visible generation.

    Ten nights are published and pruned at a time, which is quicker and changes nothing of what is left.
    """
    prefix = f"{index_prefix}own"
    store = ElasticStore(connect(Access(server.url)), prefix, tables=(FACTORS, *ACCOUNT, LATEST_RUNS))
    sizes = []
    for first in range(0, NIGHTS, TOGETHER):
        made = [run(store, night) for night in range(first, first + TOGETHER)]
        publish(
            store, ONE_STEP, [change for changes, _ in made for change in changes], [row for _, row in made]
        )
        prune(store, [ONE_STEP], Keep(newest=2, daily=4, weekly=3, monthly=2))
        # bytes of all aliases with their filters
        sizes.append(len(json.dumps(server.json("GET", f"{prefix}-*/_alias"))))
    assert max(sizes[SETTLED:]) <= max(sizes[:SETTLED])
    counted = server.json("GET", f"{Names(prefix).alias(FACTORS)}/_count")["count"]
    assert counted <= 4 + 3 + 2
    assert server.json("GET", f"{Names(prefix).latest(FACTORS, '7d')}/_count")["count"] == 1
    store.close()
