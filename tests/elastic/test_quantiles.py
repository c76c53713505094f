"""Quantiles of archives: counted by the cluster, through field maps, documents only read where they must."""

from pathlib import Path
from typing import Any

import pytest

from esjobs.core.query import Count, Metric, Quantile, Query
from esjobs.store.elastic.asking import aggregation, composite, quantiles
from esjobs.store.elastic.fields.field_map import load_field_map
from esjobs.store.elastic.jobs.foreign_jobs import ForeignJobs
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from esjobs.store.elastic.transport.scan import PointInTime
from tests.contract import model
from tests.contract.jobs import Row, hours, job
from tests.elastic.answers import rows
from tests.elastic.foreign import CATALOGUE, make_index, plain
from tests.elastic.test_archives import MAP, archive, write_archive
from tests.servers.server import Server

pytestmark = pytest.mark.every_version

HS06 = Quantile("hs06_s", 0.95, "hs06 p95")
EVENTS = Quantile("events", 0.5, "events median")
CPU = Quantile("cpu_s", 0.75, "cpu p75")


def require_alike(found: dict[Any, Row], jobs: list[Row], query: Query) -> None:
    expected, _ = model.answer(jobs, query)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        for name, value in values.items():
            assert found[key][name] == (value if value is None else pytest.approx(value, rel=1e-12)), key


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few jobs are counted as many are."""
    monkeypatch.setattr(quantiles, "FEW_JOBS", 10)
    monkeypatch.setattr(quantiles, "_FEW", 10)
    monkeypatch.setattr(quantiles, "_LEAST_BINS", 2)


@pytest.mark.parametrize("keys", [(), ("queue",), ("queue", "user"), ("day",)], ids=",".join)
def test_of_indices_that_differ(
    server: Server, index_prefix: str, whole_reads: list[Query], keys: tuple[str, ...]
) -> None:
    """Whole numbers are long in one month, fractions in another; the third has no benchmark seconds."""
    jobs = archive(400, seed=3)
    pattern = write_archive(server, index_prefix, jobs)
    cluster = connect(Access(server.url))
    query = Query(keys, (Count(), HS06, EVENTS, CPU))
    found = aggregation.aggregate(cluster, ForeignJobs(cluster, pattern, MAP), query)
    require_alike(rows(found, query), jobs, query)
    assert whole_reads == []
    cluster.close()


def test_whole_numbers_and_fractions_make_no_groups_together(
    server: Server, index_prefix: str, whole_reads: list[Query]
) -> None:
    jobs = [job(number, cpu_s=float(number * 37 % 101)) for number in range(60)]
    for number, kind in enumerate(("long", "double")):
        name = f"{index_prefix}jobs-{number}"
        make_index(server, name, {**CATALOGUE, "cpu_s": {"type": kind}}, map(plain, jobs[number::2]))
    cluster = connect(Access(server.url))
    query = Query(("queue",), (CPU,))
    found = aggregation.aggregate(cluster, ForeignJobs(cluster, f"{index_prefix}jobs-*", MAP), query)
    require_alike(rows(found, query), jobs, query)
    assert whole_reads == [query]
    cluster.close()


def test_of_foreign_units_and_of_documents_that_are_no_jobs(
    server: Server, index_prefix: str, tmp_path: Path, whole_reads: list[Query]
) -> None:
    """Minutes, of which -1 is not measured; what is negative else is read, and is no job or has no value."""
    translated = tmp_path / "map.toml"
    known = "\n".join(f'{name} = "{name}"' for name in CATALOGUE if name not in ("wall_s", "end_time"))
    translated.write_text(
        f'time = "end_time"\n[fields]\n{known}\nwall_s = {{field = "minutes", factor = 60.0, unset = -1}}\n'
    )
    jobs = [
        job(number, wall_s=60.0 * (number * 37 % 101) / 8, queue="AB"[number % 2]) for number in range(200)
    ]
    jobs += [job(f"without {number}", wall_s=None, queue="A") for number in range(20)]
    documents = []
    for number, row in enumerate(jobs):
        document = plain(row)
        wall = document.pop("wall_s", None)
        documents.append({**document, "minutes": -1.0 if wall is None else wall / 60})
        if number < 5:
            documents.append({**document, "job_id": f"bad {number}", "minutes": -3.0})
    make_index(server, f"{index_prefix}jobs", {**CATALOGUE, "minutes": {"type": "double"}}, documents)
    cluster = connect(Access(server.url))
    metrics: tuple[Metric, ...] = (Count(), Quantile("wall_s", 0.5, "median"), Quantile("wall_s", 0.9, "p90"))
    query = Query(("queue",), metrics)
    source = ForeignJobs(cluster, f"{index_prefix}jobs", load_field_map(str(translated)))
    found = aggregation.aggregate(cluster, source, query)
    require_alike(rows(found, query), jobs, query)
    assert whole_reads == []
    cluster.close()


def test_a_few_searches_for_all_groups(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch, whole_reads: list[Query]
) -> None:
    """One guess, one count, one list, however many groups there are; wrong counts are noticed."""
    jobs = [
        job(number, queue=f"S{number % 60}", cpu_s=float(number * 7919 % 5003), end_time=hours(number % 300))
        for number in range(3000)
    ]
    make_index(server, f"{index_prefix}jobs", CATALOGUE, map(plain, jobs))
    asked: list[Any] = []
    for name in ("search", "decoded_search"):
        inner = getattr(PointInTime, name)

        def noted(at: PointInTime, body: Any, *more: Any, inner: Any = inner) -> Any:
            asked.append(body)
            return inner(at, body, *more)

        monkeypatch.setattr(PointInTime, name, noted)
    cluster = connect(Access(server.url))
    source = ForeignJobs(cluster, f"{index_prefix}jobs", MAP)
    query = Query(("queue",), (Quantile("cpu_s", 0.5, "median"), Quantile("cpu_s", 0.95, "p95")))
    monkeypatch.setattr(quantiles, "_FEW", 2000)
    found = aggregation.aggregate(cluster, source, query)
    require_alike(rows(found, query), jobs, query)
    assert len(asked) <= 5
    assert whole_reads == []

    # an engine that cuts elsewhere than it says
    body = composite.Binned.body

    def shifted(of: composite.Binned) -> Any:
        bins = [tuple(None if end is None else end + 40.0 for end in ends) for ends in of.bins]
        return body(composite.Binned(of.path, bins))  # type: ignore[arg-type]

    monkeypatch.setattr(composite.Binned, "body", shifted)
    found = aggregation.aggregate(cluster, source, query)
    require_alike(rows(found, query), jobs, query)
    assert whole_reads != []
    cluster.close()
