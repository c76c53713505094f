"""Jobs with everything that scores need, in every combination of missing and strange values."""

import random
from datetime import timedelta
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.tables import Table
from esjobs.schema.issues import FOOTPRINTS, ISSUES, MEASURES
from esjobs.store.base import JobStore
from tests.contract.jobs import START, Row, day, job, put

CPUS = (
    "Intel(R) Xeon(R) CPU E5-2697 v3 @ 2.60GHz",
    "Intel(R) Xeon(R) Gold 6126 CPU @ 2.60GHz",
    "AMD EPYC 9654 96-Core Processor",
    "AMD EPYC 7302 32-Core Processor 512 KB HT 2-Sockets+AVX2",
    "VIA Nano 3000",
    None,
)


def made_jobs(number: int, seed: int = 1, days: int = 3) -> list[Row]:
    """Jobs of some users over some days."""
    chance = random.Random(seed)
    return [_job(chance, n, days) for n in range(number)]


def _job(chance: random.Random, number: int, days: int) -> Row:
    cores, wall = chance.choice([1, 8, 28]), chance.uniform(600, 40_000)
    cycles = wall * cores * 2.5e9
    counters = {
        "uops_retired.retire_slots": 4 * cycles * chance.uniform(0.05, 0.9),
        "cpu_clk_unhalted.thread_any": 2 * cycles,
        "cpu_clk_unhalted.thread": cycles,
        "cycle_activity.stalls_ldm_pending": cycles * chance.uniform(0.1, 1.2),
        "cycle_activity.stalls_mem_any": cycles * chance.uniform(0.1, 0.9),
        "resource_stalls.sb": cycles * chance.uniform(0, 0.2),
        "ex_ret_ops": 6 * cycles * chance.uniform(0.05, 0.9),
        "ls_not_halted_cyc": cycles,
    }
    values: dict[str, Any] = {
        "end_time": START + timedelta(hours=chance.uniform(0, 24 * days - 0.01)),
        "cpu_raw": chance.choice(CPUS),
        "user": chance.choice(["ann", "bob", "eve", None]),
        "project": chance.choice(["physics", "chemistry"]),
        "application": chance.choice(["lammps", "vasp", None]),
        "cores": cores,
        "wall_s": wall,
        "cpu_s": wall * cores * chance.choice([chance.uniform(0.05, 1.0), 1.7]),
        "nodes": chance.choice([None, 1, 4]),
        "smt": chance.choice([True, False, None]),
        "gpus": chance.choice([None, 0, 4]),
        "requested_wall_s": chance.choice([None, 43_200.0]),
        "requested_memory_b": chance.choice([None, 64e9]),
        "requested_cores": chance.choice([None, cores, 2 * cores]),
        "max_rss_b": 3e10,
        "max_pss_b": chance.choice([None, 2e10]),
        "counters": None if chance.random() < 0.2 else list(counters.items()),
    }
    return job(number, **{"max_rss_b": 3e10, **values})


def put_all(store: JobStore, rows: list[Row]) -> None:
    """Put them as one load."""
    put(store, "made", *rows)


def detected(
    store: JobStore,
    number: int,
    issues: list[Row] | None = None,
    measures: list[Row] | None = None,
    **footprint: float,
) -> None:
    """Make detection leave issues, measures and footprints (mean by metric, of job 1) on a day."""
    for table, rows in (
        (ISSUES, issues or []),
        (MEASURES, measures or []),
        (FOOTPRINTS, [{"job_id": "1", "metric": name, "mean": mean} for name, mean in footprint.items()]),
    ):
        full = [{"day": day(number), "source": "panda", **row} for row in rows]
        store.publish([store.replace(table, str(day(number)), [batch_of(table, full)])])


def batch_of(table: Table, rows: list[Row]) -> pa.RecordBatch:
    """Rows of a table; what is not named is null."""
    return pa.RecordBatch.from_pylist(rows, schema=table_schema(table))
