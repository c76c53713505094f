"""Energy of jobs whose records have no joules, by their power series."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from esjobs.core import fields
from esjobs.core.query import Days, In
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.jobs.conditions import job_filters
from esjobs.records.jobs.resolution import select
from esjobs.records.series.energy import CPU_POWER, GPU_POWER, POWERS, joules
from esjobs.schema.issues import FOOTPRINTS
from esjobs.store.base import JobStore

_COLUMNS = ("source", "job_id", "metric", "scope", "total", "gap_frac", "series_s")
_SUMS = ("jobs", "core_h", "gpu_h", "events", "joules")
# Ids that a store is asked for at a time
_IDS = 5_000
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Sampled:
    """Sums of jobs with power series, by their keys, in the columns of a grouped query and ``joules``.

    ``complete``: jobs whose CPUs were measured, too; ``gpus``: of whose power that of GPUs alone is known.
    """

    complete: Mapping[tuple[object, ...], Row]
    gpus: Mapping[tuple[object, ...], Row]


def read_sampled(store: JobStore, keys: Sequence[str], where: Sequence[str], part: Window) -> Sampled:
    """Return the jobs of a part of a window that have power series and no joules in their records.

    Cost: the footprints of power, and a query per 5,000 jobs that have some.
    """
    sums: tuple[dict[tuple[object, ...], dict[str, float]], ...] = ({}, {})
    figures = _footprints(store, part)
    for job in _jobs(store, keys, (*where, "energy_j is missing"), part, figures):
        rows = figures[job["source"], job["job_id"]]
        measured = joules(rows, job["wall_s"])
        if not measured:
            continue
        # 0: complete, 1: GPUs alone
        found = sums[CPU_POWER not in measured].setdefault(
            tuple(job[name] for name in keys), dict.fromkeys(_SUMS, 0.0)
        )
        gpus_seen = any(row["metric"] == GPU_POWER for row in rows)
        found["jobs"] += 1
        found["core_h"] += (job["core_s"] or 0.0) / 3600
        # hours of GPUs whose power is in the sum; a note counts the others
        found["gpu_h"] += (job["gpu_s"] or 0.0) / 3600 * gpus_seen
        found["events"] += job["events"] or 0.0
        found["joules"] += sum(measured.values())
    return Sampled(*sums)


def _footprints(store: JobStore, part: Window) -> dict[tuple[str, str], list[Row]]:
    # a job is judged on the day on which its series end, at most a day from its own
    wider = Window(part.start - timedelta(days=1), part.end + timedelta(days=1))
    where = [Days.of_window(wider), In("metric", POWERS)]
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in read_table(store, FOOTPRINTS, where, _COLUMNS).to_pylist():
        found[row["source"], row["job_id"]].append(row)
    return found


def _jobs(
    store: JobStore, keys: Sequence[str], where: Sequence[str], part: Window, wanted: Mapping[Any, Any]
) -> Iterator[dict[str, Any]]:
    names = ["source", "job_id", "end_time", "wall_s", "core_s", "gpu_s", "events"]
    names += [name for name in keys if name not in names and fields.is_field(name)]
    ids = sorted({job_id for _, job_id in wanted})
    # a condition may ask the store for names: not where nothing has power
    filters = job_filters(store, where, part) if ids else ()
    for start in range(0, len(ids), _IDS):
        chosen = (*filters, In("job_id", tuple(ids[start : start + _IDS])))
        for batch in select(store, names, part, where=chosen):
            for job in batch.to_pylist():
                if (job["source"], job["job_id"]) in wanted:
                    yield {**job, "month": f"{job['end_time']:%Y-%m}"}
