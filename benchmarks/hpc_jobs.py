"""What a month of an HPC centre costs: its records are loaded, judged and scored.

    python -m benchmarks.hpc_jobs --jobs 1000000 --out benchmarks/results/hpc_jobs.md

Jobs of 30 days with five hardware counters each; every step is a process of its own, whose processor time and
largest memory are taken. Costs per million jobs are scaled from the measured number, which holds where a step
takes a day at a time.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.child import run
from benchmarks.machine import describe, load

Made = TypeVar("Made")

_DAYS = 30
_START = np.datetime64("2025-03-01T00:00:00", "us")
_CPUS = np.array(
    ["Intel(R) Xeon(R) CPU E5-2697 v3 @ 2.60GHz", "AMD EPYC 9654 96-Core Processor", None], object
)
_COUNTERS = (
    *("uops_retired.retire_slots", "cpu_clk_unhalted.thread_any", "cpu_clk_unhalted.thread"),
    *("cycle_activity.stalls_ldm_pending", "resource_stalls.sb"),
)
_STEPS = {
    "ingest": ("ingest", "jobs", "{jobs}"),
    "detect": ("detect",),
    "score": ("score",),
}


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/hpc_jobs.md"))
    parser.add_argument("--sampled", type=int, default=10_000, help="jobs with time series")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.write_text(page(args.jobs, args.sampled, args.seed))


def apart(make: Callable[..., Made], *arguments: object) -> Made:
    """Return what a function makes in a process of its own: the parent of measured ones must stay small."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(make, *arguments).result()


def write_jobs(path: Path, number: int, seed: int) -> None:
    """Write records of jobs."""
    pq.write_table(made_jobs(number, seed), path)


def made_jobs(number: int, seed: int) -> pa.Table:
    """Records of jobs, in the order of their ends."""
    rng = np.random.default_rng(seed)
    wall = np.minimum(rng.lognormal(8.0, 1.5, number), 172_800.0)
    ends = _START + np.sort(rng.uniform(0, _DAYS * 86_400e6, number)).astype("timedelta64[us]")
    cores = rng.choice([1, 8, 28, 128, 512], number)
    cycles = wall * cores * 2.5e9
    used = rng.beta(5, 2, number)
    shares = (4 * used, np.full(number, 2.0), np.ones(number), rng.uniform(0.1, 1.0, number), 0.1 * used)
    columns = {
        "source": pa.repeat("alpha", number),
        "job_id": pa.array(np.arange(number)).cast(pa.string()),
        "queue": rng.choice(["batch", "long", "gpu"], number),
        "user": np.char.add("u", rng.integers(0, 500, number).astype(str)),
        "project": np.char.add("p", rng.integers(0, 80, number).astype(str)),
        "job_name": np.char.add("run", rng.integers(0, 5000, number).astype(str)),
        "state": rng.choice(["finished", "failed", "timeout"], number, p=[0.9, 0.07, 0.03]),
        "start_time": pa.array(ends - (wall * 1e6).astype("timedelta64[us]"), pa.timestamp("us", "UTC")),
        "end_time": pa.array(ends, pa.timestamp("us", "UTC")),
        "wall_s": wall,
        "cpu_s": wall * cores * used,
        "cores": cores,
        "nodes": np.maximum(cores // 64, 1),
        "gpus": np.where(rng.random(number) < 0.1, 4, 0),
        "smt": rng.random(number) < 0.5,
        "requested_wall_s": np.minimum(4 * wall, 172_800.0),
        "requested_memory_b": cores * 4e9,
        "max_rss_b": cores * 4e9 * rng.beta(2, 5, number),
        "cpu_raw": pa.array(rng.choice(_CPUS, number, p=[0.6, 0.3, 0.1])),
        **{f"counter.{name}": cycles * share for name, share in zip(_COUNTERS, shares, strict=True)},
    }
    return pa.table(columns)


_RUNNING = 2000
_METRICS = ("cpu_load", "gpu_load", "mem_used_b", "swap_used_b", *(f"x_{number}" for number in range(16)))


def running_step(folder: Path, seed: int) -> list[str]:
    """Write the list and the samples of running jobs: 20 metrics, two hours at 30 s; return the command."""
    rng = np.random.default_rng(seed)
    now = int(time.time())
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now - 7200))
    head = "JobID|Cluster|Partition|User|State|Start|End|Timelimit|ReqTRES|NNodes"
    rows = [f"{job}|alpha|gpu|u|RUNNING|{start}|Unknown|1-00:00:00|mem=64G|2" for job in range(_RUNNING)]
    (folder / "running.txt").write_text("\n".join([head, *rows, ""]))
    n = 240
    jobs, metrics, times = np.indices((_RUNNING, len(_METRICS), n), np.int32).reshape(3, -1)
    samples = {
        "job_id": pa.DictionaryArray.from_arrays(jobs, pa.array(map(str, range(_RUNNING)))),
        "metric": pa.DictionaryArray.from_arrays(metrics, pa.array(_METRICS)),
        "time": now - 30.0 * (n - 1 - times),
        "value": rng.random(len(times)),
        "unit": pa.repeat("n1", len(times)),
    }
    pq.write_table(pa.table(samples), folder / "samples.parquet")
    (folder / "map.toml").write_text('source = "alpha"\n')
    files = f"jobs='{folder}/running.txt', series=['{folder}/samples.parquet'], map='{folder}/map.toml'"
    (folder / "esjobs.toml").write_text(f"[issues]\nrunning = {{every='5m', {files.replace('=', ' = ')}}}\n")
    return ["--config", f"{folder}/esjobs.toml", "detect", "--running"]


