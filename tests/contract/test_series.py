"""Series go into every engine as bytes and come back as the arrays that they were."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.window import Window
from esjobs.series.blocks import blocks
from esjobs.series.rows import Series, rows_of
from esjobs.series.tables import SERIES
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
