"""The columns of an answer from the parts of its groups: numbers, errors, shares, changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from esjobs.core.arrays import Floats
from esjobs.core.rates import NOISE_SIGMAS
from esjobs.records.jobs.questions.changes import Change
from esjobs.records.jobs.questions.formulas import JOBS, Part, Parts, Ratio, Total, leaves_out
from esjobs.records.jobs.questions.metrics import QueryMetric
from esjobs.records.jobs.questions.ranking import interval

PARTS = ("within", "within_z", "mix", "turnover")
"""Columns beside the change of a ratio: its parts, and the z of that within tasks and queues."""
SHARE_PARTS = ("before", "diff", "z")
"""Columns beside a share that is compared."""


@dataclass(frozen=True)
class Wanted:
    """Requested columns of an answer: metrics in their order, and what stands beside them.

    ``ranked``: the rate that groups are sorted by, with its interval; empty: none. ``share_changes``: shares
    are compared, too. ``strata``: the mix of kinds of work has a z.
    """

    metrics: tuple[QueryMetric, ...]
    errors: bool = False
    share: bool = False
    compared: bool = False
    ranked: str = ""
    share_changes: bool = False
    strata: bool = False

    def parts(self) -> tuple[Part, ...]:
        """Return the parts that the store must give."""
        of_metrics = [
            part
            for one in self.metrics
            for part in one.formula.parts(errors=one.has_error and (self.errors or one.name == self.ranked))
        ]
        counted = [one.formula.counted for one in self.metrics if leaves_out(one.formula)]
        return tuple(dict.fromkeys([*([JOBS.moment] if counted else []), *of_metrics, *counted]))

    @property
    def names(self) -> list[str]:
        """Names of the columns of numbers, in order."""
        return [name for one in self.metrics for name in self._names(one)]

    def is_count(self, name: str) -> bool:
        """True if the numbers of a column are counts, or differences of counts."""
        plain = name.removesuffix("_before").removesuffix("_diff")
        return any(
            plain == one.name and isinstance(one.formula, Total) and not one.formula.amount.factors
            for one in self.metrics
        )

    def _names(self, one: QueryMetric) -> Iterator[str]:
        yield one.name
        if self.errors and one.has_error:
            yield f"{one.name}_err"
        if one.name == self.ranked:
            yield from (f"{one.name}_low", f"{one.name}_high")
        if self.share and one.adds_up:
            yield f"{one.name}_share"
        if self.compared:
            yield from (f"{one.name}_{what}" for what in self._compared(one))

    def _compared(self, one: QueryMetric) -> Iterator[str]:
        yield from ("before", "diff", "ratio", "z")
        if self.share_changes and one.adds_up:
            yield from (f"share_{what}" for what in SHARE_PARTS)
        if one.has_error and not one.adds_up:
            yield from PARTS
            if self.strata:
                yield "mix_z"


Columns = dict[str, Floats]


def columns(
    wanted: Wanted, sides: Sequence[Parts], totals: Sequence[Parts], changes: Mapping[str, Change]
) -> Columns:
    """Return numbers by the name of their column.

    ``sides``: parts of the groups in the window, and in that before; ``totals``: of all groups together;
    ``changes``: by metric with an error.
    """
    answer: Columns = {}
    for metric in wanted.metrics:
        found = _of_metric(wanted, metric, sides, totals, changes)
        answer |= {metric.name + ending: numbers for ending, numbers in found.items()}
    return answer


def _of_metric(
    wanted: Wanted,
    metric: QueryMetric,
    sides: Sequence[Parts],
    totals: Sequence[Parts],
    changes: Mapping[str, Change],
) -> Columns:
    """Return the columns of a metric by what follows its name."""
    values = _values(metric, sides[0])
    answer: Columns = {"": values}
    if wanted.errors and metric.has_error:
        answer["_err"] = metric.formula.errors(sides[0]) * metric.scale
    if metric.name == wanted.ranked and isinstance(metric.formula, Ratio):
        low, high = interval(metric.formula, sides[0])
        answer |= {"_low": low * metric.scale, "_high": high * metric.scale}
    # of a total that is 0 no group has a share
    if wanted.share and metric.adds_up:
        answer["_share"] = _divided(values, _values(metric, totals[0]))
    if wanted.compared:
        before = _values(metric, sides[1])
        answer |= _compared(metric, values, before, changes.get(metric.name))
        if wanted.share_changes and metric.adds_up:
            past = _divided(before, _values(metric, totals[1]))
            answer |= {"_share_before": past, "_share_diff": answer["_share"] - past}
            answer["_share_z"] = _z(changes.get(f"{metric.name}_share"), len(past))
    return answer


def _z(change: Change | None, number: int) -> Floats:
    return np.full(number, np.nan) if change is None else change.z


def _compared(metric: QueryMetric, values: Floats, before: Floats, change: Change | None) -> Columns:
    answer: Columns = {"_before": before, "_diff": values - before, "_ratio": _divided(values, before)}
    answer["_z"] = _z(change, len(values))
    if change is not None and not metric.adds_up:
        answer["_within"] = change.within * metric.scale
        answer["_within_z"] = change.within_z
        answer["_mix"] = change.mix * metric.scale
        answer["_turnover"] = change.turnover * metric.scale
        if change.mix_z is not None:
            answer["_mix_z"] = change.mix_z
    return answer


def noise_columns(wanted: Wanted, numbers: Columns) -> dict[str, list[bool | None]]:
    """By the column of the sigmas, whether a change is larger than its noise; null: not known."""
    if not wanted.compared:
        return {}
    answer: dict[str, list[bool | None]] = {}
    compared = (f"{metric.name}_z" for metric in wanted.metrics)
    shares = (f"{metric.name}_share_z" for metric in wanted.metrics)
    for name in (*compared, *(name for name in shares if name in numbers)):
        sigmas, finite = np.abs(numbers[name]), ~np.isnan(numbers[name])
        answer[name] = [
            bool(z > NOISE_SIGMAS) if is_finite else None for z, is_finite in zip(sigmas, finite, strict=True)
        ]
    return answer


def _values(metric: QueryMetric, parts: Parts) -> Floats:
    return metric.formula.values(parts) * metric.scale


def _divided(over: Floats, under: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(under > 0, over / under, np.nan)
