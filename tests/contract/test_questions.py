"""Every engine gives the parts that questions are made of: moments, quantiles, keys made for a question."""

import math
import random
from dataclasses import replace

import pytest

from esjobs.core.keys import Bins, MadeKey, Named, TimePart
from esjobs.core.query import (
    Count,
    Filter,
    In,
    Like,
    Maximum,
    Metric,
    Minimum,
    Missing,
    Moment,
    Quantile,
    Query,
    Range,
)
from esjobs.store.base import JobStore
from tests.contract.jobs import Row, groups, hours, job, put
from tests.contract.model import answer

FAILED = (In("state", ("failed", "timeout")),)
MOMENTS: tuple[Metric, ...] = (
    Moment((), "jobs"),
    Moment((), "with events", ("events",)),
    Moment((), "failed", (), FAILED),
    Moment(("core_s",), "lost", (), FAILED),
    Moment(("core_s", "core_s"), "lost squared", (), FAILED),
    Moment(("cpu_s", "cpu_s"), "cpu squared", ("core_s",)),
    Moment(("cpu_s", "core_s"), "cpu x core", ("core_s",)),
    Moment(("mem_per_core_b",), "memory"),
    Moment(("events",), "events of two", ("queue_s",), (*FAILED, In("queue", ("CERN", "RAL")))),
)
SINGLE: tuple[Metric, ...] = (
    Quantile("queue_s", 0.5, "median"),
    Quantile("queue_s", 0.95, "p95"),
    Quantile("mem_per_core_b", 0.9, "memory p90"),
    Quantile("events", 1.0, "most events"),
    Minimum("wall_s", "shortest"),
    Maximum("efficiency", "best"),
)
MADE: tuple[MadeKey, ...] = (
    TimePart("week", "week"),
    TimePart("month", "month"),
    TimePart("hour", "hour"),
    Bins("bin of wall_s", "wall_s", (500.0, 1000.0, 2000.0)),
    Named("owner", "queue", (("CERN", "CH"), ("RAL", "UK"), ("QMUL", "UK"), ("nowhere", "none"))),
)


def made_up(count: int) -> list[Row]:
    """Jobs with gaps of every kind, over two months."""
    rng = random.Random(5)
    rows = []
    for number in range(count):
        row = job(
            number,
            queue=rng.choice(["CERN", "RAL", "QMUL", "BNL"]),
            state=rng.choice(["finished", "finished", "failed", "timeout", "cancelled", None]),
            end_time=hours(rng.uniform(0, 24 * 50)),
            cores=rng.choice([1, 8, 8, None]),
            events=rng.choice([None, 0, 10, 1000]),
            cpu_s=rng.choice([None, rng.uniform(1, 1e5)]),
            wall_s=rng.choice([500.0, 1000.0, rng.uniform(1, 1e4), None]),
            queue_s=rng.choice([None, 60.0, rng.uniform(0, 1e5)]),
            max_rss_b=rng.choice([None, rng.uniform(1e9, 1e11)]),
        )
        rows.append(row)
    return rows


@pytest.mark.parametrize("metrics", [MOMENTS, SINGLE], ids=["moments", "single jobs"])
@pytest.mark.parametrize("keys", [(), ("queue",), ("queue", "cores"), ("day",)], ids=",".join)
def test_parts_agree_with_plain_python(
    store: JobStore, metrics: tuple[Metric, ...], keys: tuple[str, ...]
) -> None:
    rows = made_up(400)
    put(store, "a", *rows)
    query = Query(keys, metrics)
    expected, _ = answer(rows, query)
    assert groups(store, query) == {key: pytest.approx(values) for key, values in expected.items()}


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.name)
@pytest.mark.parametrize("metrics", [MOMENTS, SINGLE], ids=["moments", "single jobs"])
def test_keys_made_for_a_question_agree_with_plain_python(
    store: JobStore, made: MadeKey, metrics: tuple[Metric, ...]
) -> None:
    rows = made_up(300)
    put(store, "a", *rows)
    query = Query(("core_class", made.name), metrics, made=(made,), books=False)
    expected, _ = answer(rows, query)
    assert groups(store, query) == {key: pytest.approx(values) for key, values in expected.items()}


def test_of_no_jobs_numbers_are_0_and_sums_missing(store: JobStore) -> None:
    query = Query((), (*MOMENTS, *SINGLE))
    counts = {"jobs": 0, "with events": 0, "failed": 0}
    names = [metric.name for metric in query.metrics]
    assert groups(store, query) == {(): {name: counts.get(name) for name in names}}
    put(store, "a", job(1, events=None, max_rss_b=None, queue_s=None))
    found = groups(store, query)[()]
    assert (found["jobs"], found["with events"], found["failed"], found["lost"]) == (1, 0, 0, None)
    assert found["memory"] is found["median"] is found["most events"] is None


def test_nan_is_in_no_quantile_and_in_no_bin(store: JobStore) -> None:
    put(store, "a", job(1, wall_s=math.nan), job(2, wall_s=10.0), job(3, wall_s=30.0), job(4, wall_s=None))
    query = Query((), (Quantile("wall_s", 0.5, "median"),))
    assert groups(store, query) == {(): {"median": 20.0}}
    bins = Bins("bin", "wall_s", (30.0,))
    query = Query(("bin",), (Count("n"),), made=(bins,))
    assert groups(store, query) == {(None,): {"n": 2}, (0,): {"n": 1}, (1,): {"n": 1}}


@pytest.mark.parametrize("odd", [False, True], ids=["plain", "with numbers that no index knows"])
def test_without_books_the_groups_are_the_same(store: JobStore, odd: bool) -> None:
    rows = made_up(300)
    if odd:
        rows += [job("nan", wall_s=math.nan, queue="CERN"), job("inf", cpu_s=math.inf, queue="RAL")]
    put(store, "a", *rows)
    filters: tuple[tuple[Filter, ...], ...] = (
        (),
        (In("queue", ("CERN", "RAL")), Range("wall_s", gt=600.0)),
        (Range("mem_per_core_b", gt=2e9),),
        (Missing("cores"),),
        (Like("queue", ("q*",)),),
        (In("queue", ("nowhere",)),),
    )
    for where in filters:
        for keys in ((), ("queue",), ("day", "core_class"), ("queue", "state", "cores")):
            query = Query(keys, (Count("n"), *MOMENTS[:4], Quantile("queue_s", 0.5, "median")), where=where)
            found = groups(store, replace(query, books=False))
            expected = groups(store, query)
            assert found == {key: pytest.approx(values, nan_ok=True) for key, values in expected.items()}
