"""Writes the jobs of the big grid as canonical Parquet, and what was planted: nearly every job is a bucket.

500 sites with six CPU models each, 2000 tasks of 20 types at 60 sites each, half of the jobs of a task on
several cores, 30 days: 3 million jobs make 2.8 million daily buckets and a million sums of task key and CPU
model.
"""

import argparse
import json
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

FIRST_DAY = date(2026, 3, 1)
DAYS = 30
SITES, MODELS, TYPES, TASKS = 500, 200, 20, 2000
SITES_PER_TASK, MODELS_PER_SITE, MISDECLARED = 60, 6, 26
NOISE, INTERACTION, HONEST_SCATTER = 0.2, 0.03, 0.03

_BATCH = 1 << 17

Floats = npt.NDArray[np.float64]


def _names(level: str, number: int) -> list[str]:
    if level == "queue":
        return [f"SITE_{code:03d}_QUEUE" for code in range(number)]
    return [f"Intel(R) Xeon(R) CPU E5-{2000 + code} v4 @ 2.20GHz" for code in range(number)]


def _planted(rng: np.random.Generator) -> dict[str, Any]:
    """Sites, CPU models and tasks of the grid. ``k``: of the mean job of a site or CPU model."""
    of_site = np.array([rng.permutation(MODELS)[:MODELS_PER_SITE] for _ in range(SITES)])
    model, own = np.exp(rng.normal(0, 0.12, MODELS)), np.exp(rng.normal(0, 0.1, SITES))
    k = own / np.mean(1 / model[of_site], axis=1)
    number = np.bincount(of_site.ravel(), minlength=MODELS)
    pace = np.bincount(of_site.ravel(), np.repeat(1 / own, MODELS_PER_SITE), MODELS) / np.maximum(number, 1)
    wrong = np.ones(SITES)
    size = np.exp(rng.uniform(np.log(1.3), np.log(2.0), MISDECLARED))
    wrong[rng.permutation(SITES)[:MISDECLARED]] = np.where(rng.random(MISDECLARED) < 0.5, size, 1 / size)
    return {
        "of_site": of_site,
        "model": model,
        "own": own,
        "k": k,
        "k_of_model": np.where(number > 0, model / np.where(number > 0, pace, 1.0), np.nan),
        "wrong": wrong,
        "declared": np.round(10 * k * wrong * np.exp(rng.normal(0, HONEST_SCATTER, SITES)), 2),
        "at": np.array([rng.permutation(SITES)[:SITES_PER_TASK] for _ in range(TASKS)]),
        "level": np.exp(rng.uniform(np.log(20), np.log(200), TASKS)),
        "events": np.exp(rng.uniform(np.log(30), np.log(2000), TASKS)),
        "effect": rng.normal(0, INTERACTION, (TASKS, SITES_PER_TASK)),
    }


def _batch(
    rng: np.random.Generator, grid: dict[str, Any], first: int, size: int, first_day: int, days: int
) -> pa.RecordBatch:
    task, place = rng.integers(0, TASKS, size), rng.integers(0, SITES_PER_TASK, size)
    site = grid["at"][task, place]
    model = grid["of_site"][site, rng.integers(0, MODELS_PER_SITE, size)]
    cores = np.where(rng.random(size) < 0.5, 8, 1)
    events = np.maximum(np.rint(grid["events"][task] * np.exp(rng.normal(0, 0.3, size))), 1.0)
    noise = grid["effect"][task, place] + rng.normal(0, NOISE, size)
    cpu_s = events * grid["level"][task] / grid["own"][site] / grid["model"][model] * np.exp(noise)
    wall_s = np.maximum(cpu_s / cores / rng.uniform(0.85, 0.95, size), 61.0)
    midnight = int(datetime.combine(FIRST_DAY, time(), UTC).timestamp()) * 1_000_000
    day = first_day + rng.integers(0, days, size)
    ends = midnight + day * 86_400_000_000 + rng.integers(0, 86_400_000_000, size)
    texts = {
        "task_id": ([str(15_000_000 + number) for number in range(TASKS)], task),
        "queue": (_names("queue", SITES), site),
        "cpu_raw": ([f"s+{name} 20480 KB" for name in _names("cpu_model", MODELS)], model),
        "processing_type": ([f"type{number:02d}" for number in range(TYPES)], task % TYPES),
    }
    return pa.record_batch(
        {
            "job_id": pa.array(np.arange(first, first + size)).cast(pa.string()),
            **{name: pa.array(listed).take(pa.array(codes)) for name, (listed, codes) in texts.items()},
            "state": pa.repeat(pa.scalar("finished"), size),
            "end_time": pa.array(ends).cast(pa.timestamp("us", tz="UTC")),
            "cores": pa.array(cores),
            "events": pa.array(events.astype(np.int64)),
            "cpu_s": pa.array(cpu_s),
            "wall_s": pa.array(wall_s),
            "hs06_s": pa.array(wall_s * cores * grid["declared"][site]),
        }
    )


def write_jobs(path: Path, jobs: int, seed: int) -> dict[str, object]:
    """Write the jobs, some days after the others, as records come; what was planted. Memory: one batch."""
    rng = np.random.default_rng(seed)
    grid = _planted(rng)
    with pq.ParquetWriter(path, _batch(rng, grid, 0, 1, 0, 1).schema) as writer:
        for start in range(0, jobs, _BATCH):
            size = min(_BATCH, jobs - start)
            first_day, end = (
                DAYS * start // jobs,
                max(DAYS * (start + size) // jobs, DAYS * start // jobs + 1),
            )
            writer.write_batch(_batch(rng, grid, start, size, first_day, end - first_day))
    return {
        "window": f"{FIRST_DAY}/{FIRST_DAY + timedelta(DAYS)}",
        "jobs": jobs,
        "queue": {"name": _names("queue", SITES), "k": grid["k"].tolist(), "wrong": grid["wrong"].tolist()},
        "cpu_model": {"name": _names("cpu_model", MODELS), "k": grid["k_of_model"].tolist()},
    }


def main() -> None:
    """Write the jobs, and what was planted as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--jobs", type=int, default=3_000_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(json.dumps(write_jobs(args.path, args.jobs, args.seed)))


if __name__ == "__main__":
    main()
