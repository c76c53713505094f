"""Writes the jobs of the size benchmark as canonical Parquet: a wide grid whose buckets hold 1.2 jobs each.

Every job falls on a random site, task and day, so that N jobs in 3 N cells make 0.85 N buckets and, with the
days added up, N / 10 rows of a fit.
"""

import argparse
import json
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from esjobs.records.demo.cpus import CPU_MODELS

SITES = 500
DAYS = 30
JOBS_PER_TASK = 5_000
"""10 jobs per task and site: rows of a fit are many, and half of them too small to enter it."""
FIRST_DAY = date(2026, 3, 1)

_TYPES = ("evgen", "pile", "reco", "reprocessing", "simul")
_CPU_MODELS = 40
_BATCH = 1 << 17


def write_jobs(path: Path, jobs: int, days: int, jobs_per_task: int, seed: int) -> dict[str, object]:
    """Write the jobs day after day, as a site's records come; what was written. Memory: one batch."""
    rng = np.random.default_rng(seed)
    tasks = max(1, jobs // jobs_per_task)
    speed = rng.uniform(0.7, 1.4, SITES)
    grid = {
        "speed": speed,
        "declared": np.round(10 * speed * rng.uniform(0.8, 1.2, SITES), 2),
        "cost": rng.lognormal(1.0, 0.8, tasks),
        "events": rng.integers(100, 2000, tasks).astype(float),
        "multi": np.arange(tasks) % 2 == 0,
    }
    first = 0
    with pq.ParquetWriter(path, _batch(rng, grid, FIRST_DAY, 0, 1).schema) as writer:
        for number in range(days):
            last = jobs * (number + 1) // days
            for start in range(first, last, _BATCH):
                size = min(_BATCH, last - start)
                writer.write_batch(_batch(rng, grid, FIRST_DAY + timedelta(number), start, size))
            first = last
    window = f"{FIRST_DAY}/{FIRST_DAY + timedelta(days)}"
    return {"jobs": jobs, "sites": SITES, "tasks": tasks, "days": days, "window": window}


def _batch(
    rng: np.random.Generator, grid: dict[str, np.ndarray], day: date, first: int, size: int
) -> pa.RecordBatch:
    site, task = rng.integers(0, SITES, size), rng.integers(0, len(grid["cost"]), size)
    cores = np.where(grid["multi"][task], 8, 1)
    events = np.round(grid["events"][task] * rng.uniform(0.7, 1.3, size))
    cpu_s = events * grid["cost"][task] / grid["speed"][site] * rng.lognormal(0.0, 0.1, size)
    # Long enough to pass the cleaning rules whatever the task, and as efficient as jobs are.
    wall_s = np.maximum(cpu_s / cores / 0.9, 61.0)
    midnight = int(datetime.combine(day, time(), UTC).timestamp()) * 1_000_000
    columns = {
        "job_id": pa.array(np.arange(first, first + size)).cast(pa.string()),
        "task_id": _texts([f"{15_000_000 + number}" for number in range(len(grid["cost"]))], task),
        "queue": _texts([f"SITE_{number:03d}_QUEUE" for number in range(SITES)], site),
        "cpu_raw": _texts([model.raw[0] for model in CPU_MODELS[:_CPU_MODELS]], site % _CPU_MODELS),
        "processing_type": _texts(_TYPES, task % len(_TYPES)),
        "state": pa.repeat(pa.scalar("finished"), size),
        "end_time": pa.array(midnight + rng.integers(0, 86_400_000_000, size)).cast(
            pa.timestamp("us", tz="UTC")
        ),
        "cores": pa.array(cores),
        "events": pa.array(events.astype(np.int64)),
        "cpu_s": pa.array(cpu_s),
        "wall_s": pa.array(wall_s),
        "hs06_s": pa.array(wall_s * cores * grid["declared"][site]),
    }
    return pa.record_batch(columns)


def _texts(names: list[str] | tuple[str, ...], codes: np.ndarray) -> pa.Array:
    return pa.array(names).take(pa.array(codes))


def main() -> None:
    """Write the jobs and say what they are, as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--jobs-per-task", type=int, default=JOBS_PER_TASK)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(json.dumps(write_jobs(args.path, args.jobs, args.days, args.jobs_per_task, args.seed)))


if __name__ == "__main__":
    main()
