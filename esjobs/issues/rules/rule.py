"""Rules: condition, limits, severity and hint."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from esjobs.core.arrays import Ints
from esjobs.core.identity import content_id
from esjobs.issues.rules.expressions import Column, Columns, Expression
from esjobs.issues.rules.hints import Hint
from esjobs.schema.issues import SEVERITIES


@dataclass(frozen=True)
class Graded:
    """Severity: ``otherwise``, or by bounds on a number.

    ``bounds``: severity and its first value, mildest first; ascending: larger is worse, descending: smaller
    is. A missing number is ``otherwise``.
    """

    otherwise: str
    of: Expression | None = None
    bounds: tuple[tuple[str, float], ...] = ()

    def ranks(self, columns: Columns, n: int) -> Ints:
        """Return the index in :data:`SEVERITIES` of each row."""
        ranks = np.full(n, SEVERITIES.index(self.otherwise), np.int64)
        if self.of is None:
            return ranks
        value = self.of.of(columns, n)
        falling = len(self.bounds) > 1 and self.bounds[0][1] > self.bounds[-1][1]
        # mildest first: a worse one that is reached overwrites it
        for severity, bound in self.bounds:
            with np.errstate(invalid="ignore"):
                reached = value <= bound if falling else value >= bound
            ranks[reached] = SEVERITIES.index(severity)
        return ranks


@dataclass(frozen=True)
class Rule:
    """Rule of jobs.

    ``detector``, ``variant``: measurement it uses; empty: a tag, from footprint and record. ``when``: flags
    jobs for which it is certainly true. ``value``: shown value; default: that of the detector. ``threshold``:
    limit shown beside it. ``metric``: metric of the plot. ``any_job``: also for jobs that are not eligible.
    ``alone``: not reported of a job with an issue. ``units``: base units of limits.
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
    alone: bool = False
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Kind of the rows it makes: ``detector`` if it judges a measurement, else ``tag``."""
        return "detector" if self.detector else "tag"

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All expressions."""
        expressions_given = (self.when, self.value, self.severity.of, self.idle_core_h, self.idle_gpu_h)
        return tuple(item for item in expressions_given if item is not None)

    @cached_property
    def names(self) -> frozenset[str]:
        """All names used."""
        return frozenset().union(*(item.names for item in self.expressions), self.hint.names)

    def columns(self, facts: Columns, n: int) -> Columns:
        """Return the columns of its names: limits, value, facts."""

        def limits_and_facts(name: str) -> Column:
            return np.asarray(np.float64(self.limits[name])) if name in self.limits else facts(name)

        def column(name: str) -> Column:
            if name == "value" and self.value is not None:
                return self.value.of(limits_and_facts, n)
            return limits_and_facts(name)

        return column


@dataclass(frozen=True)
class Condition:
    """Condition of eligible jobs, and the reason of others."""

    reason: str
    expression: Expression


@dataclass(frozen=True)
class Rules:
    """Rules in force, and conditions of eligible jobs.

    ``limits``, ``units``: of these conditions. ``own``: number of keys per file.
    """

    rules: tuple[Rule, ...]
    eligible: tuple[Condition, ...]
    limits: Mapping[str, float]
    texts: Mapping[str, object]
    units: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """Digest of the rules."""
        return content_id({"rules": repr(self.texts)})

    def rule(self, name: str) -> Rule | None:
        """Return a rule by its name, None if it does not exist."""
        return next((each for each in self.rules if each.name == name), None)
