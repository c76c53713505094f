"""A day of jobs for the benchmark of the clusters' store: seeded, streamed, with many small buckets.

Of a million jobs about 868 000 pass the cleaning rules, in about 502 000 buckets: the tail of a grid on which
thousands of tasks run on every site at once.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import PUT_SCHEMA, table_schema
from esjobs.schema.jobs import BUCKETS

DAY = date(2018, 8, 1)
BATCH = 50_000

_JOBS_PER_TASK = 500
_SITES, _MODELS, _MODELS_OF_SITE = 130, 60, 5
_TYPES = np.array(["evgen", "simul", "pile", "reprocessing", "deriv", "recon"])
_STATES = np.array(["finished", "failed", "cancelled"])
_DAY_S = 86_400
_IDS_OF_A_DAY = 5_000_000

Whole = npt.NDArray[np.int64]


def batches(jobs: int, seed: int = 1, day: date = DAY) -> Iterator[pa.RecordBatch]:
    """The jobs of a day as ``put_jobs`` takes them. Memory: one batch of 50 000 rows."""
    tasks = max(1, jobs // _JOBS_PER_TASK)
    for start in range(0, jobs, BATCH):
        random = np.random.default_rng((seed, day.toordinal(), start))
        yield _batch(random, day, start, min(BATCH, jobs - start), tasks)


def _batch(random: np.random.Generator, day: date, first: int, rows: int, tasks: int) -> pa.RecordBatch:
    midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    number = (day - DAY).days * _IDS_OF_A_DAY + first + np.arange(rows)
    # the square makes a few tasks large and most of them small
    task = (tasks * random.random(rows) ** 2).astype(np.int64)
    site = (_SITES * random.random(rows) ** 1.5).astype(np.int64)
    model = (site * 7 + (_MODELS_OF_SITE * random.random(rows) ** 2).astype(np.int64)) % _MODELS
    kind = task % len(_TYPES)
    cores = np.where(task % 5 == 0, 1, 8)
    speed = 1 + 0.004 * model + 0.001 * site
    events = random.integers(50, 5000, rows)
    cpu_s = events * (2 + task % 13) / speed * random.lognormal(0, 0.05, rows)
    wall_s = cpu_s / (cores * random.uniform(0.75, 0.98, rows)) + 61
    end = midnight * 1_000_000 + random.integers(0, _DAY_S * 1_000_000, rows)
    start = end - (wall_s * 1e6).astype(np.int64)
    queue_s = random.exponential(3600, rows)
    state = random.choice(3, rows, p=[0.89, 0.09, 0.02])
    without_events = random.random(rows) < 0.0225
    rss = random.lognormal(21.3, 0.4, rows).round()
    found: dict[str, pa.Array] = {
        "source": _repeated("panda", rows),
        "job_id": pa.array(4_000_000_000 + number).cast(pa.string()),
        "task_id": pa.array(14_000_000 + task).cast(pa.string()),
        "queue": _named("SITE-{:03d}_PROD", site, _SITES),
        "cpu_raw": _named("Intel(R) Xeon(R) CPU E5-{:04d} v4 @ 2.20GHz 25600 KB", model, _MODELS),
        "processing_type": pa.array(_TYPES).take(pa.array(kind)),
        "transformation": _named("Sim_tf_{}.py", task % 40, 40),
        "state": pa.array(_STATES).take(pa.array(state)),
        "user": _named("user {}", task % 300, 300),
        "submit_time": _times(start - (queue_s * 1e6).astype(np.int64)),
        "start_time": _times(start),
        "end_time": _times(end),
        "cores": pa.array(cores),
        "events": pa.array(np.where(without_events, 0, events)),
        "cpu_s": pa.array(cpu_s.round(3)),
        "wall_s": pa.array(wall_s.round(3)),
        "hs06_s": pa.array((cpu_s * 11).round(2)),
        "queue_s": pa.array(queue_s.round(3)),
        "max_rss_b": pa.array(rss),
        "input_b": pa.array((rss / 3).round()),
        "origin_file": _repeated("jobs.csv", rows),
        "origin_line": pa.array(first + np.arange(rows) + 2),
    }
    columns = [found.get(item.name, pa.nulls(rows)).cast(item.type) for item in PUT_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=PUT_SCHEMA)


def _named(form: str, numbers: Whole, count: int) -> pa.Array:
    return pa.array([form.format(number) for number in range(count)]).take(pa.array(numbers))


def _repeated(text: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), rows)


def _times(micros: Whole) -> pa.Array:
    return pc.cast(pa.array(micros, pa.timestamp("us")), pa.timestamp("us"))


def buckets(rows: int, seed: int = 1, day: date = DAY) -> pa.RecordBatch:
    """Rows of the table of buckets of a day; their sums are like real ones, not those of the jobs above."""
    random = np.random.default_rng((seed, day.toordinal()))
    found: dict[str, pa.Array] = {
        "day": pa.repeat(pa.scalar(day), rows),
        "task_id": pa.array(14_000_000 + random.integers(0, 5000, rows)).cast(pa.string()),
        "core_class": pa.array(["single", "multi"]).take(pa.array(random.integers(0, 2, rows))),
        "queue": _named("SITE-{:03d}_PROD", random.integers(0, _SITES, rows), _SITES),
        "cpu_model": _named("Intel Xeon E5-{:04d} v4", random.integers(0, _MODELS, rows), _MODELS),
        "processing_type": pa.array(_TYPES).take(pa.array(random.integers(0, len(_TYPES), rows))),
        "n_jobs": pa.array(random.integers(1, 5, rows)),
    }
    schema = table_schema(BUCKETS)
    columns = [
        found[item.name] if item.name in found else pa.array(random.lognormal(10, 2, rows)) for item in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
