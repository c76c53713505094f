"""Releases of software that make a CPU model faster or slower: its tasks of that release, not the others."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from esjobs.core.query import Days, Present, Query, Sum
from esjobs.core.window import Window
from esjobs.flags.drift.causes import MIX_DAYS, CpuTime, ReleaseChange, explains_half, shares_of_models
from esjobs.flags.drift.series import Change, day_of
from esjobs.records.jobs.resolution import aggregate
from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import JobStore

LEAST_TASKS = 3  # Tasks of the release, and of others, that must have run on the model and elsewhere
NEW = 0.5  # Share of the release in the CPU time before the change over that after, at most


# CPU seconds and events by task, and by CPU model in that
Costs = Mapping[str, Mapping[str, tuple[float, float]]]


def release_behind(
    store: JobStore, change: Change, k: Mapping[str, tuple[float, float]], last: date
) -> ReleaseChange | None:
    """Return the release that explains the change of a CPU model; None if none does, or records name none.

    ``k``: factors of CPU models and errors; ``last``: last day of data. Three queries: tasks by CPU model
    before and after, releases of tasks after.
    """
    first = day_of(change.step.day)
    end = min(last, first + timedelta(days=MIX_DAYS - 1))
    span = Window.of_days(first - timedelta(days=MIX_DAYS), end)
    release_of = _releases(store, span)
    # one release for all tasks cannot be told from everything else that changed
    if len(set(release_of.values())) < 2:
        return None
    before = _costs(store, span.first_day, first - timedelta(days=1))
    found = predicted(change.name, before, _costs(store, first, end), release_of, k)
    if found is None or not explains_half(found.change, found.error, change.step.size):
        return None
    return found


def predicted(
    model: str,
    before: Costs,
    after: Costs,
    release_of: Mapping[str, str],
    k: Mapping[str, tuple[float, float]],
) -> ReleaseChange | None:
    """Return the new release with the largest effect on a CPU model.

    ln(CPU time per event) of a task on the model, less that of the task elsewhere at k = 1, is compared
    between tasks of the release and those before the change, with weights of CPU time and the scatter between
    tasks as error. Other tasks after the change must be like those before it, by two errors: what makes the
    model faster for every task is no release. The effect times the gain in CPU time of the release is the
    predicted change of ln k. None if fewer than three tasks before or of the release tell, or no other after.
    """
    earlier, later = _relative(model, before, k), _relative(model, after, k)
    old, new = _shares(before, model, release_of), _shares(after, model, release_of)
    best = None
    for release, share in new.items():
        gain = share - old.get(release, 0.0)
        mine, others = _of_release(later, release, release_of)
        _, without = _of_release(earlier, release, release_of)
        if gain < (1.0 - NEW) * share or min(len(mine), len(without)) < LEAST_TASKS or not others:
            continue
        (fast, its_error, scatter), (slow, their_error, _) = _mean(mine), _mean(without)
        left, _, _ = _mean(others)
        if abs(left - slow) > abs(left - fast) or abs(left - fast) < 2.0 * scatter / math.sqrt(len(others)):
            continue
        size, error = gain * (slow - fast), gain * math.hypot(its_error, their_error)
        if best is None or abs(size) > abs(best.change):
            best = ReleaseChange(release, model, size, error, share)
    return best


def _of_release(
    rows: Mapping[str, tuple[float, float]], release: str, release_of: Mapping[str, str]
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return the rows of the tasks of a release, and those of all others."""
    sides: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for task, row in rows.items():
        sides[release_of.get(task) != release].append(row)
    return sides


def _relative(
    model: str, costs: Costs, k: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    # By task, ln of its cost on the model over that elsewhere at k = 1, and its CPU time on the model.
    found = {}
    for task, models in costs.items():
        cpu_s, events = models.get(model, (0.0, 0.0))
        others = [(name, *sums) for name, sums in models.items() if name != model and name in k]
        elsewhere = sum(seconds * k[name][0] for name, seconds, _ in others)
        events_there = sum(number for *_, number in others)
        if min(cpu_s, events, elsewhere, events_there) > 0:
            found[task] = math.log(cpu_s / events * events_there / elsewhere), cpu_s
    return found


def through_models(
    found: Mapping[str, ReleaseChange], after: CpuTime, change: Change
) -> ReleaseChange | None:
    """Return the release behind the change of a queue or site: that of the model that moves it most.

    ``found``: by CPU model; ``after``: its CPU time after the change. None if they explain less than half.
    """
    parts = {model: share for model, share in shares_of_models(after).items() if model in found}
    if not parts:
        return None
    size = sum(part * found[model].change for model, part in parts.items())
    error = math.sqrt(sum((part * found[model].error) ** 2 for model, part in parts.items()))
    if not explains_half(size, error, change.step.size):
        return None
    most = max(parts, key=lambda model: (abs(parts[model] * found[model].change), model))
    return replace(found[most], change=size, error=error)


def _mean(rows: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    # Weighted mean, its error, and the scatter of single tasks.
    value, weight = np.array(rows).T
    weight = weight / weight.sum()
    mean = float(weight @ value)
    # Kish's number of equal tasks with the same scatter of their mean
    n_effective = 1.0 / float(weight @ weight)
    scatter = math.sqrt(float(weight @ (value - mean) ** 2) * n_effective / max(n_effective - 1.0, 0.5))
    return mean, scatter / math.sqrt(n_effective), scatter


def _shares(side: Costs, model: str, release_of: Mapping[str, str]) -> dict[str, float]:
    seconds: dict[str, float] = defaultdict(float)
    total = 0.0
    for task, models in side.items():
        cpu_s = models.get(model, (0.0, 0.0))[0]
        total += cpu_s
        if task in release_of:
            seconds[release_of[task]] += cpu_s
    return {release: part / total for release, part in seconds.items() if part}


def _costs(store: JobStore, first: date, last: date) -> Costs:
    where = (Days("day", first, last), Present("cpu_model"), Present("task_id"))
    metrics = (Sum("cpu_s", "cpu_s"), Sum("events", "events"))
    costs: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    query = Query(("task_id", "cpu_model"), metrics, where=where, over=BUCKETS)
    for row in store.aggregate(query).table.to_pylist():
        costs[row["task_id"]][row["cpu_model"]] = row["cpu_s"] or 0.0, row["events"] or 0.0
    return costs


def _releases(store: JobStore, span: Window) -> dict[str, str]:
    # A task has one release; where records disagree, that of most of its CPU time.
    where = (Present("release"), Present("task_id"))
    rows = aggregate(store, ("task_id", "release"), (Sum("cpu_s", "cpu_s"),), span, where=where).table
    found = rows.sort_by([("cpu_s", "ascending"), ("release", "ascending")]).to_pylist()
    # ascending: the last one, of most CPU time, stays
    return {row["task_id"]: row["release"] for row in found}
