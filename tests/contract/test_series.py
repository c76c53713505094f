"""Series go into every engine as bytes and come back as the arrays that they were."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.window import Window
from esjobs.records.series.blocks import blocks
from esjobs.records.series.rows import Series, rows_of
from esjobs.schema.series import SERIES
from esjobs.store.base import JobStore
from tests.contract.jobs import visible

START = datetime(2026, 3, 1, tzinfo=UTC)


def test_series_come_back_sample_by_sample(store: JobStore) -> None:
    rng = np.random.default_rng(1)
    written: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = {}
    rows = []
    for job in range(40):
        load = rng.random((2, 30 + 10 * (job % 3)))
        load[rng.random(load.shape) < 0.1] = np.nan
        load[0] = (load[0] > 0.5) * 1.0
        written[str(job)] = load.astype(np.float32)
        end = START + timedelta(days=job % 3, hours=5)
        units = [Series("cpu_load", "core", f"n/{unit}", START, 30.0, load[unit]) for unit in range(2)]
        rows.append(rows_of("emmy", str(job), units, end))
    for number, name in enumerate(("old", "new")):
        stamped = []
        for batch in rows[:10] if name == "old" else rows:
            more = {"load_id": name, "loaded_at": START + timedelta(days=10 + number)}
            given = [{**row, **more} for row in batch.to_pylist()]
            stamped.append(_batch(given))
        store.publish([store.replace(SERIES, name, stamped)])
    window = Window(START, START + timedelta(days=2))
    for most in (1 << 20, 1000):
        found = {
            job: block.values["cpu_load"][place]
            for block in blocks(store, window, ["cpu_load"], most=most)
            for place, job in enumerate(block.jobs.column("job_id").to_pylist())
        }
        assert sorted(found, key=int) == [job for job in written if int(job) % 3 < 2]
        for job, samples in found.items():
            np.testing.assert_array_equal(samples, written[job])
    assert len(visible(store, SERIES)) == 100


def _batch(rows: list[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=table_schema(SERIES))


def test_more_rows_than_a_page_of_bytes_and_columns_without_them(store: JobStore) -> None:
    samples = np.arange(1200.0)
    rows = [
        rows_of("s", str(job), [Series("ipc", "job", "", START, 1.0, samples[job:])]) for job in range(1100)
    ]
    more = {"load_id": "a", "loaded_at": START}
    whole = pa.Table.from_batches(rows).to_pylist()
    store.publish([store.replace(SERIES, "a", [_batch([{**row, **more} for row in whole])])])
    found = {row["job_id"]: row["packed"] for batch in store.read(SERIES) for row in batch.to_pylist()}
    assert found == {row["job_id"]: row["packed"] for row in whole}
    ids = [row["job_id"] for batch in store.read(SERIES, columns=["job_id"]) for row in batch.to_pylist()]
    assert sorted(ids) == sorted(found)
    first = store.read(SERIES, columns=["n_samples"], order=["-n_samples"], limit=700)
    lengths = [row["n_samples"] for batch in first for row in batch.to_pylist()]
    assert lengths == list(range(1200, 500, -1))
