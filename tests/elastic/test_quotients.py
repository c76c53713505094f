"""Bounds of quotients as clauses: exact to the last bit, or no fewer jobs than there are."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.core.query import Count, Filter, Metric, Moment, Query, Range, Select, Sum
from esjobs.store.elastic.asking import aggregation, composite, partitions, quotients
from esjobs.store.elastic.asking.selection import selected
from esjobs.store.elastic.fields.field_map import load_field_map
from esjobs.store.elastic.jobs.foreign_jobs import ForeignJobs
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract import model
from tests.contract.jobs import Row, hours, job
from tests.elastic.answers import require_same, rows
from tests.elastic.foreign import CATALOGUE, make_index, plain
from tests.servers.server import Server

pytestmark = pytest.mark.every_version

CORES = (None, 0, 1, 3, 7, 8, 49)
BOUNDS = (0.0, 0.1, 1e9 / 3, 2e9)
MAPPING = {**CATALOGUE, "max_rss_b": {"type": "double"}}
EXACT: tuple[Filter, ...] = tuple(
    Range("mem_per_core_b", **{side: bound}) for bound, side in product(BOUNDS, ("gt", "ge", "lt", "le"))
)
NARROWED: tuple[Filter, ...] = (
    Range("efficiency", lt=0.1),
    Range("efficiency", ge=0.1, le=0.7),
    Range("efficiency", gt=1.0),
    Range("efficiency", lt=math.inf),
    Range("efficiency", gt=-1.0),
    Range("cpu_s_per_event", gt=0.5, lt=3.0),
    Range("core_s", ge=3600.0),
)  # fmt: skip


def around(value: float) -> Iterator[float]:
    """A number and its neighbours, as near as numbers are."""
    below = above = value
    for _ in range(4):
        yield from {below, above}
        below, above = math.nextafter(below, -math.inf), math.nextafter(above, math.inf)


def jobs() -> list[Row]:
    """Memory at every bound times every number of cores, and CPU times that make quotients of every size."""
    memories = {
        (cores, memory)
        for cores, bound in product(CORES, BOUNDS)
        for memory in (around(bound * cores) if cores else (bound, None))
        if memory is None or memory >= 0
    }
    found = [
        job(number, cores=cores, max_rss_b=memory, end_time=hours(number % 60), queue=f"S{number % 3}")
        for number, (cores, memory) in enumerate(sorted(memories, key=repr))
    ]
    cells = product(CORES, (None, 0.0, 0.5, 100.0, 5e6), (None, 0.0, 9.99, 10.0, 80.0, 4e7), (None, 0, 7))
    found += [
        job(
            len(found) + number,
            cores=cores,
            wall_s=wall,
            cpu_s=cpu,
            max_rss_b=None,
            events=events,
            end_time=hours(number % 60),
        )
        for number, (cores, wall, cpu, events) in enumerate(cells)
    ]
    return found


@given(
    bound=st.floats(0, 1e12, allow_subnormal=False),
    by=st.integers(1, 512),
    side=st.sampled_from(["gt", "ge", "lt", "le"]),
    divided=st.booleans(),
)
def test_the_bound_that_remains_is_the_very_number_from_which_the_condition_holds(
    bound: float, by: int, side: str, divided: bool
) -> None:
    limits = quotients._limits("cpu_s", Range("q", **{side: bound}), float(by), divided=divided)
    if limits is None:
        return
    for value in around(bound * by if divided else bound / by):
        result = value / by if divided else value * by
        meets = {"gt": result > bound, "ge": result >= bound, "lt": result < bound, "le": result <= bound}
        inside = (limits.ge is None or value >= limits.ge) and (limits.lt is None or value < limits.lt)
        assert inside == meets[side], (value, limits)


@pytest.mark.every_version
def test_what_lies_within_bounds_is_what_plain_python_says(
    server: Server, index_prefix: str, whole_reads: list[Query]
) -> None:
    """Quotients by cores are found by the index; of others only what may lie there is read."""
    all_jobs = jobs()
    name = f"{index_prefix}jobs"
    make_index(server, name, MAPPING, map(plain, all_jobs))
    cluster = connect(Access(server.url))
    found = ForeignJobs(cluster, name, load_field_map("esjobs"))
    metrics: tuple[Metric, ...] = (
        Count(),
        Sum("cpu_s", "cpu"),
        Moment((), "with memory", ("mem_per_core_b",)),
        Moment(("mem_per_core_b",), "memory"),
    )
    for item in (*EXACT, *NARROWED):
        for keys in ((), ("queue", "day")):
            query = Query(keys, metrics, where=(item,), books=False)
            whole_reads.clear()
            answer = aggregation.aggregate(cluster, found, query)
            if item in EXACT:
                assert whole_reads == [], item
            truth, _ = model.answer(all_jobs, query)
            if not keys:
                truth = truth or {(): {one.name: model.measure([], one) for one in metrics}}
            require_same(query, (truth, {}), (rows(answer, query), {}))
        listed = selected(cluster, found, Select(("job_id",), where=(item,)))
        ids = sorted(value for batch in listed for value in batch.column("job_id").to_pylist())
        assert ids == sorted(row["job_id"] for row in all_jobs if model.holds(item, row)), item
    cluster.close()


@pytest.mark.every_version
@pytest.mark.parametrize("page", [3, partitions.PAGE])
def test_few_groups_are_asked_for_at_once_and_many_in_parts(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """The number of values tells which; either way, groups and days are the same."""
    monkeypatch.setattr(partitions, "SLICE", 10)
    all_jobs = jobs()
    name = f"{index_prefix}jobs"
    make_index(server, name, MAPPING, map(plain, all_jobs), shards=2)
    cluster = connect(Access(server.url))
    found = ForeignJobs(cluster, name, load_field_map("esjobs"))
    monkeypatch.setattr(partitions, "PAGE", page)
    cut: list[int] = []
    ranges = partitions.ranges

    def counted_ranges(
        at: Any, asked: Any, clause: Any, n_jobs: int, *cut_by: Any
    ) -> Iterator[partitions.Part]:
        cut.append(n_jobs)
        yield from ranges(at, asked, clause, n_jobs, *cut_by)

    monkeypatch.setattr(composite, "ranges", counted_ranges)
    for keys in (("queue",), ("day",), ("day", "queue"), ("queue", "cores", "day"), ("core_class", "day")):
        query = Query(keys, (Count(), Sum("cpu_s", "cpu"), Sum("core_s", "core")), books=False)
        answer = aggregation.aggregate(cluster, found, query)
        truth, _ = model.answer(all_jobs, query)
        require_same(query, (truth, {}), (rows(answer, query), {}))
    assert bool(cut) == (page == 3)
    cluster.close()
