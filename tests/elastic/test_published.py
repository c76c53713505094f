"""What is published is recorded twice: whatever happens to an alias, no row goes and somebody is warned."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from esjobs.core.errors import PublishedError, StoreError
from esjobs.schema.declared import COREPOWER
from esjobs.schema.flags import FLAG_NOTES
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.speed import FACTORS
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport import scan
from esjobs.store.elastic.transport.cluster import Request
from tests.contract.jobs import visible
from tests.elastic import publishing
from tests.elastic.published import FIRST, HELD, night, opened, seen, stored, written
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)

NIGHTS = 10
ROOT = Path(__file__).parents[2]


def _removed(index: str, alias: str, _: Any) -> list[dict[str, Any]]:
    return [{"remove": {"index": index, "alias": alias}}]


def _renamed(index: str, alias: str, facts: Any) -> list[dict[str, Any]]:
    return [*_removed(index, alias, facts), {"add": {"index": index, "alias": f"{alias}-old", **facts}}]


def _unfiltered(index: str, alias: str, facts: Any) -> list[dict[str, Any]]:
    return [*_removed(index, alias, facts), {"add": {"index": index, "alias": alias}}]


def _refiltered(index: str, alias: str, _: Any) -> list[dict[str, Any]]:
    return [{"add": {"index": index, "alias": alias, "filter": {"term": {"generation": "x"}}}}]


def _of_others(index: str, alias: str, facts: Any) -> list[dict[str, Any]]:
    """A filter of our form that lists one generation, which there is not."""
    partition = facts["filter"]["bool"]["filter"][1]["terms"]["partition"][:1]
    terms = [{"terms": {"generation": ["none such"]}}, {"terms": {"partition": partition}}]
    return [{"add": {"index": index, "alias": alias, "filter": {"bool": {"filter": terms}}}}]


CHANGES = (_removed, _renamed, _unfiltered, _refiltered, _of_others)


def test_whatever_happens_to_an_alias_no_row_goes(server: Server, index_prefix: str) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    for number in range(NIGHTS):
        night(store, number)
    store.set_up()
    expected, rows = seen(store), stored(server, names)
    aliases = server.json("GET", f"{names.prefix}-*/_alias")
    disturbed = [
        (index, alias, facts)
        for index, of_index in sorted(aliases.items())
        for alias, facts in sorted(of_index["aliases"].items())
        if not index.startswith((names.state, names.jobs))
        and facts["filter"]["bool"]["filter"][0]["terms"]["generation"] != ["none"]
    ]
    # three tables of one index, two of two months, and what is latest of runs
    assert len(disturbed) == 3 + 4 + 1
    for number, (index, alias, facts) in enumerate(disturbed):
        table = next(table for table in HELD if index.startswith(names.alias(table)))
        # to one table all of it happens, to every other something else
        for change in CHANGES if table == COREPOWER else [CHANGES[number % len(CHANGES)]]:
            server.json("POST", "_aliases", {"actions": change(index, alias, facts)})
            fresh = opened(server, index_prefix)
            attempts: list[Callable[[], object]] = [
                fresh.set_up,
                lambda: visible(fresh, table),  # noqa: B023
            ]
            # of a month in which nothing happened a sweep sees the names alone
            if change in (_removed, _renamed) or index == names.rows(table):
                attempts.append(fresh.sweep)
            else:
                assert fresh.sweep() == 0
            for attempt in attempts:
                with raised(PublishedError):
                    attempt()
            assert stored(server, names) == rows, (alias, change)
            assert fresh.set_up(repair=True, dry_run=True).done[0].count(index) == 1
            (line,) = (each for each in fresh.set_up(repair=True).done if index in each)
            assert "as recorded" in line
            assert (seen(fresh), stored(server, names)) == (expected, rows), (alias, change)
            server.request("DELETE", f"{index}/_alias/{alias}-old")
            assert fresh.sweep() == 0
            fresh.close()
    night(store, NIGHTS)
    assert seen(store)["corepower"] == NIGHTS + 1
    store.close()


def test_a_record_that_is_lost_is_taken_from_the_aliases_once(
    server: Server, index_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    night(store, 0)
    written(store, FACTORS, "never published")
    expected, rows = seen(store), stored(server, names)
    store.close()
    server.json("DELETE", names.state)
    store = opened(server, index_prefix)
    assert (store.sweep(), seen(store), stored(server, names)) == (0, expected, rows)
    assert "is lost" in caplog.text
    caplog.clear()
    other = opened(server, index_prefix)
    assert (other.sweep(), seen(other)) == (1, expected)
    assert caplog.text == ""
    # neither of both: nothing is swept, the newest rows of each partition come back
    store.publish([written(store, COREPOWER, "import0", 3)])
    server.json("DELETE", names.state)
    server.json("DELETE", f"{names.rows(COREPOWER)}/_alias/{names.alias(COREPOWER)}")
    for attempt in (other.sweep, lambda: visible(opened(server, index_prefix), COREPOWER)):
        with raised(PublishedError):
            attempt()
    other.set_up(repair=True)
    assert seen(other) == {**expected, "corepower": 3}
    for each in (store, other):
        each.close()


def test_an_index_that_is_gone(server: Server, index_prefix: str) -> None:
    """What can be computed again is struck off the record; what people entered only a snapshot has."""
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    for number in range(2):
        night(store, number)
    expected = seen(store)
    server.json("DELETE", names.rows(BUCKETS, str(FIRST)))
    with raised(PublishedError):
        store.sweep()
    lines = [line for line in store.set_up(repair=True).done if "2026-10-27 to 2026-10-28" in line]
    assert len(lines) == 1
    assert seen(store) == {**expected, "buckets": 0}
    server.json("DELETE", names.rows(COREPOWER))
    fresh = opened(server, index_prefix)
    attempts: list[Callable[[], object]] = [
        fresh.sweep,
        fresh.set_up,
        lambda: fresh.set_up(repair=True),
        lambda: written(fresh, COREPOWER, "another"),
        lambda: visible(fresh, COREPOWER),
    ]
    for attempt in attempts:
        with raised(PublishedError):
            attempt()
    for each in (store, fresh):
        each.close()


@pytest.mark.parametrize("moment", publishing.MOMENTS)
def test_a_publication_that_is_killed(server: Server, index_prefix: str, moment: str) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    publishing.publish(store, 1)
    new = 0 if moment == "begun" else 1
    command = [sys.executable, publishing.__file__, server.url, f"{index_prefix}own", moment]
    found = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert found.returncode == -signal.SIGKILL
    expected = dict.fromkeys((table.name for table in HELD), 1 + new)
    # before anybody recovers, and after
    assert seen(store) == expected
    store.publish([written(store, FACTORS, "next")])
    store.sweep()
    assert seen(store) == {**expected, "factors": 2 + new}
    assert store.set_up().done
    # what was superseded is gone; what people entered and nobody ever saw is left, with its marker
    rows = stored(server, names)
    piece = 1
    assert rows[names.rows(BUCKETS, str(FIRST))] == 1 + new + 1 + piece
    assert rows[names.rows(COREPOWER)] == (2 + 1 if new else 1 + 1 + 2 + 1)
    store.close()


def test_what_is_wrong_with_indices_is_named(server: Server, index_prefix: str) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    publishing.publish(store, 1)
    store.set_up()
    assert store.ailments() == []
    closed, blocked = names.rows(FACTORS), names.rows(FLAG_NOTES)
    server.json("POST", f"{closed}/_close")
    server.json("PUT", f"{blocked}/_settings", {"index.blocks.read_only_allow_delete": True})
    server.json("DELETE", names.rows(BUCKETS, str(publishing.DAY)))
    server.json("DELETE", f"{names.rows(COREPOWER)}/_alias/{names.alias(COREPOWER)}")
    theirs = {"index_patterns": [f"{names.prefix}*"], "priority": 900}
    server.json("PUT", f"_index_template/{index_prefix}theirs", theirs)
    found = {each.what: each for each in store.ailments()}
    assert found.keys() == {
        *(f"index {closed}", f"index {blocked}", f"template {index_prefix}theirs"),
        *("table buckets", "table corepower"),
    }
    assert found[f"index {closed}"].to_do == f"POST /{closed}/_open"
    assert "read-only" in found[f"index {blocked}"].text
    assert "900" in found[f"template {index_prefix}theirs"].text
    store.close()


def test_an_index_under_another_name_is_not_struck_off(server: Server, index_prefix: str) -> None:
    """As after a reindex for an upgrade, which leaves an alias of the old name."""
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    publishing.publish(store, 1)
    index = names.rows(FACTORS)
    server.json("DELETE", index)
    server.json("PUT", f"{index_prefix}reindexed", {"aliases": {index: {}}})
    for attempt in (store.sweep, lambda: visible(store, FACTORS)):
        with pytest.raises(PublishedError):
            attempt()
    with raised(PublishedError):
        store.set_up(repair=True)
    with pytest.raises(PublishedError):
        store.sweep()
    store.close()


def paths_asked(store: ElasticStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the requests of a store from now on."""
    asked: list[str] = []
    cluster = store._open()
    send = cluster._send

    def noted(request: Request) -> Any:
        asked.append(request.path)
        return send(request)

    monkeypatch.setattr(cluster, "_send", noted)
    return asked


