"""Rows of ``tasks``: start-up time per job, and decision on mixed tasks."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import fitters
from esjobs.publish.publication import finite
from esjobs.records.tasks.keys import TaskKeys
from esjobs.records.tasks.sums import TaskSums
from esjobs.speed.mixed_tasks import MixedTask
from fitters.layout.arrays import Floats

_ESTIMATES = ("rho", "rho_err", "slope", "slope_err", "share", "share_err")
_DECISIONS = {"apply": "corrected", "excluded": "start-up time unknown"}


def task_rows(
    rows: TaskSums,
    costs: fitters.FixedCosts | None,
    looked_at: Mapping[int, MixedTask],
    min_bucket_jobs: int,
    rho_scatter: Floats | None,
) -> Iterator[dict[str, object]]:
    """Yield one row per task key, as queues ran it, and one per task before its split.

    ``rho_scatter``: relative error of each key's start-up time because queues differ; it is added to rho_err.
    """
    tasks, index = rows.task.names, rows.task.codes
    n_jobs = np.bincount(index, rows.sums["n_jobs"], len(tasks)).astype(np.int64)
    n_queues = np.bincount(index, rows.sums["n_jobs"] >= min_bucket_jobs, len(tasks)).astype(np.int64)
    events = np.bincount(index, rows.sums["events"], len(tasks))
    mixed = np.full(len(tasks), -1)
    mixed[index] = rows.mixed.codes
    existing = _costs(costs, rho_scatter)
    for number, task in enumerate(tasks.tolist()):
        cost = existing.get(task, {})
        decision = _DECISIONS.get(cost.get("decision", ""), "kept")
        reason = cost.get("reason", "")
        if mixed[number] >= 0:
            decision, reason = "mixed task", rows.mixed.names[mixed[number]]
        yield {
            **_named(rows.keys, task),
            "n_jobs": int(n_jobs[number]),
            "n_queues": int(n_queues[number]),
            "decision": decision,
            "reason": reason or None,
            **{name: finite(cost.get(name)) for name in _ESTIMATES},
            "events_per_job": finite(events[number] / n_jobs[number]),
            "events_ratio": finite(cost.get("events_ratio")),
            **_kinds(looked_at.get(task)),
        }
    for task, found in looked_at.items():
        if found.decision == "split":
            yield {
                **_named(rows.keys, task),
                "n_jobs": found.n_jobs,
                "decision": "split",
                "reason": found.reason,
                **_kinds(found),
            }


def _costs(costs: fitters.FixedCosts | None, rho_scatter: Floats | None) -> dict[int, dict[str, Any]]:
    """Return the start-up times by task key; their errors include that queues differ."""
    if costs is None:
        return {}
    table = costs.tasks
    if rho_scatter is not None:
        scatter = rho_scatter[table.name.astype(np.int64)] * table.rho
        table = replace(table, rho_err=np.hypot(table.rho_err, scatter))
    return {int(row["name"]): row for row in table.rows()}


def with_decisions(
    rows: Iterable[Mapping[str, object]], tasks: Iterable[Mapping[str, object]]
) -> Iterator[dict[str, object]]:
    """Yield rows of buckets with the decision about their task; a kind of work falls back to its task."""
    existing = {_identity(task): task for task in tasks}
    for row in rows:
        key = _identity(row)
        task = existing.get(key) or existing.get((*key[:-1], None)) or {}
        yield {**row, "decision": task.get("decision")}


def _identity(row: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(row.get(column) for column in ("task_id", "core_class", "task_type", "work_kind"))


def _named(keys: TaskKeys, number: int) -> dict[str, object]:
    return dict(zip(("task_id", "core_class", "task_type", "work_kind"), keys.parts(number), strict=True))


def _kinds(found: MixedTask | None) -> dict[str, object]:
    if found is None:
        return {"kinds_ratio": None, "kinds_share": None}
    return {"kinds_ratio": finite(found.ratio), "kinds_share": finite(found.share)}
