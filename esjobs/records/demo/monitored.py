"""Monitoring data and requests of the synthetic jobs, with a truth that differs by user.

Counters are of every third job, as where multiplexing slows jobs down, on the CPUs whose events are known;
requests are of all jobs. Everything that a job was before stays as it is.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

RETIRING: Mapping[str, float] = {"producer": 0.42, "validator": 0.34, "analyst-a": 0.26, "analyst-b": 0.11}
"""The mean share of the pipeline that ends as useful work, by user: 1 - score_cpu / 100."""
STALLED: Mapping[str, float] = {"producer": 0.12, "validator": 0.20, "analyst-a": 0.31, "analyst-b": 0.55}
"""The mean share of cycles that waits for memory, by user: score_mem / 100."""
REQUESTED: Mapping[str, float] = {"producer": 1.3, "validator": 1.6, "analyst-a": 2.5, "analyst-b": 6.0}
"""Least ratio of requested to needed wall-clock time."""

# CPUs of the grid whose cores run two threads, whether or not a pilot writes so.
_SMT = "Xeon|EPYC"
_SCATTER = 0.06
_CLOCK_HZ = 2.5e9
_EVERY = 3
# What counts the cycles of cores, and what counts waiting for loads, by family of CPUs.
_EVENTS = {
    "hsw": ("cpu_clk_unhalted.thread_any", "cycle_activity.stalls_ldm_pending"),
    "skx": ("cpu_clk_unhalted.thread_any", "cycle_activity.stalls_mem_any"),
}
_CPUS = {
    "hsw": r"Xeon\(R\).*E5-\d+L? v[34] ",
    "skx": r"Xeon\(R\) (?:Bronze|Silver|Gold|Platinum) \d[12]\d\d ",
}


def monitored(jobs: pa.RecordBatch, rng: np.random.Generator) -> pa.RecordBatch:
    """Return the jobs with requests, SMT, application and, for some of them, counters."""
    rows = jobs.num_rows
    users = jobs.column("user").to_pylist()
    noise = rng.standard_normal((2, rows))
    retiring, stalled, requested = (
        np.array([planted[user] for user in users]) for planted in (RETIRING, STALLED, REQUESTED)
    )
    retiring = (retiring + _SCATTER * noise[0]).clip(0.01, 0.95)
    stalled = (stalled + _SCATTER * noise[1]).clip(0.01, 0.95)
    wall = jobs.column("wall_s").to_numpy()
    cores = jobs.column("cores").fill_null(1).to_numpy()
    raw = jobs.column("cpu_raw").fill_null("")
    added = {
        "smt": pc.match_substring_regex(raw, _SMT),
        "requested_wall_s": pa.array(np.ceil(wall * requested * rng.uniform(1.0, 1.3, rows) / 3600) * 3600),
        "requested_memory_b": pa.array(2e9 * cores),
        "requested_cores": jobs.column("cores"),
        "application": jobs.column("transformation"),
        "counters": _counters(jobs, raw, retiring, stalled),
    }
    columns = [added.get(item.name, jobs.column(item.name)) for item in jobs.schema]
    return pa.RecordBatch.from_arrays(columns, schema=jobs.schema)


def _counters(jobs: pa.RecordBatch, raw: pa.Array, retiring: np.ndarray, stalled: np.ndarray) -> pa.MapArray:
    counted = jobs.column("job_id").cast(pa.int64()).to_numpy() % _EVERY == 0
    cycles = jobs.column("cpu_s").to_numpy() * _CLOCK_HZ
    kind = np.full(jobs.num_rows, "", object)
    for name, pattern in _CPUS.items():
        kind[pc.match_substring_regex(raw, pattern).to_numpy(zero_copy_only=False)] = name
    counted &= (kind != "") & (cycles > 0)
    smt = pc.match_substring_regex(raw, _SMT).to_numpy(zero_copy_only=False)
    values = np.stack(
        [
            # four slots a cycle on these families
            np.rint(4 * cycles * retiring),
            # thread_any counts the cycles of a core for both of its threads
            cycles * np.where(smt, 2, 1),
            cycles,
            np.rint(cycles * 0.8 * stalled),
            np.rint(cycles * 0.2 * stalled),
        ],
        axis=1,
    )[counted]
    names = [
        name
        for cycles_of_cores, loads in _EVENTS.values()
        for name in (
            *("uops_retired.retire_slots", cycles_of_cores, "cpu_clk_unhalted.thread", loads),
            "resource_stalls.sb",
        )
    ]
    # the names of hsw come first, five of each family
    first = np.where(kind[counted] == "hsw", 0, 5)
    keys = pa.array(names).take(pa.array((first[:, None] + np.arange(5)).ravel()))
    offsets = np.concatenate([[0], np.cumsum(np.where(counted, 5, 0))])
    of_all = pa.array(offsets, pa.int32(), mask=np.append(~counted, False))
    return pa.MapArray.from_arrays(of_all, keys, pa.array(values.ravel()))