@pytest.mark.parametrize("sizes", [[30] * 12, [150, 1, 1, 1, 40, 40, 99, 100, 101], [101] * 7])
def test_days_share_requests_as_far_as_a_page_goes(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch, sizes: list[int]
) -> None:
    monkeypatch.setattr(scan, "PAGE", 100)
    monkeypatch.setattr(scan, "_LONG_RUN", 10)
    store = opened(server, index_prefix)
    days = [str(FIRST + timedelta(days=number)) for number in range(len(sizes))]
    store.publish([written(store, BUCKETS, day, size) for day, size in zip(days, sizes, strict=True)])
    asked = paths_asked(store, monkeypatch)
    rows = pa.Table.from_batches(store.read(BUCKETS, (), ["day"]))
    assert Counter(map(str, rows["day"].to_pylist())) == dict(zip(days, sizes, strict=True))
    n_requests = sum("_search" in path and "point_in_time" not in path for path in asked)
    # the first page, one for each page of rows, and one for each day that does not fit
    assert n_requests <= 1 + sum(sizes) / 100 + 3 + sum(size >= 100 for size in sizes)
    store.close()


def test_a_publication_counts_the_rows_of_all_tables_at_once(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(server, index_prefix)
    night(store, 0)
    made = [written(store, table, "run9", 2) for table in (FACTORS, COREPOWER, FLAG_NOTES)]
    asked = paths_asked(store, monkeypatch)
    store.publish(made)
    lasts = [path.rpartition("/")[2] for path in asked]
    assert (lasts.count("_refresh"), lasts.count("_search")) == (1, 1)
    assert [len(visible(store, table)) for table in (COREPOWER, FLAG_NOTES)] == [3, 3]
    lost = [written(store, table, "run10", 2) for table in (FACTORS, COREPOWER)]
    index = Names(store._names.prefix).rows(COREPOWER, "run10")
    server.json("DELETE", f"{index}/_doc/{lost[1].number}.1?refresh=true")
    with raised(StoreError):
        store.publish(lost)
    store.close()
