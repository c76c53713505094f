"""Aggregates: keys, metrics, nulls, and sums to the last digits."""

import math

import numpy as np
import pyarrow as pa
import pytest

from esjobs.core.errors import UsageError
from esjobs.core.query import Count, In, Maximum, Metric, Minimum, Query, Select, Sum, SumProduct, SumWhere
from esjobs.core.window import Window
from esjobs.store.base import JobStore
from esjobs.store.merge import plain
from esjobs.testing.engine import every_version
from esjobs.testing.rows import batch, day, groups, hours, job, put

# stored, derived and missing ones: an engine without rows has only the question to tell their types
EVERY_KEY = ("day", "task_id", "core_class", "queue", "cpu_raw", "processing_type")


@every_version
def test_nothing_stored_has_no_groups(store: JobStore) -> None:
    answer = store.aggregate(Query(EVERY_KEY, (Count(), Sum("events", "events"))))
    assert answer.table.num_rows == answer.books.num_rows == 0
    assert answer.table.schema.names == [*EVERY_KEY, "n_jobs", "events"]


@every_version
def test_without_keys_there_is_one_row(store: JobStore) -> None:
    query = Query((), (Count(), Sum("events", "events"), Maximum("end_time", "last")))
    # a count of nothing is 0, any other metric of nothing is unknown
    assert groups(store, query) == {(): {"n_jobs": 0, "events": None, "last": None}}
    put(store, "a", job(1), job(2))
    assert groups(store, query) == {(): {"n_jobs": 2, "events": 200.0, "last": hours(1)}}


@every_version
def test_the_types_of_the_answer(store: JobStore) -> None:
    put(store, "a", job(1))
    metrics = (
        Count(),
        Sum("events", "events"),
        SumProduct("events", "events", "events_sq"),
        SumWhere("cores", ("events",), "cores_sum"),
        Minimum("queue", "site_min"),
        Maximum("end_time", "last"),
        Maximum("events", "most"),
        Minimum("day", "first_day"),
    )
    # engines may encode texts as dictionaries
    schema = plain(store.aggregate(Query(("day", "cores", "core_class"), metrics)).table).schema
    assert schema.types == [
        pa.date32(),
        pa.int64(),
        pa.string(),
        pa.int64(),
        *[pa.float64()] * 3,
        pa.string(),
        pa.timestamp("us", tz="UTC"),
        pa.int64(),
        pa.date32(),
    ]


@every_version
@pytest.mark.parametrize("window", ["0001-01-01/9999-12-31", "1600-01-01/2300-01-01"])
def test_thousands_of_years_hold_what_they_hold(store: JobStore, window: str) -> None:
    # nanoseconds since 1970 end in 2262, and begin in 1677
    years = Window.parse(window)
    put(store, "a", job(1), job(2, end_time=hours(30)))
    assert groups(store, Query(("day",), (Count(),), years)).keys() == {(day(0),), (day(1),)}
    assert store.day_fingerprints(years).column("day").to_pylist() == [day(0), day(1)]
    assert sum(found.num_rows for found in store.select(Select(("job_id",), years))) == 2


@every_version
def test_a_missing_key_is_a_group(store: JobStore) -> None:
    put(store, "a", job(1, cpu_raw=None), job(2, cpu_raw=None), job(3, cpu_raw=""), job(4, cores=None))
    # a number of cores below 1 has no class, and is not the same as a missing one
    put(store, "b", job(5, cores=0), job(6, cores=1, cpu_raw="x"))
    found = groups(store, Query(("cpu_raw", "core_class"), (Count(),)))
    raw = job(0)["cpu_raw"]
    assert {key: row["n_jobs"] for key, row in found.items()} == {
        (None, "multi"): 2,
        ("", "multi"): 1,
        (raw, None): 2 - 1 + 1,
        ("x", "single"): 1,
    }


@every_version
def test_days_are_days_of_utc(store: JobStore) -> None:
    put(
        store,
        "a",
        # the last microseconds of a day, its end, and the moment before it
        job(1, end_time=hours(23.999999)),
        job(2, end_time=hours(24)),
        job(3, end_time=hours(-0.001)),
    )
    found = groups(store, Query(("day",), (Count(),)))
    assert found == {(day(n),): {"n_jobs": 1} for n in (-1, 0, 1)}


@every_version
def test_a_metric_leaves_out_jobs_without_its_fields(store: JobStore) -> None:
    put(
        store,
        "a",
        job(1, events=2, cpu_s=10.0, wall_s=5.0, cores=1),
        job(2, events=None, cpu_s=20.0, wall_s=5.0, cores=1),
        job(3, events=4, cpu_s=None, wall_s=None, cores=2),
        # divisors of 0: the quotients are null, and not infinite
        job(4, events=0, cpu_s=40.0, wall_s=0.0, cores=8),
    )
    metrics = (
        Count(),
        Sum("events", "events"),
        Sum("cpu_s", "cpu_s"),
        SumProduct("events", "cpu_s", "events_cpu_s"),
        SumProduct("cpu_s", "cpu_s", "cpu_s_sq"),
        SumWhere("cpu_s", ("events",), "cpu_s_of_known"),
        SumWhere("cpu_s", ("events", "efficiency"), "cpu_s_of_all"),
        Sum("cpu_s_per_event", "cpe_sum"),
        SumProduct("cpu_s_per_event", "cpu_s_per_event", "cpe_sq"),
        Sum("core_s", "core_s"),
        Sum("efficiency", "efficiency"),
        Sum("max_rss_b", "max_rss_b"),
        Minimum("events", "fewest"),
        Maximum("cpu_s", "most"),
    )
    assert groups(store, Query((), metrics)) == {
        (): {
            "n_jobs": 4,
            "events": 6.0,
            "cpu_s": 70.0,
            "events_cpu_s": 20.0,
            "cpu_s_sq": 2100.0,
            "cpu_s_of_known": 50.0,
            "cpu_s_of_all": 10.0,
            "cpe_sum": 5.0,
            "cpe_sq": 25.0,
            "core_s": 10.0,
            "efficiency": 2.0 + 4.0,
            "max_rss_b": None,
            "fewest": 0,
            "most": 40.0,
        }
    }


