"""Rules applied to a batch of jobs: flagged jobs, severity, wasted hours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.issues.facts import Facts
from esjobs.issues.rules.building import tag_name
from esjobs.issues.rules.expressions import UNKNOWN, Column, Columns
from esjobs.issues.rules.rule import Rule, Rules

NOT_KNOWN = "unknown"
"""Suffix of the reason of jobs for which a condition is unknown."""


Measures = Mapping[tuple[str, str], Mapping[str, Floats]]
"""Measurements by detector and variant: value, share, n_samples and its own numbers, NaN if missing."""


@dataclass(frozen=True)
class Flagged:
    """Jobs flagged by a rule: rows of the batch and columns beside them.

    ``numbers``: measurements of its detector over all jobs of the batch.
    """

    rule: Rule
    rows: Ints
    ranks: Ints
    values: Floats
    idle_core_h: Floats
    idle_gpu_h: Floats
    numbers: Mapping[str, Floats]

    @property
    def threshold(self) -> float | None:
        """Limit shown with the value."""
        return self.rule.limits.get(self.rule.threshold)


def eligibility(rules: Rules, facts: Facts) -> tuple[Mask, Sequence[str | None]]:
    """Return the mask of jobs whose detector findings count, and the reasons of the others."""
    eligible = np.ones(facts.n, np.bool_)
    reasons = np.full(facts.n, None, object)
    limits = {name: np.asarray(np.float64(limit)) for name, limit in rules.limits.items()}
    column = _with(facts.column, limits)
    for condition in rules.eligible:
        truth = condition.expression.of(column, facts.n)
        missed = eligible & (truth != 1)
        # the first condition that fails is the reason
        reasons[missed & (truth == 0)] = condition.reason
        reasons[missed & (truth != 0)] = f"{condition.reason}: {NOT_KNOWN}"
        eligible &= ~missed
    return eligible, reasons.tolist()


def judged(rules: Rules, facts: Facts, eligible: Mask, measures: Measures | None = None) -> Iterator[Flagged]:
    """Yield the jobs that each rule flags, in the order of the rules; a missing value never flags."""
    for rule in rules.rules:
        numbers: Mapping[str, Floats] | None = {}
        if rule.detector:
            numbers = (measures or {}).get((rule.detector, rule.variant))
        tag = f"tag.{tag_name(rule.name)}"
        if numbers is None:
            # not measured: the tag is unknown, and its rule flags no job
            facts.put(tag, np.full(facts.n, UNKNOWN))
            continue
        columns = rule.columns(_with(facts.column, numbers), facts.n)
        truth = rule.when.of(columns, facts.n)
        if not rule.any_job:
            # not unknown: other rules may ask for the tag
            truth = np.where(eligible, truth, 0.0)
        facts.put(tag, truth)
        rows = np.flatnonzero(truth == 1)
        if len(rows):
            yield _flagged(rule, rows, columns, facts.n, numbers)


def _flagged(rule: Rule, rows: Ints, columns: Columns, n: int, numbers: Mapping[str, Floats]) -> Flagged:
    wasted = {"idle_core_h": rule.idle_core_h, "idle_gpu_h": rule.idle_gpu_h}
    hours = {
        name: np.full(n, np.nan) if expression is None else expression.of(columns, n)
        for name, expression in wasted.items()
    }
    ranks = rule.severity.ranks(_with(columns, hours), n)
    value = np.full(n, np.nan)
    if rule.detector or rule.value is not None:
        # a formula of limits alone is one number for all jobs
        value = np.broadcast_to(columns("value"), (n,))
    # a formula may fall below 0 where a record and a series disagree
    core, gpu = (np.maximum(each[rows], 0.0) for each in hours.values())
    return Flagged(rule, rows, ranks[rows], value[rows], core, gpu, numbers)


def _with(columns: Columns, own: Mapping[str, Floats]) -> Columns:
    """Return columns with some replaced or added."""

    def column(name: str) -> Column:
        return own[name] if name in own else columns(name)

    return column
