"""Scores from stored counters, beside a loop over jobs and beside pandas, in one run.

    python -m benchmarks.scores_counters --jobs 1000000 --out benchmarks/results/scores_counters.md

Jobs of four families of CPUs with six counted events each are stored in DuckDB. ``esjobs score`` reads them,
makes every score with its reasons, writes a row per job and publishes the days. Beside it the same two scores
are made of the same jobs, already in memory, in three ways: by the columns of esjobs, by a loop that makes
each job's formula with NumPy numbers, and by pandas (counters to columns by pivoting, then formulas). The
ways take turns, so that other programs slow all of them alike; ratios of processor seconds are what counts.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import esjobs
from benchmarks.machine import describe, load, publish
from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.query import Select
from esjobs.core.tables import columns
from esjobs.core.window import Window
from esjobs.records.names.cpu_models import resolve_names
from esjobs.scores.reasons import Reasons
from esjobs.scores.scoring import score_counters

START = datetime(2025, 6, 1, tzinfo=UTC)
MODELS = (
    "Intel(R) Xeon(R) CPU E5-2697 v3 @ 2.60GHz",
    "Intel(R) Xeon(R) Gold 6126 CPU @ 2.60GHz",
    "Intel(R) Xeon(R) Platinum 8480+",
    "AMD EPYC 9654 96-Core Processor",
)
EVENTS = tuple(
    columns(names)
    for names in (
        "uops_retired.retire_slots cpu_clk_unhalted.thread_any cpu_clk_unhalted.thread "
        "cycle_activity.stalls_ldm_pending resource_stalls.sb inst_retired.any",
        "uops_retired.retire_slots cpu_clk_unhalted.thread_any cpu_clk_unhalted.thread "
        "cycle_activity.stalls_mem_any resource_stalls.sb inst_retired.any",
        "uops_retired.slots topdown.slots topdown.memory_bound_slots "
        "cpu_clk_unhalted.thread inst_retired.any br_misp_retired.all_branches",
        "ex_ret_ops ls_not_halted_cyc de_no_dispatch_per_slot.backend_stalls "
        "ex_no_retire.load_not_complete ex_no_retire.not_complete ex_ret_instr",
    )
)
"""What is counted on each of the models; not all of it makes scores."""
BATCH = 65_536
DAYS = 10


def jobs_of(number: int, first: int, rows: int) -> pa.RecordBatch:
    """Some of so many jobs, spread over ten days."""
    rng = np.random.default_rng(first)
    family = rng.integers(0, len(MODELS), rows)
    keys = pa.array([name for events in EVENTS for name in events])
    place = (family[:, None] * 6 + np.arange(6)).ravel()
    values = rng.uniform(0.05, 0.9, (rows, 6)) * 1e13
    values[:, 1] = np.where(family < 2, 2e13, np.where(family == 2, 6e13, 1e13))
    counters = pa.MapArray.from_arrays(
        pa.array(np.arange(rows + 1) * 6, pa.int32()), keys.take(pa.array(place)), pa.array(values.ravel())
    )
    moments = START.timestamp() + (first + np.arange(rows)) * (DAYS * 86_400 / number)
    wall = rng.integers(600, 80_000, rows).astype(np.float64)
    given: dict[str, pa.Array] = {
        "source": pa.repeat(pa.scalar("cluster"), rows),
        "job_id": pa.array(np.arange(first, first + rows)).cast(pa.string()),
        "queue": pa.repeat(pa.scalar("batch"), rows),
        "user": pa.array([f"user{n}" for n in rng.integers(0, 300, rows)]),
        "cpu_raw": pa.array(MODELS).take(pa.array(family)),
        "end_time": pa.array((moments * 1e6).astype(np.int64)).cast(PUT_SCHEMA.field("end_time").type),
        "cores": pa.array(np.full(rows, 48)),
        "nodes": pa.array(rng.integers(1, 9, rows)),
        "smt": pa.array(rng.random(rows) < 0.5),
        "wall_s": pa.array(wall),
        "cpu_s": pa.array(wall * 48 * rng.uniform(0.2, 1, rows)),
        "counters": counters,
    }
    arrays = [given[item.name] if item.name in given else pa.nulls(rows, item.type) for item in PUT_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=PUT_SCHEMA)


def by_columns(jobs: pa.Table) -> dict[str, np.ndarray[Any, Any]]:
    """As the step does, without reading and writing."""
    models = pa.array(resolve_names(jobs.column("cpu_raw").to_pylist()), pa.string())
    counters = jobs.column("counters").combine_chunks()
    made = score_counters(counters, models, jobs.column("smt").combine_chunks(), Reasons())
    return {name: made.scores[name].value for name in ("score_cpu", "score_mem")}


def by_loop(jobs: pa.Table) -> dict[str, np.ndarray[Any, Any]]:
    """A job at a time: what one would write first."""
    cpu, mem = [], []
    for row in jobs.select(["cpu_raw", "smt", "counters"]).to_pylist():
        counts = {name: np.float64(value) for name, value in row["counters"]}
        pair = _scores_of(row["cpu_raw"], row["smt"], counts)
        cpu.append(float(np.clip(pair[0], 0, 100)))
        mem.append(float(np.clip(pair[1], 0, 100)))
    return {"score_cpu": np.array(cpu), "score_mem": np.array(mem)}


def _scores_of(model: str, smt: bool, counts: dict[str, Any]) -> tuple[Any, Any]:
    if "EPYC" in model:
        slots = 6 * counts["ls_not_halted_cyc"]
        share = counts["ex_no_retire.load_not_complete"] / counts["ex_no_retire.not_complete"]
        backend = counts["de_no_dispatch_per_slot.backend_stalls"]
        return 100 * (1 - counts["ex_ret_ops"] / slots), 100 * backend / slots * share
    if "8480" in model:
        slots = counts["topdown.slots"]
        retired, memory = counts["uops_retired.slots"], counts["topdown.memory_bound_slots"]
        return 100 * (1 - retired / slots), 100 * memory / slots
    cycles = counts["cpu_clk_unhalted.thread"]
    name = "cycle_activity.stalls_ldm_pending" if "E5" in model else "cycle_activity.stalls_mem_any"
    slots = 4 * counts["cpu_clk_unhalted.thread_any"] / (2 if smt else 1)
    stalls = np.minimum(cycles, counts[name]) + counts["resource_stalls.sb"]
    return 100 * (1 - counts["uops_retired.retire_slots"] / slots), 100 * stalls / cycles


def by_pandas(jobs: pa.Table) -> dict[str, np.ndarray[Any, Any]]:
    """Counters as long rows, pivoted to a column an event; then a formula per family."""
    counters = jobs.column("counters").combine_chunks()
    lengths = np.diff(counters.offsets.to_numpy())
    long = pd.DataFrame(
        {
            "job": np.repeat(np.arange(len(jobs)), lengths),
            "event": counters.keys.to_pandas(),
            "value": counters.items.to_pandas(),
        }
    )
    wide = long.pivot_table("value", "job", "event").reindex(range(len(jobs)))
    model = jobs.column("cpu_raw").to_pandas()
    smt = jobs.column("smt").to_pandas()
    cpu = pd.Series(np.nan, wide.index)
    mem = pd.Series(np.nan, wide.index)
    for word, loads in (
        ("E5", "cycle_activity.stalls_ldm_pending"),
        ("Gold", "cycle_activity.stalls_mem_any"),
    ):
        rows = wide[model.str.contains(word)]
        slots = 4 * rows["cpu_clk_unhalted.thread_any"] / np.where(smt[rows.index], 2, 1)
        cycles = rows["cpu_clk_unhalted.thread"]
        cpu[rows.index] = 100 * (1 - rows["uops_retired.retire_slots"] / slots)
        mem[rows.index] = 100 * (rows[loads].clip(upper=cycles) + rows["resource_stalls.sb"]) / cycles
    rows = wide[model.str.contains("8480")]
    cpu[rows.index] = 100 * (1 - rows["uops_retired.slots"] / rows["topdown.slots"])
    mem[rows.index] = 100 * rows["topdown.memory_bound_slots"] / rows["topdown.slots"]
    rows = wide[model.str.contains("EPYC")]
    slots = 6 * rows["ls_not_halted_cyc"]
    share = rows["ex_no_retire.load_not_complete"] / rows["ex_no_retire.not_complete"]
    cpu[rows.index] = 100 * (1 - rows["ex_ret_ops"] / slots)
    mem[rows.index] = 100 * rows["de_no_dispatch_per_slot.backend_stalls"] / slots * share
    return {"score_cpu": cpu.clip(0, 100).to_numpy(), "score_mem": mem.clip(0, 100).to_numpy()}


WAYS: dict[str, Callable[[pa.Table], dict[str, np.ndarray[Any, Any]]]] = {
    "columns of esjobs": by_columns,
    "loop over jobs": by_loop,
    "pandas": by_pandas,
}


def measure(folder: Path, number: int, some: int, repeats: int) -> dict[str, Any]:
    """Store the jobs, score them, and take the times of all ways on some of them, in turns."""
    window = Window.of_days(START.date(), (START + timedelta(days=DAYS - 1)).date())
    with esjobs.open(f"duckdb:{folder / 'scores.duckdb'}") as session:
        firsts = range(0, number, BATCH)
        session.store.put_jobs(
            (jobs_of(number, first, min(BATCH, number - first)) for first in firsts), "made up"
        )
        steps = []
        for _ in range(repeats):
            began, busy = time.perf_counter(), time.process_time()
            report = session.scores.compute(window, rebuild=True)
            steps.append((time.perf_counter() - began, time.process_time() - busy))
        known = {name: report.counts[f"{name} known"] for name in ("score_cpu", "score_mem")}
        names = ("cpu_raw", "smt", "counters")
        batches = list(
            session.store.select(Select(names, Window.of_days(window.first_day, window.first_day)))
        )
    jobs = pa.Table.from_batches(batches).slice(0, some)
    taken: dict[str, list[float]] = {name: [] for name in WAYS}
    answers: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
    for _ in range(repeats):
        for name, way in WAYS.items():
            busy = time.process_time()
            answers[name] = way(jobs)
            taken[name].append(time.process_time() - busy)
    for name, answer in answers.items():
        for score, values in answer.items():
            expected = answers["columns of esjobs"][score]
            assert np.allclose(values, expected, rtol=1e-9, atol=1e-9), (name, score)
    return {
        "machine": describe("pandas"),
        "load": load(),
        "jobs": number,
        "some": len(jobs),
        "repeats": repeats,
        "known": known,
        "step_wall_s": min(wall for wall, _ in steps),
        "step_cpu_s": min(busy for _, busy in steps),
        "ways_cpu_s": {name: min(seconds) for name, seconds in taken.items()},
    }


def render(measured: dict[str, Any]) -> str:
    """The numbers as a page."""
    machine, jobs, some = measured["machine"], measured["jobs"], measured["some"]
    wall, busy = measured["step_wall_s"], measured["step_cpu_s"]
    ours = measured["ways_cpu_s"]["columns of esjobs"]
    lines = [
        "# Scores from stored counters",
        "",
        f"{jobs:,} jobs of four families of CPUs, six counted events each, in DuckDB; the least of "
        f"{measured['repeats']} runs each, load {measured['load'][0]:.1f}. Made by "
        "`python -m benchmarks.scores_counters`.",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}; "
        + ", ".join(f"{name} {machine[name]}" for name in ("duckdb", "pyarrow", "numpy", "pandas"))
        + ".",
        "",
        "| `esjobs score`: jobs read, every score made, rows written and published | |",
        "|---|---|",
        f"| seconds | {wall:.1f} |",
        f"| processor seconds | {busy:.1f} |",
        f"| jobs a minute | {60 * jobs / wall:,.0f} |",
        f"| jobs a processor minute | {60 * jobs / busy:,.0f} |",
        "",
        f"The two scores of CPUs alone, of {some:,} jobs that are in memory; the answers agree to 1e-9:",
        "",
        "| way | processor s | jobs a processor second | of the columns of esjobs |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {taken:.2f} | {some / taken:,.0f} | {taken / ours:.1f} |"
        for name, taken in measured["ways_cpu_s"].items()
    ]
    left_out = "The columns of esjobs also make reasons, variants and the scores of GPUs."
    return "\n".join([*lines, "", left_out, ""])


def main() -> None:
    """Measure, write the table and the numbers behind it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--some", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/scores_counters.md"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), given.jobs, given.some, given.repeats)
    assert all(math.isfinite(value) for value in measured["ways_cpu_s"].values())
    publish(given.out, render(measured), measured)


if __name__ == "__main__":
    main()
