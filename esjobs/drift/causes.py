"""What is known beside a change: another mix of CPU models, another declaration."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any

from esjobs.core.query import Days, In, Present, Query, Sum
from esjobs.declared.origin import same_value
from esjobs.declared.tables import COREPOWER
from esjobs.drift.series import Change, day_of
from esjobs.jobs.tables import BUCKETS
from esjobs.names.cpu_models import resolve_names
from esjobs.runs.publication import read_table
from esjobs.store.base import JobStore

MIX_DAYS = 14
"""Days before and after a change over which CPU models are counted, at most."""
EXPLAINS = 0.5
"""Share of a change, in ln, that another mix must predict to be its cause."""
EDIT_DAYS = 7
"""Days around the interval of a change in which an edit of the declaration belongs to it."""
AT_ONE_QUEUE = 0.1
"""Share of a CPU model's CPU time that a queue must have for its change to be that of the model, too."""
UNEXPLAINED = "unexplained"
MIX_CHANGED = "CPU mix changed"


@dataclass(frozen=True)
class MixChange:
    """What another mix of CPU models predicts: change of ln k with its error, and the model that did most.

    ``share_before``, ``share_after``: of the CPU time of that model.
    """

    change: float
    error: float
    model: str
    share_before: float
    share_after: float


@dataclass(frozen=True)
class Edit:
    """A declaration that was changed: from what, to what (None: nothing is declared), from which day on."""

    before: float | None
    after: float | None
    day: date


def mix_change(
    before: Mapping[str, float], after: Mapping[str, float], factors: Mapping[str, tuple[float, float]]
) -> MixChange | None:
    """What the CPU models' own factors predict of a change of their shares.

    ``before`` and ``after``: CPU seconds by model; ``factors``: k and its error. CPU time adds up, speed does
    not: with shares c of CPU time k = sum c k. None where models with a factor have less than half of the
    CPU time before or after.
    """
    shares = []
    for mix in (before, after):
        known = {model: seconds for model, seconds in mix.items() if model in factors}
        total = sum(known.values())
        if not total or total < sum(mix.values()) / 2:
            return None
        shares.append({model: seconds / total for model, seconds in known.items()})
    models = sorted(shares[0].keys() | shares[1].keys())
    old, new = (sum(part[model] * factors[model][0] for model in part) for part in shares)
    moved = {model: shares[1].get(model, 0.0) - shares[0].get(model, 0.0) for model in models}
    # d ln(new/old) / d ln k of each model; what all factors have in common drops out
    weights = {
        model: factors[model][0] * (shares[1].get(model, 0.0) / new - shares[0].get(model, 0.0) / old)
        for model in models
    }
    error = math.sqrt(sum((weights[model] * factors[model][1] / factors[model][0]) ** 2 for model in models))
    most = max(models, key=lambda model: (abs(moved[model]), model))
    return MixChange(math.log(new / old), error, most, shares[0].get(most, 0.0), shares[1].get(most, 0.0))


def explains(mix: MixChange | None, size: float) -> bool:
    """Whether another mix predicts half of a change or more, in its direction, and is sure of it.

    >>> explains(MixChange(0.10, 0.01, "X", 0.1, 0.6), 0.14), explains(None, 0.14)
    (True, False)
    """
    return mix is not None and mix.change / size >= EXPLAINS and abs(mix.change) > 2.0 * mix.error


def mixes_beside(store: JobStore, change: Change, last: date) -> tuple[dict[str, float], dict[str, float]]:
    """CPU seconds by model of a queue before its change and after it; two queries. ``last``: day of data."""
    first_after = day_of(change.step.day)
    before = _mix(store, change.name, first_after - timedelta(days=MIX_DAYS), first_after - timedelta(days=1))
    after = _mix(store, change.name, first_after, min(last, first_after + timedelta(days=MIX_DAYS - 1)))
    return before, after


def _mix(store: JobStore, name: str, first: date, last: date) -> dict[str, float]:
    where = (In("site", (name,)), Days("day", first, last), Present("cpu_model"))
    asked = Query(("cpu_model",), (Sum("cpu_s", "cpu_s"),), where=where, over=BUCKETS)
    rows = store.aggregate(asked).table.to_pylist()
    return {row["cpu_model"]: row["cpu_s"] for row in rows if row["cpu_s"]}


