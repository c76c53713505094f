"""Jobs of one day of the made-up grid, in batches of Arrow columns.

Each batch covers a slice of the day and has random numbers of its own, so that memory is bounded by the
batch and not by the day. Jobs are ordered by their end time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.records.demo.tasks import KINDS, MULTI_CORES, Births, transformation
from esjobs.records.demo.truth import CpuTruth, QueueTruth

BATCH_ROWS = 65_536
DAY_S = 86_400
JOB_SPREAD = 0.04
"""Width of the scatter of CPU time from job to job, in ln."""
_MASTER_USERS = ("producer", "validator", "analyst-a", "analyst-b")
_FIRST_JOB_ID = 1_000_000_000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIRTY: tuple[tuple[str, float], ...] = (
    ("failed", 0.012),
    ("state missing", 0.003),
    ("no CPU time", 0.003),
    ("no events", 0.003),
    ("cores missing", 0.002),
    ("efficiency above 2", 0.002),
    ("wall time of 5 s", 0.002),
    ("task missing", 0.002),
    ("CPU string missing", 0.003),
)
"""Defects of rows, with the fraction of rows that have each; a row has one defect at most."""
_DEFECT_EDGES = np.cumsum([fraction for _, fraction in DIRTY])


def _defect(name: str) -> int:
    return [defect_name for defect_name, _ in DIRTY].index(name)


@dataclass(frozen=True)
class Hosts:
    """The queues as arrays.

    ``mixture_edges``: cumulative fractions of CPU models (4 x queues), ``models``: their indices (queues x
    5).
    """

    names: pa.Array
    raw: pa.Array
    mixture_edges: Floats
    models: Ints
    newer: Floats
    speed: Floats
    efficiency: Floats
    events_factor: Floats
    corepower: Floats

    @classmethod
    def of(cls, queues: Sequence[QueueTruth], cpus: Sequence[CpuTruth]) -> "Hosts":
        """Collect the columns from queues and CPU models; a missing corepower becomes NaN."""
        number = {cpu.name: n for n, cpu in enumerate(cpus)}
        width = max(len(queue.mixture) for queue in queues)
        edges = np.full((len(queues), width), np.inf)
        models = np.zeros((len(queues), width), np.int64)
        for n, queue in enumerate(queues):
            parts = np.cumsum([part for _, part in queue.mixture])
            edges[n, : len(parts) - 1] = parts[:-1]
            models[n, : len(parts)] = [number[name] for name, _ in queue.mixture]
        return cls(
            names=pa.array([queue.name for queue in queues], pa.string()),
            raw=pa.array([raw for cpu in cpus for raw in cpu.raw], pa.string()),
            mixture_edges=np.ascontiguousarray(edges.T[:-1]),
            models=models,
            newer=np.asarray([queue.newer_pilot for queue in queues]),
            speed=np.asarray([cpu.speed for cpu in cpus]),
            efficiency=np.asarray([queue.efficiency for queue in queues]),
            events_factor=np.asarray([queue.events_factor for queue in queues]),
            corepower=np.asarray([np.nan if q.declared is None else q.declared for q in queues]),
        )


@dataclass(frozen=True)
class Shift:
    """The work of one day: payloads of several days of birth, and cells (payload x queue) with jobs.

    ``draw`` holds each cell as often as it is probable, so that one random index picks a cell.
    """

    task_id: pa.Array
    kind: pa.Array
    transformation: pa.Array
    project: pa.Array
    user: Ints
    multi: NDArray[np.bool_]
    work: Floats
    fixed: Floats
    events: Floats
    spread: Floats
    draw: Ints
    payload: Ints
    queue: Ints
    interaction: Floats
    release: pa.Array


def shift(day_births: Sequence[tuple[int, Births]], n_jobs: int) -> Shift:
    """Join the births of several days, as (age in days, births), to the work of today.

    Probabilities are rounded to 1/16 job.
    """
    lots = [lot for _, lot in day_births]

    def joined(column: str) -> Any:
        return np.concatenate([getattr(lot, column) for lot in lots])

    weights = np.concatenate([lot.sizes(age) for age, lot in day_births])
    payload, queue = np.nonzero(weights)
    probability = weights[payload, queue]
    kinds, merging = joined("kind"), joined("merging")
    task_id = [name for lot in lots for name in lot.task_id]
    programs = [transformation(int(k), bool(m)) for k, m in zip(kinds, merging, strict=True)]
    # a table of slots makes drawing a payload one lookup per job
    slots = min(max(16 * n_jobs, 1 << 16), 1 << 20)
    edges = np.rint(np.cumsum(probability) * (slots / probability.sum())).astype(np.int64)
    return Shift(
        task_id=pa.array(task_id, pa.string()),
        kind=pa.array([KINDS[k].name for k in kinds], pa.string()),
        transformation=pa.array(programs, pa.string()),
        project=pa.array([KINDS[k].project for k in kinds], pa.string()),
        user=np.asarray([int(name) % len(_MASTER_USERS) for name in task_id]),
        multi=joined("multi"),
        work=joined("work"),
        fixed=joined("fixed"),
        events=joined("events"),
        spread=joined("spread"),
        draw=np.repeat(np.arange(len(edges)), np.diff(edges, prepend=0)),
        payload=payload,
        queue=queue,
        interaction=joined("interaction")[payload, queue],
        release=pa.array([lot.release for lot in lots for _ in lot.task_id], pa.string()),
    )


def batches(
    seed: int, day: date, n_jobs: int, running: Shift, hosts: Hosts, ids_per_day: int
) -> Iterator[pa.RecordBatch]:
    """Yield the jobs that end on a day; ids count up with the end time, ``ids_per_day`` keeps days apart."""
    first_id = _FIRST_JOB_ID + day.toordinal() * ids_per_day
    midnight = int(datetime.combine(day, time(0), UTC).timestamp())
    for number, start in enumerate(range(0, n_jobs, BATCH_ROWS)):
        stop = min(start + BATCH_ROWS, n_jobs)
        rng = np.random.default_rng([seed, 2, day.toordinal(), number])
        # each batch ends in its own slice of the day: sorted within, all are in order
        slice_s = (start * DAY_S // n_jobs, stop * DAY_S // n_jobs)
        end = np.sort(rng.integers(slice_s[0], max(slice_s[1], slice_s[0] + 1), stop - start)) + midnight
        ids = np.arange(start, stop) + first_id
        yield _batch(rng, ids, end, running, hosts, f"grid-{day.isoformat()}", start)


def _batch(
    rng: np.random.Generator, ids: Ints, end: Ints, running: Shift, hosts: Hosts, origin: str, first_row: int
) -> pa.RecordBatch:
    n = len(ids)
    cell = running.draw[rng.integers(0, len(running.draw), n)]
    payload, queue = running.payload[cell], running.queue[cell]
    position = np.zeros(n, np.int64)
    drawn = rng.random(n)
    # position of a draw among the cumulative fractions, for all jobs at once
    for edge in hosts.mixture_edges:
        position += drawn >= edge[queue]
    model = hosts.models[queue, position]
    newer = rng.random(n) < hosts.newer[queue]
    noise = rng.standard_normal((7, n))

    cores = np.where(running.multi[payload], MULTI_CORES, 1)
    events = running.events[payload] * hosts.events_factor[queue]
    events = np.maximum(np.rint(events * np.exp(running.spread[payload] * noise[0])), 1.0)
    # the model that the fits have to find again: level x (start-up cost + events) / speed
    cpu = running.work[payload] * (running.fixed[payload] + events) / hosts.speed[model]
    cpu = cpu * running.interaction[cell] * np.exp(JOB_SPREAD * noise[1])
    used = (hosts.efficiency[queue] * np.exp(0.05 * noise[2])).clip(0.05, 0.995)
    wall = np.ceil(cpu / (cores * used))
    cpu = np.rint(cpu)

    defect = np.searchsorted(_DEFECT_EDGES, rng.random(n), side="right")
    failed = defect == _defect("failed")
    # every other failed job has written no events
    events[failed & (ids % 2 == 0) | (defect == _defect("no events"))] = 0.0
    cpu[defect == _defect("no CPU time")] = 0.0
    wall[failed] = np.ceil(wall[failed] * 0.6)
    cpu[failed] = np.rint(cpu[failed] * 0.5)
    # as records with a wrong number of cores look
    greedy = defect == _defect("efficiency above 2")
    cpu[greedy] = np.ceil(wall[greedy] * cores[greedy] * (2.5 + noise[2][greedy].clip(-0.4, 3.0)))
    brief = defect == _defect("wall time of 5 s")
    wall[brief], cpu[brief] = 5.0, 4.0
    hs06 = np.rint(wall * cores * hosts.corepower[queue])

    stage_in = np.minimum(np.rint(40.0 * np.exp(0.7 * noise[3])), np.floor(wall / 4))
    stage_out = np.minimum(np.rint(25.0 * np.exp(0.7 * noise[4])), np.floor(wall / 4))
    waited = np.rint(1800.0 * np.exp(1.1 * noise[5]))
    memory = np.rint((6e8 + 9e8 * cores) * np.exp(0.12 * noise[6]))
    output = np.rint(2e4 * events * np.exp(0.2 * noise[4]))
    fetched = np.rint(1e7 + 3e4 * events)
    started = end - wall.astype(np.int64)
    columns: dict[str, pa.Array] = {
        "source": _constant("demo", n),
        "job_id": pa.array(ids).cast(pa.string()),
        "task_id": _pick(running.task_id, payload, defect == _defect("task missing")),
        "queue": _pick(hosts.names, queue),
        "cpu_raw": _pick(hosts.raw, 2 * model + newer, defect == _defect("CPU string missing")),
        "processing_type": _pick(running.kind, payload),
        "transformation": _pick(running.transformation, payload),
        "release": _pick(running.release, payload),
        "state": _pick(_STATES, failed.astype(np.int64), defect == _defect("state missing")),
        "user": _pick(_USERS, running.user[payload]),
        "project": _pick(running.project, payload),
        "submit_time": _times(started - waited.astype(np.int64)),
        "start_time": _times(started),
        "end_time": _times(end),
        "cores": pa.array(cores, mask=defect == _defect("cores missing")),
        "events": pa.array(events.astype(np.int64)),
        "cpu_s": pa.array(cpu),
        "wall_s": pa.array(wall),
        "hs06_s": pa.array(hs06, mask=np.isnan(hs06)),
        "queue_s": pa.array(waited),
        "stagein_s": pa.array(stage_in),
        "exe_s": pa.array(wall - stage_in - stage_out),
        "stageout_s": pa.array(stage_out),
        "max_rss_b": pa.array(memory),
        "avg_rss_b": pa.array(np.rint(memory * 0.8)),
        "max_pss_b": pa.array(np.rint(memory * 0.9)),
        "avg_pss_b": pa.array(np.rint(memory * 0.7)),
        "max_vmem_b": pa.array(memory + 2e9),
        "read_b": pa.array(np.rint(fetched * 1.1)),
        "written_b": pa.array(np.rint(output * 1.3)),
        "input_b": pa.array(fetched),
        "output_b": pa.array(output),
        "failed_attempts": pa.array((noise[3] > 2.0).astype(np.int64)),
        "origin_file": _constant(origin, n),
        "origin_line": pa.array(np.arange(first_row + 1, first_row + n + 1)),
    }
    # what the grid says nothing of is missing
    arrays = [columns[item.name] if item.name in columns else pa.nulls(n, item.type) for item in PUT_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=PUT_SCHEMA)


_STATES = pa.array(["finished", "failed"], pa.string())
_USERS = pa.array(_MASTER_USERS, pa.string())


def _pick(values: pa.Array, codes: Ints, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    indices = pa.array(codes.astype(np.int32), mask=missing)
    return pa.DictionaryArray.from_arrays(indices, values).cast(pa.string())


def _constant(value: str, n: int) -> pa.Array:
    return _pick(pa.array([value], pa.string()), np.zeros(n, np.int64))


def _times(seconds: Ints) -> pa.Array:
    return pa.array(seconds * 1_000_000).cast(PUT_SCHEMA.field("end_time").type)
