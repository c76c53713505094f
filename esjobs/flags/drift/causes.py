"""Causes of a change, such as another mix of CPU models, and declarations edited at the same time."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any

import fitters
from esjobs.core.numbers import percent, signed_percent, speed
from esjobs.core.query import Days, In, Present, Query, Sum
from esjobs.flags.drift.series import Change, day_of
from esjobs.publish.publication import read_table
from esjobs.records.declared.origin import same_value
from esjobs.records.names.cpu_models import resolve_names
from esjobs.schema.declared import COREPOWER
from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import JobStore
from fitters import Slope

MIX_DAYS = 14  # Days before and after a change over which CPU models are counted, at most
EXPLAINS = 0.5  # Share of a change, in ln, that another mix must predict to be its cause
EDIT_DAYS = 7  # Days around the interval of a change in which an edit of the declaration belongs to it
# Share of the CPU time of a site or CPU model that a queue must have for its change to be theirs, too
AT_ONE_QUEUE = 0.1
UNEXPLAINED = "unexplained"
MIX_CHANGED = "CPU mix changed"


@dataclass(frozen=True)
class MixChange:
    """Predicted change of ln k by another mix of CPU models, and the model whose share changed most."""

    change: float
    error: float
    model: str
    share_before: float
    share_after: float


@dataclass(frozen=True)
class ReleaseChange:
    """Predicted change of ln k by a release on a CPU model; ``share``: of its CPU time after the change."""

    release: str
    model: str
    change: float
    error: float
    share: float


@dataclass(frozen=True)
class Edit:
    """An edited declaration: old and new value (None: nothing declared), and its first day."""

    before: float | None
    after: float | None
    day: date


# By task and CPU model, the sum over jobs of CPU seconds, and that of their squares
CpuTime = Mapping[tuple[str | None, str], tuple[float, float]]


def mix_change(
    before: CpuTime, after: CpuTime, factors: Mapping[str, tuple[float, float]]
) -> MixChange | None:
    """Predict a change of ln k from the shares of CPU models and their factors.

    ``factors``: k and its error. CPU time adds up: with shares c of CPU time k = sum c k. The error has a
    part from the factors and one from the finite number of jobs and tasks. None if models with a factor have
    less than half of the CPU time before or after.
    """
    usable = [_with_factors(side, factors) for side in (before, after)]
    if not all(usable):
        return None
    shares = [shares_of_models(side) for side in usable]
    models = sorted(shares[0].keys() | shares[1].keys())
    old, new = (sum(part[model] * factors[model][0] for model in part) for part in shares)
    changes = {model: shares[1].get(model, 0.0) - shares[0].get(model, 0.0) for model in models}
    # d ln(new/old) / d ln k of each model; what all factors have in common drops out
    weights = {
        model: factors[model][0] * (shares[1].get(model, 0.0) / new - shares[0].get(model, 0.0) / old)
        for model in models
    }
    error = math.sqrt(sum((weights[model] * factors[model][1] / factors[model][0]) ** 2 for model in models))
    # factors and shares have independent errors
    error = math.hypot(error, _error_of_shares(usable, {model: factors[model][0] for model in models}))
    most = max(models, key=lambda model: (abs(changes[model]), model))
    return MixChange(math.log(new / old), error, most, shares[0].get(most, 0.0), shares[1].get(most, 0.0))


def _with_factors(side: CpuTime, factors: Mapping[str, tuple[float, float]]) -> CpuTime:
    """Return the CPU time of models with a factor; nothing if that is less than half of all."""
    usable = {key: sums for key, sums in side.items() if key[1] in factors}
    total = sum(seconds for seconds, _ in usable.values())
    return usable if total and total >= sum(seconds for seconds, _ in side.values()) / 2 else {}


def shares_of_models(side: CpuTime) -> dict[str, float]:
    """Return the share of each CPU model in the CPU time."""
    seconds: dict[str, float] = defaultdict(float)
    for (_, model), (part, _) in side.items():
        seconds[model] += part
    total = sum(seconds.values())
    return {model: part / total for model, part in seconds.items()}


def _error_of_shares(sides: Sequence[CpuTime], k: Mapping[str, float]) -> float:
    """Standard error of ln(k after / k before) from the jobs and tasks behind the shares.

    The larger of two: that of single jobs, and that of tasks, because jobs of a task run at the same time on
    the same machines. A task on both sides is one. As wide as two errors of Student's t with the effective
    number of tasks; a side with one model has the error of one more job of both sides' mix.
    """
    shares = [shares_of_models(side) for side in sides]
    pool = {model: sum(part.get(model, 0.0) for part in shares) / len(shares) for model in k}
    scores: dict[str | None, float] = defaultdict(float)
    parts: dict[str | None, float] = defaultdict(float)
    of_jobs = 0.0
    for sign, side, share in zip((-1.0, 1.0), sides, shares, strict=True):
        total = sum(seconds for seconds, _ in side.values())
        mean = sum(part * k[model] for model, part in share.items())
        for (task, model), (seconds, _) in side.items():
            scores[task] += sign * (k[model] / mean - 1.0) * seconds / total
            parts[task] += seconds / total / len(sides)
        # effective number (Kish): as many equal jobs would scatter the shares as much
        n_jobs = total**2 / sum(squares for _, squares in side.values())
        likely = {model: (n_jobs * share.get(model, 0.0) + pool[model]) / (n_jobs + 1.0) for model in k}
        centre = sum(part * k[model] for model, part in likely.items())
        of_jobs += sum(part * (k[model] / centre - 1.0) ** 2 for model, part in likely.items()) / n_jobs
    n_tasks = len(scores)
    of_tasks = sum(score**2 for score in scores.values()) * n_tasks / max(n_tasks - 1, 1)
    effective = 1.0 / sum(part**2 for part in parts.values())
    return fitters.student_width(2.0, effective - 1.0) * math.sqrt(max(of_jobs, of_tasks))


def explains(mix: MixChange | None, size: float) -> bool:
    """True if another mix predicts at least half of a change, in its direction, by two of its errors.

    >>> explains(MixChange(0.10, 0.01, "X", 0.1, 0.6), 0.14), explains(None, 0.14)
    (True, False)
    """
    return mix is not None and explains_half(mix.change, mix.error, size)


def explains_half(change: float, error: float, size: float) -> bool:
    """True if a predicted change is at least half of an observed one, same sign, by two of its errors."""
    return change / size >= EXPLAINS and abs(change) > 2.0 * error


def mixes_beside(
    store: JobStore, change: Change, queues: Sequence[str], last: date
) -> tuple[CpuTime, CpuTime]:
    """Return the CPU time of queues before and after a change; two queries. ``last``: last day of data."""
    first = day_of(change.step.day)
    before = _mix(store, queues, first - timedelta(days=MIX_DAYS), first - timedelta(days=1))
    return before, _mix(store, queues, *_days_after(change, last))


def _days_after(change: Change, last: date) -> tuple[date, date]:
    # a slope is as large as it becomes on its last days
    length = timedelta(days=MIX_DAYS - 1)
    first = day_of(change.step.day)
    return (last - length, last) if isinstance(change.step, Slope) else (first, min(last, first + length))


def _mix(store: JobStore, queues: Sequence[str], first: date, last: date) -> CpuTime:
    where = (In("queue", tuple(queues)), Days("day", first, last), Present("cpu_model"))
    metrics = (Sum("cpu_s", "cpu_s"), Sum("cpu_s_sq", "cpu_s_sq"))
    query = Query(("task_id", "cpu_model"), metrics, where=where, over=BUCKETS)
    rows = store.aggregate(query).table.to_pylist()
    # engines give groups in any order, and sums depend on it in their last digit
    rows.sort(key=lambda row: (row["task_id"] or "", row["cpu_model"]))
    return {
        (row["task_id"], row["cpu_model"]): (row["cpu_s"], row["cpu_s_sq"]) for row in rows if row["cpu_s"]
    }


def _touch(one: Change, other: Change) -> bool:
    # days that adjoin are of one change, too
    return one.step.day_low <= other.step.day_high + 1 and other.step.day_low <= one.step.day_high + 1


def queue_behind(
    store: JobStore, change: Change, queues: Iterable[Change], jobs: In, last: date
) -> tuple[str, float] | None:
    """Return the queue that changed with a site or CPU model, in the same direction and at the same time.

    ``jobs``: those of the site or model. With its share of their CPU time, the largest such; None if none has
    ``AT_ONE_QUEUE``.
    """
    similar = {
        queue.name for queue in queues if queue.step.size * change.step.size > 0 and _touch(queue, change)
    }
    if not similar:
        return None
    first = day_of(change.step.day)
    days = Days("day", first - timedelta(days=MIX_DAYS), _days_after(change, last)[1])
    where = (jobs, days)
    query = Query(("queue",), (Sum("cpu_s", "cpu_s"),), where=where, over=BUCKETS)
    rows = {row["queue"]: row["cpu_s"] or 0.0 for row in store.aggregate(query).table.to_pylist()}
    share, name = max((rows.get(name, 0.0) / (sum(rows.values()) or 1.0), name) for name in similar)
    return (name, share) if share >= AT_ONE_QUEUE else None


def declared_edits(store: JobStore, level: str, names: Sequence[str]) -> dict[str, list[Edit]]:
    """Return every edit of an imported declaration of these names, in order of days; one read."""
    if not names:
        return {}
    rows = read_table(store, COREPOWER, [In("level", (level,))]).to_pylist()
    raw = [row["name"] for row in rows]
    canonical = resolve_names(raw) if level == "cpu_model" else raw
    values: dict[str, dict[datetime, tuple[datetime, float | None]]] = defaultdict(dict)
    for row, name in zip(rows, canonical, strict=True):
        usable = values[name or row["name"]]
        # of rows valid from the same moment the one imported last counts
        if row["valid_from"] not in usable or row["imported_at"] >= usable[row["valid_from"]][0]:
            usable[row["valid_from"]] = (row["imported_at"], row["corepower"])
    return {name: list(_edits(values[name])) for name in names if name in values}


def _edits(values: Mapping[datetime, tuple[datetime, float | None]]) -> Iterable[Edit]:
    ordered = sorted((moment, value) for moment, (_, value) in values.items())
    for (_, before), (moment, after) in pairwise(ordered):
        if before != after and not same_value(before, after):
            yield Edit(before, after, moment.date())


def edit_beside(edits: Iterable[Edit], change: Change) -> Edit | None:
    """Return the edit nearest to a change, if within its interval or a week of it."""
    margin = timedelta(days=EDIT_DAYS)
    low, high = day_of(change.step.day_low) - margin, day_of(change.step.day_high) + margin
    near = [edit for edit in edits if low <= edit.day <= high]
    return min(near, key=lambda edit: abs(edit.day - day_of(change.step.day)), default=None)


def described(
    change: Change,
    mix: MixChange | None,
    edit: Edit | None,
    queue: tuple[str, float] | None = None,
    release: ReleaseChange | None = None,
) -> dict[str, Any]:
    """Return cause and sentence of a change, and the numbers behind them.

    ``queue``: see :func:`queue_behind`; ``release``: one that explains the change. An edited declaration is
    never the cause: it cannot change the speed of a machine.
    """
    step = change.step
    day = day_of(step.day)
    size, error = math.expm1(step.size), math.exp(step.size) * step.error
    said = []
    cause = UNEXPLAINED
    if queue is not None:
        cause = f"changed at {queue[0]}"
        said.append(
            f"{queue[0]}, with {percent(queue[1])} of its CPU time, changed as well; check this queue first"
        )
    if mix is not None and explains(mix, step.size):
        cause = MIX_CHANGED
        said.append(
            f"{cause} ({mix.model}: {percent(mix.share_before)} to {percent(mix.share_after)} of the CPU "
            f"time); the new mix predicts {signed_percent(math.expm1(mix.change))} "
            f"± {percent(math.exp(mix.change) * mix.error)}"
        )
    if release is not None:
        cause = f"release {release.release}"
        error_of = math.exp(release.change) * release.error
        said.append(
            f"{cause} on {release.model} ({percent(release.share)} of the CPU time there); its tasks predict "
            f"{signed_percent(math.expm1(release.change))} ± {percent(error_of)}"
        )
    if not said:
        said.append(f"unknown; {_unexplained(change, mix)}")
    beside = "" if edit is None else f" {_edited(edit)}"
    since = f"since {day}"
    if step.day_low != step.day_high:
        since += f" (between {day_of(step.day_low)} and {day_of(step.day_high)})"
    how = f"{speed(size)} (± {percent(error)})"
    weekly, head = None, f"{change.name} runs {how} {since}"
    # of a slope the pace says more than its size so far
    if isinstance(step, Slope):
        weekly = math.expm1(7 * step.per_day)
        head = f"{change.name} has changed by {signed_percent(weekly)} a week {since}: now {how}"
    return {
        "cause": cause,
        "sentence": f"{head}. Cause: {'; '.join(reversed(said))}.{beside}",
        "change": size,
        "change_err": error,
        "per_week": weekly,
        **_of_mix(mix),
        **_of_edit(edit),
    }


def _of_mix(mix: MixChange | None) -> dict[str, Any]:
    if mix is None:
        return {"mix_change": None, "mix_change_err": None}
    return {"mix_change": math.expm1(mix.change), "mix_change_err": math.exp(mix.change) * mix.error}


def _of_edit(edit: Edit | None) -> dict[str, Any]:
    values = (None, None, None) if edit is None else (edit.before, edit.after, edit.day)
    return dict(zip(("corepower_before", "corepower_after", "declared_on"), values, strict=True))


def _unexplained(change: Change, mix: MixChange | None) -> str:
    if change.level == "cpu_model":
        return "no queue with much of its CPU time changed as well"
    return "its CPU models are not recorded" if mix is None else "its CPU mix does not explain the change"


def _edited(edit: Edit) -> str:
    return (
        f"The declared value changed from {_said(edit.before)} to {_said(edit.after)} on {edit.day}, in the "
        "same week."
    )


def _said(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.4g}"
