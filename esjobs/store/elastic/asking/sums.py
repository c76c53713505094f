"""Metrics as sums that a composite aggregation can make, and back: no scripts, no ``extended_stats``.

Every metric of the language is a sum over jobs of a product of fields. Inside a group whole numbers that are
among the keys (cores, events) are constant, so that they leave the sum, also as divisors; of what remains
the cluster sums one field, or the product of two: ``weighted_avg`` of v with weights w, times the sum of w.
Sums of squares so made agree with a direct computation to 1e-15.

Where nearly every job is a group of its own anyway, all numbers are among the keys instead: the cluster only
counts, and every sum is made of keys and counts.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from esjobs.core.fields import CoreClassOf, Quotient
from esjobs.core.query import (
    Count,
    Either,
    Filter,
    In,
    Like,
    Maximum,
    Metric,
    Minimum,
    Moment,
    NotIn,
    Present,
    Quantile,
    Query,
    Range,
    Sum,
    SumProduct,
    SumWhere,
    Times,
)
from esjobs.store.elastic.asking.clauses import Clause, Clauses, all_of, has_value
from esjobs.store.elastic.fields.live_fields import LiveField

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    """A metric as: product of constants (field, power) x sum of the product of ``summed`` over some jobs.

    ``present``: the fields that a job must have to count, besides the constants. ``where``: what else must
    hold for it. ``nonzero``: constants that are not 0 where a job counts, for a field divides by them.
    """

    constants: tuple[tuple[str, int], ...]
    summed: tuple[str, ...]
    present: frozenset[str]
    where: tuple[Filter, ...] = ()
    nonzero: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Atom:
    """One number per group that the cluster makes.

    ``kind``: ``count``, ``sum`` of the first field, or ``mean`` of the first weighted by the second, over the
    jobs that have the fields ``present`` and for which the filters hold.
    """

    kind: str
    names: tuple[str, ...]
    present: frozenset[str]
    where: tuple[Filter, ...] = ()

    @property
    def of_some(self) -> bool:
        """Whether not every job of a group counts."""
        return bool(self.present or self.where)


@dataclass(frozen=True)
class Sums:
    """What to ask per group, and how metrics follow from it.

    ``constants``: numbers that must be among the keys. ``terms``: by the name of the metric.
    """

    constants: tuple[str, ...]
    terms: Mapping[str, Term]
    """A metric that is not among them is null: the index lacks a field that it needs."""
    live: Mapping[str, LiveField]
    conditions: Mapping[tuple[Filter, ...], Sequence[Clause]]
    """The filters of metrics as clauses."""

    def atoms(self) -> list[Atom]:
        """Every number that the terms need, once."""
        return list(dict.fromkeys(atom for term in self.terms.values() for atom in _atoms(term)))

    def name(self, atom: Atom) -> str:
        """What a number is called in answers, briefly: it stands there once for each group."""
        return f"a{self.atoms().index(atom)}"

    def filter_name(self, atom: Atom) -> str:
        """What the jobs that count for a number are called in answers."""
        some = list(dict.fromkeys((other.present, other.where) for other in self.atoms()))
        return f"f{some.index((atom.present, atom.where))}"

    def body(self) -> dict[str, Any]:
        """The aggregations inside a group; those over jobs that lack nothing stand at the top."""
        aggregations: dict[str, Any] = {}
        for atom in self.atoms():
            inside = aggregations
            if atom.of_some:
                atom_filter = aggregations.setdefault(self.filter_name(atom), self._filter(atom))
                inside = atom_filter["aggs"]
            if atom.kind != "count":
                inside[self.name(atom)] = self._aggregation(atom)
        for aggregation in aggregations.values():
            if aggregation.get("aggs") == {}:
                del aggregation["aggs"]
        return aggregations

    def values(
        self, term: Term, constants: Mapping[str, Floats], atoms: Mapping[Atom, Floats]
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """A metric per group, and where it is null because no job of the group counts.

        ``constants``: NaN where missing.
        """
        some = (term.present, term.where)
        count = atoms[Atom("count", (), *some)]
        null = count == 0
        total = count.astype(np.float64)
        if term.summed:
            first = atoms[Atom("sum", term.summed[-1:], *some)]
            total = first * self._factor(term.summed[-1])
        if len(term.summed) == 2:
            mean = np.nan_to_num(atoms[Atom("mean", term.summed, *some)])
            total = total * mean * self._factor(term.summed[0])
        for name, power in term.constants:
            value = constants[name]
            null = null | np.isnan(value) | ((value == 0) & (power < 0))
            with np.errstate(divide="ignore", invalid="ignore"):
                total = total * value**power
        for name in term.nonzero:
            null = null | (constants[name] == 0)
        return np.where(null, 0.0, total), null

    def _factor(self, name: str) -> float:
        return self.live[name].source.factor

    def _filter(self, atom: Atom) -> dict[str, Any]:
        parts: list[Clause] = list(self.conditions[atom.where])
        for name in sorted(atom.present):
            live = self.live[name]
            parts.append(has_value(live, live.paths[0]))
        return {"filter": all_of(parts), "aggs": {}}

    def _aggregation(self, atom: Atom) -> dict[str, Any]:
        paths = [self.live[name].paths[0] for name in atom.names]
        if atom.kind == "sum":
            return {"sum": {"field": paths[0]}}
        return {"weighted_avg": {"value": {"field": paths[0]}, "weight": {"field": paths[1]}}}


def plan_sums(
    query: Query, live: Mapping[str, LiveField], clauses: Clauses, *, by_value: bool = False
) -> Sums | None:
    """How to make the metrics of a query; None when one of them is no such sum, or a field forbids it.

    ``by_value``: every number is among the keys, and nothing is left to be summed inside a group; None as
    well where the indices that are asked together hold a number as different types.
    """
    factors: dict[str, tuple[dict[str, int], frozenset[str]]] = {}
    nonzero = {metric.name: _divisors(query, metric) for metric in query.metrics}
    for metric in query.metrics:
        of_metric = _factors(query, metric)
        if of_metric is None:
            return None
        factors[metric.name] = of_metric
    where = {metric.name: metric.where if isinstance(metric, Moment) else () for metric in query.metrics}
    conditions: dict[tuple[Filter, ...], Sequence[Clause]] = {}
    for filters in where.values():
        said = clauses.filters(filters)
        if said is None:
            return None
        conditions[filters] = said
    lacking = {name for name, item in live.items() if item.state == "absent"}
    factors = {
        name: (powers, having)
        for name, (powers, having) in factors.items()
        if not lacking & {*powers, *having}
    }
    used = {name for powers, having in factors.values() for name in (*powers, *having)}
    if not all(live[name].state == "present" for name in used):
        return None
    constants = {name for name in _needed_by_keys(query) if live[name].state != "absent"} | {
        name
        for name in used
        if query.field(name).type == "integer" and not (live[name].plain and live[name].whole_numbers)
    }
    constants |= {n for powers, _ in factors.values() for n, power in powers.items() if power < 0}
    constants |= {n for name in factors for n in nonzero[name]}
    if by_value:
        constants |= used
        if not all(live[name].one_kind for name in constants):
            return None
    for powers, _ in factors.values():
        if sum(power for name, power in powers.items() if name not in constants) > 2:
            constants |= {name for name in powers if query.field(name).type == "integer"}
    kinds = ("integer", "number") if by_value else ("integer",)
    if not all(query.field(name).type in kinds and live[name].askable for name in constants):
        return None
    sure = present_in(query)
    terms = {
        name: _term(powers, having, where[name], constants, sure, live, nonzero[name])
        for name, (powers, having) in factors.items()
    }
    usable = {name: term for name, term in terms.items() if term is not None}
    return Sums(tuple(sorted(constants)), usable, live, conditions) if len(usable) == len(terms) else None


_HAVING = In | NotIn | Present | Range | Times | Like
"""Filters that no missing value passes."""


def present_in(query: Query) -> set[str]:
    """The stored fields that every row has which passes filters and rules."""
    kept: list[Filter] = [*query.where, *(rule.keep for rule in query.drops if rule.missing == "drop")]
    present: set[str] = set()
    for item in kept:
        if isinstance(item, _HAVING):
            present |= _behind(query, item.field)
        elif isinstance(item, Either) and item.filters:
            each = [
                _behind(query, part.field) if isinstance(part, _HAVING) else set() for part in item.filters
            ]
            present |= set.intersection(*each)
    return present


def _behind(query: Query, name: str) -> set[str]:
    """The stored fields that a field is made of."""
    match query.field(name).derived:
        case Quotient(over, under):
            return {*over, *under}
        case CoreClassOf(source):
            return {source}
        case None:
            return {name}
    return set()


def _needed_by_keys(query: Query) -> set[str]:
    needed = {name for key in query.keys for name in _behind(query, key)}
    return {name for name in needed if query.field(name).type == "integer"}


def _factors(query: Query, metric: Metric) -> tuple[dict[str, int], frozenset[str]] | None:
    """A metric as powers of stored fields, and what else a job must have to count."""
    having_all: tuple[str, ...] = ()
    match metric:
        case Count():
            return {}, frozenset()
        case Sum(name):
            names: tuple[str, ...] = (name,)
        case SumProduct(left, right):
            names = (left, right)
        case SumWhere(name, others):
            names, having_all = (name,), others
        case Moment(factors, _, others):
            names, having_all = factors, others
        case Minimum() | Maximum() | Quantile():
            return None
    having = frozenset(part for other in having_all for part in _behind(query, other))
    powers: dict[str, int] = {}
    for name in names:
        item = query.field(name)
        over, under = (
            (item.derived.over, item.derived.under) if isinstance(item.derived, Quotient) else ((name,), ())
        )
        for part, power in [*((part, 1) for part in over), *((part, -1) for part in under)]:
            powers[part] = powers.get(part, 0) + power
        if any(powers[part] >= 0 for part in under):
            return None  # whether there is a value depends on a divisor that is no longer one
    return powers, having


def _divisors(query: Query, metric: Metric) -> frozenset[str]:
    """What the fields are divided by that a job must have to count: they are there only where it is not 0."""
    having = metric.having if isinstance(metric, SumWhere | Moment) else ()
    derived = (query.field(name).derived for name in having)
    return frozenset(part for item in derived if isinstance(item, Quotient) for part in item.under)


def _term(
    powers: Mapping[str, int],
    having: frozenset[str],
    where: tuple[Filter, ...],
    constants: Set[str],
    sure: Set[str],
    live: Mapping[str, LiveField],
    nonzero: frozenset[str],
) -> Term | None:
    summed = [name for name, power in powers.items() for _ in range(power) if name not in constants]
    if len(summed) > 2 or any(power < 0 for name, power in powers.items() if name not in constants):
        return None
    fixed = [(name, power) for name, power in powers.items() if name in constants]
    fixed += [(name, 0) for name in having if name in constants and name not in powers]
    needed = {name for name in (*powers, *having) if name not in constants}
    if any(len(live[name].paths) > 1 for name in needed):
        return None
    return Term(tuple(fixed), tuple(summed), frozenset(needed - sure), where, nonzero)


def _atoms(term: Term) -> list[Atom]:
    some = (term.present, term.where)
    atoms = [Atom("count", (), *some)]
    if term.summed:
        atoms.append(Atom("sum", term.summed[-1:], *some))
    if len(term.summed) == 2:
        atoms.append(Atom("mean", term.summed, *some))
    return atoms
