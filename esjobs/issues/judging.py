"""Rules applied to a batch of jobs: which fire, how bad it is, and what is told; null never fires."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from esjobs.issues.facts import Facts
from esjobs.issues.rules.building import tag_name
from esjobs.issues.rules.expressions import UNKNOWN, Column, Columns
from esjobs.issues.rules.rule import Rule, Rules

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NOT_KNOWN = "not known"
"""Ends the reason of a job of which a condition can be neither met nor missed."""


@dataclass(frozen=True)
class Measures:
    """What a detector measured, an entry per job of a batch; NaN where nothing was.

    ``numbers``: value, share, n_samples and the detector's own, by name.
    """

    numbers: Mapping[str, Floats]


@dataclass(frozen=True)
class Flagged:
    """The jobs that a rule fires for: rows of the batch, an entry each in the other columns.

    ``numbers``: what its detector measured, an entry per job of the batch.
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
        """The limit that is told."""
        return self.rule.limits.get(self.rule.threshold)


def eligibility(rules: Rules, facts: Facts) -> tuple[npt.NDArray[np.bool_], Sequence[str | None]]:
    """Of each job whether findings of detectors count, and why they do not."""
    eligible = np.ones(facts.n, np.bool_)
    reasons = np.full(facts.n, None, object)
    limits = {name: np.asarray(np.float64(limit)) for name, limit in rules.limits.items()}
    column = _with(facts.column, limits)
    for condition in rules.eligible:
        truth = condition.expression.of(column, facts.n)
        missed = eligible & (truth != 1)
        reasons[missed & (truth == 0)] = condition.reason
        reasons[missed & (truth != 0)] = f"{condition.reason}: {NOT_KNOWN}"
        eligible &= ~missed
    return eligible, reasons.tolist()


def judged(
    rules: Rules,
    facts: Facts,
    eligible: npt.NDArray[np.bool_],
    measures: Mapping[tuple[str, str], Measures] | None = None,
    *,
    chosen: Sequence[Rule] | None = None,
) -> Iterator[Flagged]:
    """The jobs that rules fire for, rule by rule, in their order.

    ``measures``: by detector and variant. ``chosen``: only these; rules that others name are to be before.
    """
    for rule in rules.rules if chosen is None else chosen:
        columns: Columns = facts.column
        given = (measures or {}).get((rule.detector, rule.variant))
        if rule.detector:
            if given is None:
                facts.put(f"tag.{tag_name(rule.name)}", np.full(facts.n, UNKNOWN))
                continue
            columns = _with(facts.column, given.numbers)
        bound = rule.columns(columns, facts.n)
        truth = rule.when.of(bound, facts.n)
        if not rule.any_job:
            truth = np.where(eligible, truth, 0.0)
        facts.put(f"tag.{tag_name(rule.name)}", truth)
        rows = np.flatnonzero(truth == 1)
        if not len(rows):
            continue
        wasted = {
            name: np.full(facts.n, np.nan) if expression is None else expression.of(bound, facts.n)
            for name, expression in (
                ("idle_core_h", rule.idle_core_h),
                ("idle_gpu_h", rule.idle_gpu_h),
            )
        }
        ranks = rule.severity.ranks(_with(bound, wasted), facts.n)
        value = np.full(facts.n, np.nan)
        if rule.detector or rule.value is not None:
            value = np.broadcast_to(bound("value"), (facts.n,))
        yield Flagged(
            rule,
            rows,
            ranks[rows],
            value[rows],
            np.maximum(wasted["idle_core_h"][rows], 0.0),
            np.maximum(wasted["idle_gpu_h"][rows], 0.0),
            {} if given is None else given.numbers,
        )


def _with(columns: Columns, own: Mapping[str, Floats]) -> Columns:
    """Columns, some of them replaced or added."""

    def column(name: str) -> Column:
        return own[name] if name in own else columns(name)

    return column
