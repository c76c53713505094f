"""The columns of an answer from the parts of its groups: numbers, errors, shares, changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from esjobs.jobs.questions.formulas import Amount, Floats, Part, Parts, Total
from esjobs.jobs.questions.metrics import QueryMetric

NOISE_SIGMAS = 3.0
"""A change is larger than its noise from so many standard errors on: once in 370 where nothing changed."""


@dataclass(frozen=True)
class Wanted:
    """Which columns an answer has: metrics in their order, and what stands beside them."""

    metrics: tuple[QueryMetric, ...]
    errors: bool = False
    share: bool = False
    compared: bool = False

    def parts(self) -> tuple[Part, ...]:
        """What a store must give for them; the number of jobs where some of them do not count."""
        errors = self.errors or self.compared
        of_metrics = [
            part for one in self.metrics for part in one.formula.parts(errors=errors and one.has_error)
        ]
        counted = [one.formula.counted for one in self.metrics if one.weight]
        return tuple(dict.fromkeys([*([Amount().moment] if counted else []), *of_metrics, *counted]))

    @property
    def names(self) -> list[str]:
        """What the columns of numbers are called, in their order."""
        return [name for one in self.metrics for name in self._names(one)]

    def is_whole(self, name: str) -> bool:
        """Whether the numbers of a column are counts, or differences of such."""
        plain = name.removesuffix("_before").removesuffix("_diff")
        return any(
            plain == one.name and isinstance(one.formula, Total) and not one.formula.amount.factors
            for one in self.metrics
        )

    def _names(self, one: QueryMetric) -> Iterator[str]:
        yield one.name
        if self.errors and one.has_error:
            yield f"{one.name}_err"
        if self.share and one.adds_up:
            yield f"{one.name}_share"
        if self.compared:
            yield from (f"{one.name}_{what}" for what in ("before", "diff", "ratio", "z"))


Columns = dict[str, Floats]


def columns(wanted: Wanted, sides: Sequence[Parts], totals: Sequence[Parts]) -> Columns:
    """Numbers by the name of their column.

    ``sides``: the parts of the groups, of one window or of two, the one before second; ``totals``: those of
    all groups together.
    """
    answer: Columns = {}
    for metric in wanted.metrics:
        values = _values(metric, sides[0])
        answer[metric.name] = values
        if wanted.errors and metric.has_error:
            answer[f"{metric.name}_err"] = _errors(metric, sides[0])
        if wanted.share and metric.adds_up:
            whole = _values(metric, totals[0])
            answer[f"{metric.name}_share"] = _divided(values, whole)
        if not wanted.compared:
            continue
        before = _values(metric, sides[1])
        if metric.adds_up:
            values, before = np.nan_to_num(values), np.nan_to_num(before)
        answer[f"{metric.name}_before"] = before
        answer[f"{metric.name}_diff"] = values - before
        answer[f"{metric.name}_ratio"] = _divided(values, before)
        noise = np.hypot(_errors(metric, sides[0]), _errors(metric, sides[1]))
        answer[f"{metric.name}_z"] = _divided(values - before, noise)
    return answer


def noise_columns(wanted: Wanted, numbers: Columns) -> dict[str, list[bool | None]]:
    """By the column of the sigmas, whether a change is larger than its noise; null: not known."""
    if not wanted.compared:
        return {}
    answer: dict[str, list[bool | None]] = {}
    for metric in wanted.metrics:
        name = f"{metric.name}_z"
        sigmas, known = np.abs(numbers[name]), ~np.isnan(numbers[name])
        answer[name] = [
            bool(z > NOISE_SIGMAS) if there else None for z, there in zip(sigmas, known, strict=True)
        ]
    return answer


def _values(metric: QueryMetric, parts: Parts) -> Floats:
    return metric.formula.values(parts) * metric.scale if metric.scale != 1 else metric.formula.values(parts)


def _errors(metric: QueryMetric, parts: Parts) -> Floats:
    return metric.formula.errors(parts) * metric.scale


def _divided(over: Floats, under: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(under > 0, over / under, np.nan)
