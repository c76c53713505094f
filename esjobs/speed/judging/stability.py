"""Stability of verdicts under changes of uncertain inputs; only stable ones are cleared to send."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from esjobs.core.numbers import signed_percent
from esjobs.core.words import HALVES, STRAYS, VARIED, Verdict
from esjobs.speed.judging.verdicts import SURVIVING, Evidence, has_two_speeds, survives

FitKey = tuple[str, str, str]  # Level, processing type and method


class Change(NamedTuple):
    """Row of ``variants``: extreme factors of a name under one kind of change."""

    change: str
    k_low: float | None
    low_change: str | None
    k_high: float | None
    high_change: str | None
    disconnecting_task: str | None


def changes_of(variants: pa.Table) -> dict[FitKey, dict[str, list[Change]]]:
    """Return the rows of ``variants`` by fit and name, in the order of the kinds of change."""
    found: dict[FitKey, dict[str, list[Change]]] = defaultdict(lambda: defaultdict(list))
    columns: list[list[Any]] = [
        variants.column(name).to_pylist() for name in ("level", "processing_type", "method", "name")
    ]
    rows = (variants.column(name).to_pylist() for name in Change._fields)
    for level, kind, method, name, *row in zip(*columns, *rows, strict=True):
        found[level, kind, method][name].append(Change(*row))
    for names in found.values():
        for changes in names.values():
            changes.sort(key=lambda item: VARIED.index(item.change))
    return found


# What no deviation survives: against which value it is has no answer
CHANGED = "the declared value changed inside the window"
RAW = "nothing corrected for start-up times"


def deviation_under(evidence: Evidence, k: float | None) -> float | None:
    """Return the deviation of a name if its factor were ``k``; None if it has none."""
    if evidence.k is None or evidence.deviation is None or k is None:
        return None
    return (1 + evidence.deviation) * k / evidence.k - 1


def unstable_under(
    evidence: Evidence, verdict: Verdict, changes: Iterable[Change], limit: float
) -> str | None:
    """Return the first change that the verdict does not survive, with its deviation; None if it is stable.

    The changes are in the gauge in which the median name, and so the line, does not move.
    """
    if evidence.k is None or evidence.deviation is None:
        return None
    found = _unstable_value(evidence, evidence.deviation, limit) if verdict == "deviates" else None
    for item in changes:
        # the first one is named; the others say no more
        found = found or _unstable_change(evidence, evidence.deviation, verdict, item, limit)
    if found is None and verdict == "deviates" and has_two_speeds(evidence):
        total = evidence.n_buckets + evidence.n_rejected
        return f"two speeds: {evidence.n_rejected} of {total} buckets do not fit its others"
    return found


def _unstable_value(evidence: Evidence, deviation: float, limit: float) -> str | None:
    if evidence.declared.changed:
        return CHANGED
    raw = evidence.deviation_raw
    if raw is not None and not survives("deviates", deviation, raw, limit):
        return f"{RAW}: {signed_percent(raw)}"
    return None


def _unstable_change(
    evidence: Evidence, deviation: float, verdict: Verdict, item: Change, limit: float
) -> str | None:
    if item.change in HALVES and verdict != "deviates":
        return None
    least = _limit_under(item.change, verdict, limit)
    for k, under in ((item.k_low, item.low_change), (item.k_high, item.high_change)):
        updated = deviation_under(evidence, k)
        if updated is not None and not survives(verdict, deviation, updated, least):
            return f"{under}: {signed_percent(updated)}"
    return f"{item.disconnecting_task}: no factor" if item.disconnecting_task else None


def _limit_under(change: str, verdict: Verdict, limit: float) -> float:
    """Return the limit to apply under a kind of change: of a deviation half of it must survive."""
    if verdict != "deviates":
        return limit
    # half of the jobs tells less: the sign must survive. With its strays it has all jobs, and more must
    return 0.0 if change in HALVES else 2 * limit if change == STRAYS else limit


def unstable_names(
    judged: Sequence[tuple[Evidence, Verdict]], changes: Mapping[str, Sequence[Change]], limit: float
) -> dict[str, str]:
    """Return the names with verdict deviates or ok that are not stable, with the change."""
    found = {}
    for evidence, verdict in judged:
        if verdict in SURVIVING:
            under = unstable_under(evidence, verdict, changes.get(evidence.name, ()), limit)
            if under is not None:
                found[evidence.name] = under
    return found