def queue_behind(
    store: JobStore, change: Change, queues: Iterable[Change], last: date
) -> tuple[str, float] | None:
    """Of a CPU model that changed, the queue that did so, too, in the same direction and at the same time.

    With its share of the model's CPU time, of those the largest; None where none has ``AT_ONE_QUEUE``.
    """
    alike = {
        queue.name
        for queue in queues
        if queue.step.size * change.step.size > 0
        and queue.step.day_low <= change.step.day_high + 1
        and change.step.day_low <= queue.step.day_high + 1
    }
    if not alike:
        return None
    first = day_of(change.step.day)
    days = Days("day", first - timedelta(days=MIX_DAYS), min(last, first + timedelta(days=MIX_DAYS - 1)))
    where = (In("cpu_model", (change.name,)), days)
    asked = Query(("site",), (Sum("cpu_s", "cpu_s"),), where=where, over=BUCKETS)
    rows = {row["site"]: row["cpu_s"] or 0.0 for row in store.aggregate(asked).table.to_pylist()}
    share, name = max((rows.get(name, 0.0) / (sum(rows.values()) or 1.0), name) for name in alike)
    return (name, share) if share >= AT_ONE_QUEUE else None


def declared_edits(store: JobStore, level: str, names: Sequence[str]) -> dict[str, list[Edit]]:
    """Every change of an imported declaration of these names, in the order of the days. One read."""
    if not names:
        return {}
    rows = read_table(store, COREPOWER, [In("level", (level,))]).to_pylist()
    raw = [row["name"] for row in rows]
    canonical = resolve_names(raw) if level == "cpu_model" else raw
    values: dict[str, dict[datetime, tuple[datetime, float | None]]] = defaultdict(dict)
    for row, name in zip(rows, canonical, strict=True):
        known = values[name or row["name"]]
        # of rows valid from the same moment the one imported last counts
        if row["valid_from"] not in known or row["imported_at"] >= known[row["valid_from"]][0]:
            known[row["valid_from"]] = (row["imported_at"], row["corepower"])
    return {name: list(_edits(values[name])) for name in names if name in values}


def _edits(values: Mapping[datetime, tuple[datetime, float | None]]) -> Iterable[Edit]:
    ordered = sorted((moment, value) for moment, (_, value) in values.items())
    for (_, before), (moment, after) in pairwise(ordered):
        if before != after and not same_value(before, after):
            yield Edit(before, after, moment.date())


def edit_beside(edits: Iterable[Edit], change: Change) -> Edit | None:
    """The edit nearest to a change, if one lies in its interval or within a week of it."""
    margin = timedelta(days=EDIT_DAYS)
    low, high = day_of(change.step.day_low) - margin, day_of(change.step.day_high) + margin
    near = [edit for edit in edits if low <= edit.day <= high]
    return min(near, key=lambda edit: abs(edit.day - day_of(change.step.day)), default=None)


def described(
    change: Change, mix: MixChange | None, edit: Edit | None, queue: tuple[str, float] | None = None
) -> dict[str, Any]:
    """Cause and sentence of a change, and the numbers behind them; ``queue``: see :func:`queue_behind`."""
    step = change.step
    day = day_of(step.day)
    size, error = math.expm1(step.size), math.exp(step.size) * step.error
    said = []
    cause = UNEXPLAINED
    if edit is not None:
        cause = f"declared corepower changed from {_said(edit.before)} to {_said(edit.after)}"
        said.append(f"{cause} on {edit.day}")
    if queue is not None:
        cause = f"changed at {queue[0]}"
        said.append(
            f"{queue[0]}, which has {100 * queue[1]:.0f} % of its CPU time, changed with it: look there first"
        )
    if mix is not None and explains(mix, step.size):
        cause = MIX_CHANGED
        said.append(
            f"{cause} on {day}: {mix.model} from {100 * mix.share_before:.0f} to "
            f"{100 * mix.share_after:.0f} % of its CPU time; its models' factors predict "
            f"{100 * math.expm1(mix.change):+.0f} %"
        )
    if not said:
        said.append(f"unexplained: {_not_told(change, mix)}, and nobody changed what is declared")
    head = (
        f"From {day} on {change.name} ran {100 * abs(size):.0f} % {'faster' if size > 0 else 'slower'} than "
        f"before (± {100 * error:.0f} %{_interval(step.day_low, step.day_high)})"
    )
    return {
        "cause": cause,
        "sentence": f"{head}: {'; '.join(reversed(said))}.",
        "change": size,
        "change_err": error,
        "mix_change": None if mix is None else math.expm1(mix.change),
        "mix_change_err": None if mix is None else math.exp(mix.change) * mix.error,
        "corepower_before": None if edit is None else edit.before,
        "corepower_after": None if edit is None else edit.after,
        "declared_on": None if edit is None else edit.day,
    }


def _not_told(change: Change, mix: MixChange | None) -> str:
    if change.level == "cpu_model":
        return "no queue with much of its CPU time changed with it"
    return "its CPU models are not known" if mix is None else "its mix of CPU models does not tell why"


def _said(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.4g}"


def _interval(low: int, high: int) -> str:
    return "" if low == high else f"; between {day_of(low)} and {day_of(high)}"
