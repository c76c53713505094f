"""What a rule is: a condition, its limits, how bad it is, and what to tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from esjobs.core.identity import content_id
from esjobs.issues.rules.expressions import Column, Columns, Expression
from esjobs.issues.rules.hints import Hint
from esjobs.issues.rules.vocabulary import metric_of
from esjobs.schema.issues import SEVERITIES


@dataclass(frozen=True)
class Graded:
    """How bad a finding is: ``otherwise``, or what the bounds on a number say.

    ``bounds``: severity and the value from which on it counts, the mildest first; in ascending order larger
    values are worse, in descending order smaller ones. Where the number is missing it is ``otherwise``.
    """

    otherwise: str
    of: Expression | None = None
    bounds: tuple[tuple[str, float], ...] = ()

    def ranks(self, columns: Columns, n: int) -> npt.NDArray[np.int64]:
        """The place of each row's severity among :data:`SEVERITIES`."""
        ranks = np.full(n, SEVERITIES.index(self.otherwise), np.int64)
        if self.of is None:
            return ranks
        value = self.of.of(columns, n)
        falling = len(self.bounds) > 1 and self.bounds[0][1] > self.bounds[-1][1]
        for severity, bound in self.bounds:
            with np.errstate(invalid="ignore"):
                reached = value <= bound if falling else value >= bound
            ranks[reached] = SEVERITIES.index(severity)
        return ranks


@dataclass(frozen=True)
class Rule:
    """A rule of jobs.

    ``detector``: whose measurement it is about, in ``variant``; empty: a tag, from footprint and record.
    ``when``: it fires where this is certainly true. ``value``: what is told of a job; of a detector's
    rule without one it is what was measured. ``threshold``: the limit that is told beside it.
    ``idle_core_h``, ``idle_gpu_h``: how much could have been saved. ``metric``: whose plot shows
    it.
    ``any_job``: also of jobs that are too short, have one core, or did not end by themselves. ``units``: base
    units of limits that have one.
    """

    name: str
    area: str
    meaning: str
    when: Expression
    severity: Graded
    hint: Hint
    limits: Mapping[str, float] = field(default_factory=dict)
    detector: str = ""
    variant: str = ""
    value: Expression | None = None
    threshold: str = ""
    idle_core_h: Expression | None = None
    idle_gpu_h: Expression | None = None
    metric: str = ""
    any_job: bool = False
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """``detector`` or ``tag``."""
        return "detector" if self.detector else "tag"

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Everything that is worked out for it."""
        given = (self.when, self.value, self.severity.of, self.idle_core_h, self.idle_gpu_h)
        return tuple(item for item in given if item is not None)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name that it needs the value of."""
        return frozenset().union(*(item.names for item in self.expressions), self.hint.names)

    @cached_property
    def metrics(self) -> frozenset[str]:
        """The metrics of the footprint that its condition is about."""
        return frozenset(filter(None, map(metric_of, self.names)))

    def columns(self, facts: Columns, n: int) -> Columns:
        """The columns of its names for ``n`` jobs: its limits, its value, and facts of the jobs."""

        def limits_and_facts(name: str) -> Column:
            return np.asarray(np.float64(self.limits[name])) if name in self.limits else facts(name)

        def column(name: str) -> Column:
            if name == "value" and self.value is not None:
                return self.value.of(limits_and_facts, n)
            return limits_and_facts(name)

        return column


@dataclass(frozen=True)
class Condition:
    """Something that must be true of a job, and what is said where it is not."""

    reason: str
    expression: Expression


@dataclass(frozen=True)
class Rules:
    """All rules in force, in their order, and which jobs findings of detectors count for.

    ``limits``: of the conditions of these jobs; ``units``: base units of those that have one. ``own``: how
    many keys each file gives, by its name.
    """

    rules: tuple[Rule, ...]
    eligible: tuple[Condition, ...]
    limits: Mapping[str, float]
    texts: Mapping[str, object]
    units: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """A short name of these rules: other rules have another one."""
        return content_id({"rules": repr(self.texts)})

    def rule(self, name: str) -> Rule | None:
        """A rule by its name; None when there is none."""
        return next((each for each in self.rules if each.name == name), None)
