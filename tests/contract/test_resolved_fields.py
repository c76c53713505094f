"""Fields that are resolved above the store: the same groups, filters and sums on every engine."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from esjobs.core import fields
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.window import Window
from esjobs.records.jobs.conditions import job_filters
from esjobs.records.jobs.corepower import import_corepower
from esjobs.records.jobs.query import query_jobs
from esjobs.records.jobs.resolution import resolvers
from esjobs.store.base import JobStore
from tests.contract.jobs import Row, hours, job, put, selected
from tests.messages import raised

DAY = Window.parse("2018-08-01/2018-08-02")
IMPORTED = """queue,corepower,benchmark,site,valid_from
NAMELESS_1,10.5,HS06,FR-LYON,2018-01-01
NAMELESS_1,10.5,HS06,LATER,2018-08-03
IN2P3-CC_HIMEM,10.5,HS06,FR-LYON,2018-01-01
"""


def jobs() -> list[Row]:
    """Two queues that an import names, two whose site is in their name, one of no known kind."""
    queues = ("NAMELESS_1", "IN2P3-CC_HIMEM", "CERN-PROD_MCORE", "CERN-PROD_UCORE", "my farm")
    return [
        job(
            number,
            queue=queues[number % 5],
            cpu_raw=(None, "Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz", "E5-2650 v2")[number % 3],
            cpu_s=1000.0 + number,
            events=None if number % 7 == 0 else 10 + number,
            end_time=hours(1 + number % 40),
        )
        for number in range(60)
    ]


def site_of(queue: str) -> str:
    known = {"NAMELESS_1": "FR-LYON", "IN2P3-CC_HIMEM": "FR-LYON"}
    return known.get(queue, queue.split("_", maxsplit=1)[0])


@pytest.fixture
def filled(store: JobStore, tmp_path: Path) -> JobStore:
    put(store, "a", *jobs())
    table = tmp_path / "corepower.csv"
    table.write_text(IMPORTED)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    import_corepower(lambda: store, table, form="csv", benchmark=None, level=None, valid_from=None, now=now)
    return store


def test_every_resolved_field_has_a_way(store: JobStore) -> None:
    resolved = {item.name for item in fields.DERIVED_FIELDS if isinstance(item.derived, fields.Resolved)}
    assert resolved == {"country", "cpu_model", "error_category", "site"}
    assert set(resolvers(store, [item.name for item in fields.DERIVED_FIELDS], DAY)) == resolved


@pytest.mark.every_version
def test_groups_by_site_add_up_exactly(filled: JobStore) -> None:
    table = query_jobs(filled, ["site"], ["jobs", "events", "cpu_h", "cpu_s_per_event"]).to_pylist()
    expected = Counter(site_of(str(row["queue"])) for row in jobs())
    assert (
        {row["site"]: row["jobs"] for row in table}
        == expected
        == Counter({"FR-LYON": 24, "CERN-PROD": 24, "my farm": 12})
    )
    for row in table:
        mine = [each for each in jobs() if site_of(str(each["queue"])) == row["site"]]
        with_events = [each for each in mine if each["events"] is not None]
        assert row["events"] == sum(each["events"] for each in with_events)
        assert row["cpu_h"] == pytest.approx(sum(each["cpu_s"] for each in mine) / 3600, rel=1e-12)
        ratio = sum(each["cpu_s"] for each in with_events) / row["events"]
        assert row["cpu_s_per_event"] == pytest.approx(ratio, rel=1e-12)


def test_a_resolved_field_stands_beside_its_source_and_others(filled: JobStore) -> None:
    table = query_jobs(filled, ["site", "queue", "cpu_model", "cpu_raw"], ["jobs"])
    assert table.column_names == ["site", "queue", "cpu_model", "cpu_raw", "jobs"]
    expected = Counter((site_of(str(row["queue"])), row["queue"], row["cpu_raw"]) for row in jobs())
    rows = table.to_pylist()
    assert {(row["site"], row["queue"], row["cpu_raw"]): row["jobs"] for row in rows} == expected
    by_model = query_jobs(filled, ["cpu_model", "site"], ["jobs"]).to_pylist()
    assert len(by_model) == 6
    assert sum(row["jobs"] for row in by_model) == 60


@pytest.mark.every_version
def test_a_condition_becomes_the_queues_of_the_site(filled: JobStore) -> None:
    for condition in ("site=FR-LYON", "queue=NAMELESS_1 queue=IN2P3-CC_HIMEM"):
        found = selected(filled, "job_id", where=job_filters(filled, condition.split(" ")))
        assert len(found) == 24, condition
    both = job_filters(filled, ["site=FR-LYON", "site=my farm", "queue=my farm"])
    assert len(selected(filled, "job_id", where=both)) == 12
    named = query_jobs(filled, ["queue"], ["jobs"], where=["site=CERN-PROD"], window=DAY)
    assert sorted(named.column("queue").to_pylist()) == ["CERN-PROD_MCORE", "CERN-PROD_UCORE"]
    for nothing in ("site=", "site=IN2P3-CC", "site=LATER"):
        with raised(NoJobsError):
            query_jobs(filled, ["queue"], ["jobs"], where=[nothing])


def test_without_a_model_is_a_condition_too(filled: JobStore) -> None:
    for condition in ("cpu_model=", "cpu_raw="):
        assert query_jobs(filled, [], ["jobs"], where=[condition]).column("jobs").to_pylist() == [20]


def test_a_store_itself_refuses_what_it_cannot_know(store: JobStore) -> None:
    from esjobs.core.query import Count, In, Query

    with raised(UsageError):
        Query((), (Count(),), where=(In("site", ("CERN",)),))
    with raised(UsageError):
        Query(("site",), (Count(),))