_POINTS = 500
# Jobs in a file of samples
_PER_FILE = 500


def sampled_files(folder: Path, number: int, seed: int) -> tuple[Path, list[Path]]:
    """Write records of jobs of 500 minutes, and files with a sample of each metric a minute."""
    rng = np.random.default_rng(seed)
    jobs = made_jobs(number, seed)
    wall = np.full(number, 60.0 * _POINTS)
    ends = jobs["end_time"].to_numpy().astype("datetime64[s]").astype(np.float64)
    starts = pa.array(((ends - wall) * 1e6).astype(np.int64)).cast(pa.timestamp("us", "UTC"))
    for name, column in (("wall_s", pa.array(wall)), ("start_time", starts)):
        jobs = jobs.set_column(jobs.column_names.index(name), name, column)
    records = folder / "sampled.parquet"
    pq.write_table(jobs, records)
    files = []
    for first in range(0, number, _PER_FILE):
        ids = np.arange(first, min(first + _PER_FILE, number))
        shape = (len(ids), len(_METRICS), _POINTS)
        job, metric, point = np.indices(shape, np.int32).reshape(3, -1)
        samples = {
            "job_id": pa.DictionaryArray.from_arrays(job, pa.array(map(str, ids))),
            "metric": pa.DictionaryArray.from_arrays(metric, pa.array(_METRICS)),
            "time": (ends - wall)[ids][job] + 60.0 * (point + 1),
            "value": rng.random(job.size),
            "unit": pa.repeat("n1", job.size),
        }
        files.append(folder / f"samples-{first}.parquet")
        pq.write_table(pa.table(samples), files[-1])
    return records, files


def page(number: int, sampled: int, seed: int) -> str:
    """Run the steps, and return their costs as a page."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        jobs = Path(folder) / "jobs.parquet"
        apart(write_jobs, jobs, number, seed)
        for name, words in _STEPS.items():
            store = f"duckdb:{folder}/jobs.duckdb"
            command = [sys.executable, "-m", "esjobs", "--store", store]
            spent = run([*command, *(word.format(jobs=jobs) for word in words)])
            million = spent.cpu_s * 1e6 / number
            memory = f"{spent.peak_b / 1e6:,.0f}"
            rows.append(f"| {name} | {spent.cpu_s:.1f} | {spent.wall_s:.1f} | {memory} | {million:.0f} |")
        spent = run(
            [sys.executable, "-m", "esjobs", "--store", store, *apart(running_step, Path(folder), seed)]
        )
        memory = f"{spent.peak_b / 1e6:,.0f}"
        rows.append(f"| a look at running jobs | {spent.cpu_s:.1f} | {spent.wall_s:.1f} | {memory} | |")
        store = f"duckdb:{folder}/sampled.duckdb"
        records, files = apart(sampled_files, Path(folder), sampled, seed)
        command = [sys.executable, "-m", "esjobs", "--store", store]
        run([*command, "ingest", "jobs", str(records)])
        for name, words in (
            ("ingest of series", ("ingest", "series", *map(str, files), "--set", "source=alpha")),
            ("detect, with series", ("detect",)),
        ):
            spent = run([*command, *words])
            memory = f"{spent.peak_b / 1e6:,.0f}"
            rows.append(f"| {name} | {spent.cpu_s:.1f} | {spent.wall_s:.1f} | {memory} | |")
    about = ", ".join(f"{name} {value}" for name, value in describe().items())
    return "\n".join(
        [
            "# Jobs of an HPC centre",
            "",
            f"{number:,} jobs of {_DAYS} days with {len(_COUNTERS)} counters, no time series, in an embedded "
            f"store. The last column is scaled. A look: {_RUNNING:,} running jobs, {len(_METRICS)} metrics "
            f"of 240 samples. Series: {sampled:,} jobs, {len(_METRICS)} metrics of {_POINTS} samples. "
            f"The machine was shared: load {load()[0]:.1f}. {about}.",
            "",
            "| step | processor, s | wall, s | largest memory, MB | processor s per million jobs |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "    python -m benchmarks.hpc_jobs --jobs " + str(number),
            "",
        ]
    )


if __name__ == "__main__":
    main()
