"""Reading series back: which rows count, how they are laid side by side, and that memory is bounded."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from esjobs.core.arrow import table_schema
from esjobs.core.query import In
from esjobs.core.window import Window
from esjobs.records.series.blocks import Block, blocks, parts
from esjobs.records.series.rows import Series, rows_of
from esjobs.schema.catalogue import TABLES
from esjobs.schema.series import SERIES
from esjobs.store.base import JobStore
from esjobs.store.duck.store import DuckStore

START = datetime(2026, 3, 1, tzinfo=UTC)
NAN = float("nan")


@pytest.fixture
def store() -> Iterator[JobStore]:
    opened = DuckStore(tables=TABLES)
    yield opened
    opened.close()


def series(metric: str, values: list[float], unit: str = "n1", **more: Any) -> Series:
    given: dict[str, Any] = {"scope": "node", "start": START, "step_s": 60.0} | more
    return Series(metric, given["scope"], unit, given["start"], given["step_s"], np.array(values))


def load(store: JobStore, name: str, *batches: pa.RecordBatch, age: int = 0) -> None:
    """Put rows under a load as the ingest step does; the larger ``age``, the later the load."""
    schema = table_schema(SERIES)
    stamped = []
    for batch in batches:
        more = {"load_id": name, "loaded_at": START + timedelta(days=365 + age)}
        rows = [row | more for row in batch.to_pylist()]
        stamped.append(pa.RecordBatch.from_pylist(rows, schema=schema))
    store.publish([store.replace(SERIES, name, stamped)])


def read(store: JobStore, *metrics: str, **how: Any) -> list[Block]:
    window = how.pop("window", None)
    return list(blocks(store, window, metrics or ("cpu_load",), **how))


def by_job(found: list[Block], metric: str = "cpu_load") -> dict[str, Any]:
    return {
        job: block.values[metric][place, : len(block.units[metric][place])].tolist()
        for block in found
        for place, job in enumerate(block.jobs.column("job_id").to_pylist())
    }


def test_jobs_of_equal_length_stand_together_with_their_units_as_people_count(store: JobStore) -> None:
    units = [f"n1/{number}" for number in (10, 2, 0)]
    load(
        store,
        "a",
        rows_of(
            "s", "1", [series("cpu_load", [float(n), 1.0], u, scope="core") for n, u in enumerate(units)]
        ),
        rows_of("s", "2", [series("cpu_load", [5.0, NAN]), series("mem_used_b", [7.0, 8.0])]),
        rows_of("s", "3", [series("cpu_load", [1.0, 2.0, 3.0])]),
        rows_of("s", "4", [series("mem_used_b", [1.0])]),
    )
    found = read(store, "cpu_load", "mem_used_b")
    assert sorted(block.n_samples for block in found) == [1, 2, 3]
    (two,) = (block for block in found if block.n_samples == 2)
    assert two.jobs.column("job_id").to_pylist() == ["1", "2"]
    assert two.jobs.column("end_time").to_pylist() == [START + timedelta(seconds=60)] * 2
    assert two.units["cpu_load"] == (("n1/0", "n1/2", "n1/10"), ("n1",))
    assert two.scopes["cpu_load"] == ("core", "node")
    assert two.scopes["mem_used_b"] == ("", "node")
    np.testing.assert_array_equal(
        two.values["cpu_load"],
        np.array([[[2, 1], [1, 1], [0, 1]], [[5, NAN], [NAN, NAN], [NAN, NAN]]], np.float32),
    )
    np.testing.assert_array_equal(two.values["mem_used_b"], np.array([[[NAN, NAN]], [[7, 8]]], np.float32))
    assert two.start_time.tolist() == [START.replace(tzinfo=None)] * 2
    assert two.step_s.tolist() == [60.0, 60.0]
    (one,) = (block for block in found if block.n_samples == 1)
    assert one.values["cpu_load"].shape == (1, 0, 1)


def test_of_each_metric_the_finest_scope_counts(store: JobStore) -> None:
    load(
        store,
        "a",
        rows_of(
            "s",
            "1",
            [
                series("ipc", [9.0]),
                series("ipc", [1.0], "n1/0", scope="core"),
                series("ipc", [2.0], "n1/1", scope="core"),
                series("power_w", [5.0], "n1/0", scope="socket"),
                series("power_w", [6.0]),
            ],
        ),
    )
    (block,) = read(store, "ipc", "power_w")
    assert block.values["ipc"].tolist() == [[[1.0], [2.0]]]
    assert block.scopes == {"ipc": ("core",), "power_w": ("socket",)}


def test_series_that_begin_later_or_end_earlier_have_gaps_there(store: JobStore) -> None:
    later = START + timedelta(seconds=120)
    load(
        store,
        "a",
        rows_of(
            "s", "1", [series("cpu_load", [1.0, 2.0, 3.0]), series("cpu_load", [4.0, 5.0], "n2", start=later)]
        ),
    )
    (block,) = read(store)
    np.testing.assert_array_equal(block.values["cpu_load"][0], [[1, 2, 3, NAN], [NAN, NAN, 4, 5]])
    assert not block.resampled.any()


def test_series_of_another_distance_give_the_sample_next_to_each_instant(store: JobStore) -> None:
    coarse = series("mem_used_b", [1.0, 2.0], step_s=120.0)
    load(store, "a", rows_of("s", "1", [series("cpu_load", [1.0, 2.0, 3.0]), coarse]))
    (block,) = read(store, "cpu_load", "mem_used_b")
    assert block.resampled.tolist() == [True]
    assert block.values["cpu_load"][0, 0].tolist() == [1.0, 2.0, 3.0]
    assert block.values["mem_used_b"][0, 0].tolist() == [1.0, 1.0, 2.0]


def test_a_very_fine_series_does_not_multiply_the_others(store: JobStore) -> None:
    fine = series("mem_used_b", [1.0, 2.0], step_s=0.001)
    load(store, "a", rows_of("s", "1", [series("cpu_load", [0.0] * 1000), fine]))
    (block,) = read(store, "cpu_load", "mem_used_b")
    assert (block.n_samples, block.step_s.tolist()) == (1000, [60.0])


def test_of_two_loads_the_newest_counts_metric_by_metric(store: JobStore) -> None:
    load(store, "b", rows_of("s", "1", [series("cpu_load", [1.0, 1.0]), series("ipc", [3.0, 3.0])]), age=1)
    load(store, "a", rows_of("s", "1", [series("cpu_load", [2.0, 2.0])]), age=2)
    (block,) = read(store, "cpu_load", "ipc")
    assert block.values["cpu_load"].tolist() == [[[2.0, 2.0]]]
    assert block.values["ipc"].tolist() == [[[3.0, 3.0]]]


def test_a_job_that_was_read_while_it_ran_is_found_once_at_its_end(store: JobStore) -> None:
    day = 24 * 60
    load(store, "a", rows_of("s", "1", [series("cpu_load", [1.0] * 10), series("ipc", [2.0] * 10)]), age=1)
    load(store, "b", rows_of("s", "1", [series("cpu_load", [3.0] * (day + 10))]), age=2)
    first, second = Window.parse("2026-03-01/2026-03-02"), Window.parse("2026-03-02/2026-03-03")
    assert read(store, "cpu_load", "ipc", window=first) == []
    (block,) = read(store, "cpu_load", "ipc", window=second)
    assert block.n_samples == day + 10
    assert np.isfinite(block.values["ipc"]).sum() == 10


def test_an_id_that_is_used_again_does_not_mix_two_jobs(store: JobStore) -> None:
    later = START + timedelta(days=40)
    load(store, "a", rows_of("s", "1", [series("cpu_load", [1.0]), series("ipc", [1.0])]), age=1)
    load(store, "b", rows_of("s", "1", [series("cpu_load", [2.0], start=later)]), age=2)
    (block,) = read(store, "cpu_load", "ipc")
    assert (block.n_samples, block.values["ipc"].shape[1]) == (1, 0)
    assert block.values["cpu_load"].tolist() == [[[2.0]]]


def test_a_series_that_a_load_brings_twice_counts_once(store: JobStore) -> None:
    load(
        store,
        "a",
        rows_of("s", "1", [series("cpu_load", [1.0])]),
        rows_of("s", "1", [series("cpu_load", [2.0, 3.0])]),
    )
    assert by_job(read(store)) == {"1": [[2.0, 3.0]]}


def test_sources_and_windows_are_told_apart(store: JobStore) -> None:
    load(store, "a", rows_of("s", "1", [series("cpu_load", [1.0])], START + timedelta(hours=5)))
    load(store, "b", rows_of("t", "1", [series("cpu_load", [2.0])], START + timedelta(hours=6)))
    assert len(read(store)[0].jobs) == 2
    assert by_job(read(store, where=[In("source", ("t",))])) == {"1": [[2.0]]}
    narrow = Window(START + timedelta(hours=5), START + timedelta(hours=6))
    assert by_job(read(store, window=narrow)) == {"1": [[1.0]]}
    assert read(store, "no_metric") == []


def test_blocks_and_parts_hold_as_much_as_they_may(store: JobStore) -> None:
    jobs = [
        rows_of("s", str(job), [series("cpu_load", [float(job)] * 100, f"n{n}") for n in range(1 + job % 3)])
        for job in range(60)
    ]
    load(store, "a", *jobs)
    whole = by_job(read(store))
    assert len(whole) == 60
    for most in (1, 500, 2000, 5000):
        found = read(store, most=most)
        assert by_job(found) == whole
        for block in found:
            assert sum(array.size for array in block.values.values()) <= most or len(block.jobs) == 1
    cut = list(parts(store, None, [], 2000))
    assert len(cut) > 5
    assert [part.slots.start for part in cut[1:]] == [part.slots.stop for part in cut[:-1]]
