"""A window may have many more buckets than fit into memory: what a fit holds grows with its rows."""

import subprocess
import sys
import tracemalloc
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.errors import TooLargeError
from esjobs.core.window import Window
from esjobs.publish.publication import rows_table
from esjobs.records.names.sites import Sites
from esjobs.records.tasks.memory import ROW_B, free_memory_b, require_room
from esjobs.records.tasks.sums import read_sums, with_sites
from esjobs.schema import jobs as job_tables
from esjobs.schema.catalogue import TABLES
from esjobs.speed.fit import fit
from esjobs.speed.fit_input import FitInputs
from esjobs.speed.mixed_tasks import CheckedBuckets
from esjobs.speed.settings import FitSettings
from esjobs.store.duck.store import DuckStore
from tests.messages import raised

SITES = 250
DAYS = [date(2026, 3, 1) + timedelta(number) for number in range(30)]
WINDOW = Window.of_days(DAYS[0], DAYS[-1])
LIMIT_B = 130.0  # twenty for each of three levels, and the sums by week


def buckets_of(day: date, tasks: int, rng: np.random.Generator) -> pa.Table:
    """Buckets of one job at 28 % of all sites and tasks, one CPU model a site: 8.5 a window and unit."""
    task, queue = np.nonzero(rng.random((tasks, SITES)) < 0.283)
    n = len(task)
    events = rng.integers(700, 1300, n).astype(float)
    cpu_s = events * (1 + queue / SITES) * rng.lognormal(0, 0.1, n)
    columns = {
        "day": [day] * n,
        "task_id": pa.array([f"15{number:06}" for number in range(tasks)]).take(pa.array(task)),
        "core_class": ["single"] * n,
        "queue": pa.array([f"SITE_{number:03}_QUEUE" for number in range(SITES)]).take(pa.array(queue)),
        "cpu_model": pa.array([f"Intel Xeon E5-26{number:02} v4" for number in range(40)]).take(
            pa.array(queue % 40)
        ),
        "processing_type": pa.array(["evgen", "simul"]).take(pa.array(task % 2)),
        "n_jobs": np.ones(n, np.int64),
        "events": events,
        "events_sq": events**2,
        "cpu_s": cpu_s,
        "cpu_s_sq": cpu_s**2,
        "events_cpu_s": events * cpu_s,
        "wall_s": cpu_s,
        "core_s": cpu_s,
        "cpe_sum": cpu_s / events,
        "cpe_sq": (cpu_s / events) ** 2,
    }
    return pa.table(columns, table_schema(job_tables.BUCKETS))


def filled(store: DuckStore, tasks: int) -> int:
    """Publish a month of buckets with their books; how many."""
    rng = np.random.default_rng(1)
    total = 0
    for day in DAYS:
        buckets = buckets_of(day, tasks, rng)
        book = {"day": day, "outcome": "binned", "kind": "binned", "n_jobs": buckets.num_rows}
        book["fingerprint"] = ""
        generations = [
            store.replace(job_tables.BUCKETS, str(day), buckets.to_batches()),
            store.replace(job_tables.DAYS, str(day), rows_table(job_tables.DAYS, [book]).to_batches()),
        ]
        store.publish(generations)
        total += buckets.num_rows
    return total


def peak_of_fit(store: DuckStore, min_bucket_jobs: int) -> int:
    """The largest memory that Python, NumPy and Arrow hold beside the store while a window is fitted."""
    settings = FitSettings(min_bucket_jobs=min_bucket_jobs, methods=("gamma",))
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    sums = with_sites(read_sums(store, WINDOW), Sites())
    inputs = FitInputs(sums, min_bucket_jobs)
    arrow = pa.total_allocated_bytes() - before
    fit(CheckedBuckets(sums, {}, 0), inputs, WINDOW, "run", settings, Sites())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return int(peak + arrow)


def test_a_fit_takes_a_few_bytes_per_bucket(tmp_path: Path) -> None:
    peaks, buckets = [], []
    for tasks in (60, 240):
        store = DuckStore(tmp_path / f"{tasks}.duckdb", tables=TABLES, memory_limit="200MB")
        buckets.append(filled(store, tasks))
        peaks.append(peak_of_fit(store, min_bucket_jobs=9))
        store.close()
    assert (peaks[1] - peaks[0]) / (buckets[1] - buckets[0]) < LIMIT_B


def test_a_fit_without_room_is_refused_before_it_begins() -> None:
    free = free_memory_b()
    assert free is not None
    assert free > 0
    require_room(1000)
    with raised(TooLargeError):
        require_room(free // ROW_B * 2)


def test_the_limit_of_the_process_counts() -> None:
    """As set by ``ulimit -v``, in a process of its own."""
    code = (
        "import resource\n"
        "from pathlib import Path\n"
        "from esjobs.records.tasks.memory import free_memory_b\n"
        "size = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size + 50_000_000, resource.RLIM_INFINITY))\n"
        "print(free_memory_b())\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 0 < int(said) <= 50_000_000
