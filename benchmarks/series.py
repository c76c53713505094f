"""Stored series: room on the disk, and reading them back, beside a column of lists and Parquet.

    python -m benchmarks.series --jobs 100000 --out benchmarks/results/series.md

Made-up series of jobs go into a store as the ingest step writes them, into a DuckDB table with a column of
lists, and into a Parquet file with such a column. All three are read back into the same arrays, in turns;
their sums are compared. Ratios are of processor seconds of one run.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.machine import describe, load, publish
from benchmarks.store_table import table
from esjobs.core.arrow import table_schema
from esjobs.records.series.blocks import blocks
from esjobs.records.series.packing import pack, slot
from esjobs.schema.catalogue import TABLES
from esjobs.schema.series import SERIES
from esjobs.store.duck.store import DuckStore

METRICS = ("cpu_load", "mem_used_b", "mem_bw_b_s", "flops_s", "ipc", "net_b_s", "read_b_s", "gpu_load")
START = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 10
STEP_S = 30.0
SLICE = 5000
"""Jobs written at a time."""

Matrix = npt.NDArray[np.float32]


def made_up(metric: str, rng: np.random.Generator, jobs: int, samples: int) -> Matrix:
    """Series of one metric: most of them noise that nothing compresses, as that of real counters."""
    noise = rng.random((jobs, samples), np.float32)
    match metric:
        case "mem_used_b":
            return np.cumsum(noise * 1e8, axis=1, dtype=np.float64).astype(np.float32)
        case "read_b_s":
            return np.where(noise > 0.9, noise * 1e9, 0).astype(np.float32)
        case "gpu_load":
            # one job in four has a GPU that does nothing
            return np.where(rng.random((jobs, 1)) < 0.25, np.float32(0), np.round(noise, 2)).astype(
                np.float32
            )
        case "mem_bw_b_s" | "flops_s" | "net_b_s":
            return (noise * 1e11).astype(np.float32)
    return np.round(noise, 2)


def batches(jobs: int, samples: int, seed: int) -> Iterator[tuple[pa.RecordBatch, Matrix]]:
    """Rows of the table for some jobs, and their samples."""
    rng = np.random.default_rng(seed)
    schema = table_schema(SERIES)
    for first in range(0, jobs, SLICE):
        count = min(SLICE, jobs - first)
        numbers = np.arange(first, first + count)
        ids = [str(number) for number in numbers]
        ends = [START + timedelta(days=DAYS * int(number) / jobs) for number in numbers]
        values = np.stack([made_up(metric, rng, count, samples) for metric in METRICS], axis=1)
        flat = values.reshape(-1, samples)
        rows = len(METRICS)
        columns: dict[str, Any] = {
            "load_id": ["made-up"] * len(flat),
            "source": ["made-up"] * len(flat),
            "job_id": [job for job in ids for _ in METRICS],
            "end_time": [end for end in ends for _ in METRICS],
            "metric": list(METRICS) * count,
            "scope": ["job"] * len(flat),
            "unit": [""] * len(flat),
            "start_time": [end - timedelta(hours=1) for end in ends for _ in METRICS],
            "step_s": [STEP_S] * len(flat),
            "n_samples": [samples] * len(flat),
            "packed": [pack(row) for row in flat],
            "n_gaps": [0] * len(flat),
            "remark": [None] * len(flat),
            "day": [end.date() for end in ends for _ in range(rows)],
            "slot": [slot("made-up", job) for job in ids for _ in range(rows)],
            "loaded_at": [START] * len(flat),
        }
        yield pa.RecordBatch.from_pydict(columns, schema=schema), flat


def fill(folder: Path, jobs: int, samples: int, seed: int, *, beside: bool) -> dict[str, float]:
    """Write the three; processor seconds of making and packing are not told apart."""
    list_type = pa.list_(pa.float32())
    store = DuckStore(folder / "packed.duckdb", tables=TABLES)
    others = duckdb.connect(str(folder / "lists.duckdb")) if beside else None
    writer: pq.ParquetWriter | None = None
    began = time.process_time()

    def stream() -> Iterator[pa.RecordBatch]:
        nonlocal writer
        for batch, flat in batches(jobs, samples, seed):
            yield batch
            if others is None:
                continue
            offsets = np.arange(0, flat.size + 1, samples, dtype=np.int32)
            lists = pa.ListArray.from_arrays(offsets, flat.ravel()).cast(list_type)
            plain = pa.Table.from_batches([batch])
            plain = plain.set_column(plain.schema.get_field_index("packed"), "samples", lists)
            plain = plain.set_column(
                plain.schema.get_field_index("end_time"),
                "end_time",
                plain["end_time"].cast(pa.timestamp("us")),
            ).drop_columns(["start_time", "loaded_at"])
            others.register("incoming", plain)
            others.execute("CREATE TABLE IF NOT EXISTS series AS SELECT * FROM incoming LIMIT 0")
            others.execute("INSERT INTO series SELECT * FROM incoming")
            others.unregister("incoming")
            if writer is None:
                writer = pq.ParquetWriter(folder / "lists.parquet", plain.schema, compression="zstd")
            writer.write_table(plain)

    store.publish([store.replace(SERIES, "made-up", stream())])
    store.close()
    written = time.process_time() - began
    if others is not None and writer is not None:
        others.close()
        writer.close()
    return {"write_s": written}


def of_store(folder: Path) -> tuple[int, float]:
    """Read everything by the way that esjobs reads: how many series, and the sum of the samples."""
    store = DuckStore(folder / "packed.duckdb", tables=TABLES, threads=1)
    count, total = 0, 0.0
    for block in blocks(store, None, METRICS):
        for array in block.values.values():
            count += array.shape[0] * array.shape[1]
            total += float(array.sum(dtype=np.float64))
    store.close()
    return count, total


def of_lists(folder: Path) -> tuple[int, float]:
    """The column of lists, day by day."""
    connection = duckdb.connect(str(folder / "lists.duckdb"), read_only=True)
    connection.execute("SET threads = 1")
    days = [day for (day,) in connection.execute("SELECT DISTINCT day FROM series ORDER BY day").fetchall()]
    count, total = 0, 0.0
    for day in days:
        rows = connection.execute(
            "SELECT source, job_id, metric, samples FROM series WHERE day = ?", [day]
        ).to_arrow_table()
        one, of_day = _arrays(rows)
        count, total = count + one, total + of_day
    connection.close()
    return count, total


def of_parquet(folder: Path) -> tuple[int, float]:
    """The Parquet file, row group by row group."""
    file = pq.ParquetFile(folder / "lists.parquet")
    count, total = 0, 0.0
    for number in range(file.num_row_groups):
        rows = file.read_row_group(number, ["source", "job_id", "metric", "samples"], use_threads=False)
        one, of_group = _arrays(rows)
        count, total = count + one, total + of_group
    return count, total


def _arrays(rows: pa.Table) -> tuple[int, float]:
    """The samples by metric as arrays (jobs, samples)."""
    rows = rows.combine_chunks()
    samples = rows.column("samples").combine_chunks()
    flat = samples.flatten().to_numpy().reshape(len(samples), -1)
    metric = rows.column("metric").combine_chunks().dictionary_encode().indices.to_numpy()
    job = rows.column("job_id").combine_chunks().dictionary_encode().indices.to_numpy()
    count, total = 0, 0.0
    for number in np.unique(metric):
        chosen = metric == number
        array = np.full((int(job.max()) + 1, flat.shape[1]), np.nan, np.float32)
        array[job[chosen]] = flat[chosen]
        count += int(chosen.sum())
        total += float(np.nansum(array, dtype=np.float64))
    return count, total


def measure(folder: Path, repeat: int, *, beside: bool) -> dict[str, Any]:
    """Processor seconds of each way, in turns; the answers agree, or it raises."""
    ways: dict[str, Callable[[Path], tuple[int, float]]] = {"store": of_store}
    if beside:
        ways |= {"lists": of_lists, "parquet": of_parquet}
    runs: dict[str, list[float]] = {name: [] for name in ways}
    answers: dict[str, tuple[int, float]] = {}
    peak = 0
    for _ in range(repeat):
        for name, way in ways.items():
            began = time.process_time()
            answers[name] = way(folder)
            runs[name].append(time.process_time() - began)
            if name == "store" and not peak:
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    (count, total), *others = answers.values()
    for other_count, other_total in others:
        if other_count != count or abs(other_total / total - 1) > 1e-9:
            raise SystemExit(f"the ways disagree: {answers}")
    sizes = {
        name: (folder / file).stat().st_size
        for name, file in (
            ("store", "packed.duckdb"),
            ("lists", "lists.duckdb"),
            ("parquet", "lists.parquet"),
        )
        if (folder / file).exists()
    }
    return {"series": count, "cpu_s": runs, "size_b": sizes, "peak_b": peak}


def render(command: str, found: dict[str, Any], before: list[float]) -> str:
    """The page in Markdown."""
    machine = describe()
    count = found["series"]
    titles = {
        "store": "packed, read by `blocks()`",
        "lists": "DuckDB, a column of lists (FLOAT[])",
        "parquet": "Parquet (zstd), a column of lists",
    }
    base = median(found["cpu_s"]["store"])
    rows = [
        (
            titles[name],
            f"{found['size_b'][name] / 1e9:.3f}",
            f"{found['size_b'][name] / count:.0f}",
            f"{median(runs):.2f}",
            f"{count / median(runs):,.0f}",
            f"{median(runs) / base:.2f}",
        )
        for name, runs in found["cpu_s"].items()
    ]
    head = ("way", "GB on disk", "bytes a series", "processor s to read", "series/s", "relative")
    setting = (
        f"`{command}`; {count:,} series ({found['jobs']:,} jobs, {len(METRICS)} metrics, {found['samples']} "
        f"samples); {machine['cpu']}, python {machine['python']}, duckdb {machine['duckdb']}, one thread. "
        f"Load average before {before[0]:.1f}, after {load()[0]:.1f}."
    )
    what = (
        "Each way ends with one 32-bit array (jobs, samples) per metric; `blocks()` also chooses the newest "
        "load and the finest scope and lays the units side by side. Peak memory of the process after the "
        f"first reading by `blocks()`: {found['peak_b'] / 1e9:.2f} GB. Making, packing and writing "
        f"everything took {found['write_s']:.0f} processor seconds."
    )
    scaled = found["size_b"]["store"] / count * 8e6 / 1e9
    goal = (
        f"1,000,000 jobs of 8 metrics and 120 samples: {scaled:.2f} GB at this size a series (at most 6); "
        f"{count / base:,.0f} series a processor second (at least 200,000)."
    )
    return "\n\n".join(["# Stored series", setting, table(head, rows), what, goal]) + "\n"


def main() -> None:
    """Write, read, tell."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=120)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="only the store, nothing beside it")
    parser.add_argument("--folder", type=Path, help="where files are made, a temporary folder by default")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/series.md"))
    args = parser.parse_args()
    before = load()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        found = fill(folder, args.jobs, args.samples, args.seed, beside=not args.alone)
        found |= measure(folder, args.repeat, beside=not args.alone)
    found |= {"jobs": args.jobs, "samples": args.samples}
    command = " ".join(["python -m benchmarks.series", *sys.argv[1:]])
    publish(args.out, render(command, found, before), {**found, "machine": describe()})


if __name__ == "__main__":
    main()
