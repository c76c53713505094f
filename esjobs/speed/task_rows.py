"""Rows of ``tasks``: what a job of each costs before its first event, and whether it is one kind of work."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

import fitters
from esjobs.publish.publication import finite
from esjobs.records.tasks.keys import TaskKeys
from esjobs.records.tasks.sums import TaskSums
from esjobs.speed.mixed_tasks import MixedTask

_ESTIMATES = ("rho", "rho_err", "slope", "slope_err", "share", "share_err")
_DECISIONS = {"apply": "corrected", "set aside": "fixed cost unknown"}


def task_rows(
    rows: TaskSums,
    costs: fitters.FixedCosts | None,
    looked_at: Mapping[int, MixedTask],
    min_bucket_jobs: int,
) -> Iterator[dict[str, object]]:
    """One row per task key, as queues ran it, and one for every task as it was before it was split."""
    tasks, place = rows.task.names, rows.task.codes
    n_jobs = np.bincount(place, rows.sums["n_jobs"], len(tasks)).astype(np.int64)
    n_queues = np.bincount(place, rows.sums["n_jobs"] >= min_bucket_jobs, len(tasks)).astype(np.int64)
    events = np.bincount(place, rows.sums["events"], len(tasks))
    mixed = np.full(len(tasks), -1)
    mixed[place] = rows.mixed.codes
    known = {} if costs is None else _by_key(costs)
    for number, task in enumerate(tasks.tolist()):
        cost = known.get(task, {})
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


def with_accounts(
    rows: Iterable[Mapping[str, object]], tasks: Iterable[Mapping[str, object]]
) -> Iterator[dict[str, object]]:
    """Rows of buckets with the account of their tasks; a kind of work without one has that of its task."""
    known = {_identity(task): task for task in tasks}
    for row in rows:
        key = _identity(row)
        task = known.get(key) or known.get((*key[:-1], None)) or {}
        yield {**row, "rho": task.get("rho"), "decision": task.get("decision")}


def _identity(row: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(row.get(column) for column in ("task_id", "core_class", "task_type", "work_kind"))


def _by_key(costs: fitters.FixedCosts) -> dict[int, dict[str, Any]]:
    columns = costs.tasks.columns()
    return {
        name: {column: values[place] for column, values in columns.items()}
        for place, name in enumerate(costs.tasks.name.tolist())
    }


def _named(keys: TaskKeys, number: int) -> dict[str, object]:
    return dict(zip(("task_id", "core_class", "task_type", "work_kind"), keys.parts(number), strict=True))


def _kinds(found: MixedTask | None) -> dict[str, object]:
    if found is None:
        return {"kinds_ratio": None, "kinds_share": None}
    return {"kinds_ratio": finite(found.ratio), "kinds_share": finite(found.share)}