@every_version
def test_large_integers_are_summed_exactly_and_squared_without_overflow(store: JobStore) -> None:
    # two of them overflow 64 bits; one more or less is beyond the digits of a double
    large = 2**62
    put(store, "a", *(job(n, events=large) for n in range(4)), job(5, events=1), job(6, events=-1))
    found = groups(store, Query((), (Sum("events", "s"), SumProduct("events", "events", "q"))))
    assert found == {(): {"s": 4.0 * large, "q": pytest.approx(4.0 * large**2)}}


@every_version
def test_what_is_not_finite_stays_visible(store: JobStore) -> None:
    put(
        store,
        "a",
        job(1, queue="a", cpu_s=math.inf),
        job(2, queue="b", cpu_s=math.nan),
        # the sum of two overflows to infinity, which is not the same as missing
        job(3, queue="c", cpu_s=1e308),
    )
    put(store, "b", job(4, queue="c", cpu_s=1e308))
    found = groups(store, Query(("queue",), (Sum("cpu_s", "cpu_s"), SumProduct("cpu_s", "cpu_s", "sq"))))
    assert found["a",] == {"cpu_s": math.inf, "sq": math.inf}
    assert math.isnan(found["b",]["cpu_s"])
    assert found["c",] == {"cpu_s": math.inf, "sq": math.inf}


@every_version
def test_sums_agree_with_numpy(store: JobStore) -> None:
    rng = np.random.default_rng(8)
    n = 20_000
    # numbers over many orders of magnitude, so that the order of a sum matters in its last digits
    site, cores = rng.integers(0, 7, n), rng.choice([1, 8], n)
    events, wall_s = rng.integers(1, 10**6, n), rng.lognormal(9, 2, n)
    cpu_s = wall_s * cores * rng.uniform(0.1, 1, n)
    empty = batch([job(0)])
    rows = {
        **{name: empty.column(name).take(pa.array(np.zeros(n, np.int64))) for name in empty.schema.names},
        "job_id": pa.array([str(number) for number in range(n)]),
        "queue": pa.array([f"site {number}" for number in site]),
        "cores": pa.array(cores),
        "events": pa.array(events),
        "cpu_s": pa.array(cpu_s),
        "wall_s": pa.array(wall_s),
    }
    table = pa.table(rows, schema=empty.schema)
    # several batches, whose ends lie inside groups
    assert store.put_jobs(table.to_batches(3000), "a").stored == n
    metrics: tuple[Metric, ...] = (
        Count(),
        Sum("events", "events"),
        Sum("core_s", "core_s"),
        SumProduct("cpu_s", "cpu_s", "cpu_s_sq"),
        SumProduct("events", "cpu_s", "events_cpu_s"),
        SumProduct("cpu_s_per_event", "cpu_s_per_event", "cpe_sq"),
        Sum("efficiency", "efficiency"),
    )
    found = groups(store, Query(("queue",), metrics))
    assert len(found) == 7
    for (name,), row in found.items():
        its = site == int(name.split()[1])
        terms = {
            "n_jobs": np.ones(n),
            "events": events,
            "core_s": wall_s * cores,
            "cpu_s_sq": cpu_s**2,
            "events_cpu_s": events * cpu_s,
            "cpe_sq": (cpu_s / events) ** 2,
            "efficiency": cpu_s / (wall_s * cores),
        }
        for metric, values in terms.items():
            # fsum is exact: engines may differ from it by the rounding of their own order
            assert row[metric] == pytest.approx(math.fsum(values[its]), rel=1e-12), metric


@every_version
def test_the_day_and_the_table_agree_with_select(store: JobStore) -> None:
    put(store, "a", *(job(n, queue=f"s{n % 3}", end_time=hours(n)) for n in range(60)))
    found = groups(store, Query(("queue", "day"), (Count(),), where=(In("queue", ("s1", "s2")),)))
    assert sum(row["n_jobs"] for row in found.values()) == 40


@pytest.mark.parametrize(
    ("keys", "metrics"),
    [
        # a metric with the name of a key, and two with one name
        (("queue",), (Count("queue"),)),
        ((), (Sum("events", "x"), Sum("cpu_s", "x"))),
        ((), ()),
        ((), (Sum("queue", "x"),)),
        ((), (Sum("end_time", "x"),)),
        ((), (SumProduct("events", "queue", "x"),)),
        # resolved above the store: an engine knows the raw string only
        ((), (Maximum("cpu_model", "x"),)),
    ],
    ids=repr,
)
def test_a_query_that_makes_no_sense_is_refused(
    store: JobStore, keys: tuple[str, ...], metrics: tuple[Metric, ...]
) -> None:
    with pytest.raises(UsageError):
        store.aggregate(Query(keys, metrics))
