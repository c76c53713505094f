"""Metrics as sums of composite aggregations, without scripts.

A metric sums a product of fields. Integers among the keys are constant in a group and leave the sum, also as
divisors; the rest is one field, or a product by ``weighted_avg`` times the sum of weights (agrees to 1e-15).
If nearly every job is its own group, all numbers become keys and are only counted.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
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
    """Metric as product of constants (field, power) x sum of the product of ``summed``.

    ``present``: further required fields. ``where``: further filters. ``nonzero``: constants used as divisors.
    """

    constants: tuple[tuple[str, int], ...]
    summed: tuple[str, ...]
    present: frozenset[str]
    where: tuple[Filter, ...] = ()
    nonzero: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Factors:
    """Metric as powers of stored fields; ``having``: further required fields, ``nonzero``: their divisors."""

    powers: Mapping[str, int]
    having: frozenset[str]
    nonzero: frozenset[str]

    @property
    def fields(self) -> frozenset[str]:
        return self.having.union(self.powers)

    def fixed(self, constants: Set[str]) -> tuple[tuple[str, int], ...]:
        """Return the constants among the fields with their powers; 0 where they must only be present."""
        powers = [(name, power) for name, power in self.powers.items() if name in constants]
        return (*powers, *((name, 0) for name in self.having & constants if name not in self.powers))


@dataclass(frozen=True)
class Atom:
    """Number per group: ``count``, ``sum``, or ``mean`` weighted by the second field.

    Over the jobs that have the fields ``present`` and pass ``where``.
    """

    kind: str
    names: tuple[str, ...]
    present: frozenset[str]
    where: tuple[Filter, ...] = ()

    @property
    def of_some(self) -> bool:
        """True if it counts only some jobs of a group."""
        return bool(self.present or self.where)


@dataclass(frozen=True)
class Sums:
    """Requested sums per group, and the metrics that follow.

    ``constants``: numbers required as keys. ``terms``: by metric.
    """

    constants: tuple[str, ...]
    terms: Mapping[str, Term]
    """A metric that is not among them is null: the index lacks a field that it needs."""
    live: Mapping[str, LiveField]
    conditions: Mapping[tuple[Filter, ...], Sequence[Clause]]
    """The filters of metrics as clauses."""

    def atoms(self) -> list[Atom]:
        """Return the distinct numbers of all terms."""
        return list(dict.fromkeys(atom for term in self.terms.values() for atom in _atoms(term)))

    def name(self, atom: Atom) -> str:
        """Return the short name of a number in answers."""
        return f"a{self.atoms().index(atom)}"

    def filter_name(self, atom: Atom) -> str:
        """Return the name of a filter in answers."""
        # equal conditions share a filter aggregation
        some = list(dict.fromkeys((other.present, other.where) for other in self.atoms()))
        return f"f{some.index((atom.present, atom.where))}"

    def body(self) -> dict[str, Any]:
        """Return the aggregations inside a group."""
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
        """Return a metric per group, and the mask of null values."""
        some = (term.present, term.where)
        count = atoms[Atom("count", (), *some)]
        null = count == 0
        total = count.astype(np.float64)
        if term.summed:
            # sum of a x b = sum of b x (mean of a weighted by b)
            first = atoms[Atom("sum", term.summed[-1:], *some)]
            total = first * self._factor(term.summed[-1])
        if len(term.summed) == 2:
            # weights that add up to 0 have no mean: the sum of the product is 0 then
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
    """Return the plan of the metrics of a query; None if one is not such a sum.

    ``by_value``: every number becomes a key.
    """
    factors: dict[str, _Factors] = {}
    conditions: dict[tuple[Filter, ...], Sequence[Clause]] = {}
    where = {metric.name: metric.where if isinstance(metric, Moment) else () for metric in query.metrics}
    for metric in query.metrics:
        of_metric = _factors(query, metric)
        said = clauses.filters(where[metric.name])
        if of_metric is None or said is None:
            return None
        conditions[where[metric.name]] = said
        if not _lacks(live, of_metric):
            factors[metric.name] = of_metric
    constants = _constants(query, live, list(factors.values()), by_value=by_value)
    if constants is None:
        return None
    # fields that filters and rules demand need no filter of their own inside groups
    sure = present_in(query)
    terms: dict[str, Term] = {}
    for name, each in factors.items():
        term = _term(each, where[name], constants, sure, live)
        if term is None:
            return None
        terms[name] = term
    return Sums(tuple(sorted(constants)), terms, live, conditions)


def _lacks(live: Mapping[str, LiveField], factors: _Factors) -> bool:
    """True if the index lacks a field of a metric, which is null then."""
    return any(live[name].state == "absent" for name in factors.fields if name in live)


def _constants(
    query: Query, live: Mapping[str, LiveField], factors: Sequence[_Factors], *, by_value: bool
) -> set[str] | None:
    """Return the numbers that must be keys; None if the index cannot group by one of them."""
    used = {name for each in factors for name in each.fields}
    # constants and values that only documents have cannot be summed
    if any(live[name].state != "present" for name in used):
        return None
    constants = {name for name in _needed_by_keys(query) if live[name].state != "absent"}
    constants.update(_leaving_the_sum(query, live, factors), used if by_value else ())
    # by_value or not: a product of three fields cannot be summed
    _shorten(query, factors, constants)
    exact = all(_is_key(query, live, name, by_value=by_value) for name in constants)
    return constants if exact else None


def _shorten(query: Query, factors: Sequence[_Factors], constants: set[str]) -> None:
    """Add integers to the constants until the index has to sum one number, or the product of two."""
    for each in factors:
        if sum(power for name, power in each.powers.items() if name not in constants) > 2:
            constants.update(name for name in each.powers if query.field(name).type == "integer")


def _is_key(query: Query, live: Mapping[str, LiveField], name: str, *, by_value: bool) -> bool:
    kinds = ("integer", "number") if by_value else ("integer",)
    return query.field(name).type in kinds and live[name].askable and (live[name].one_kind or not by_value)


def _leaving_the_sum(
    query: Query, live: Mapping[str, LiveField], factors: Sequence[_Factors]
) -> Iterator[str]:
    """Yield divisors, and whole numbers that are rounded only after the index has answered."""
    for each in factors:
        yield from each.nonzero
        for name, power in each.powers.items():
            if power < 0:
                yield name
        for name in each.fields:
            if query.field(name).type == "integer" and not (live[name].plain and live[name].whole_numbers):
                yield name


# Filters that no missing value passes
_HAVING = In | NotIn | Present | Range | Times | Like


def present_in(query: Query) -> set[str]:
    """Return the stored fields present in every row that passes filters and rules."""
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


def _factors(query: Query, metric: Metric) -> _Factors | None:
    """Return the factors of a metric; None if it is not a sum of a product."""
    if isinstance(metric, Minimum | Maximum | Quantile):
        return None
    names, others = _product_of(metric)
    powers: Counter[str] = Counter()
    for name in names:
        over, under = _over_and_under(query, name)
        powers.update(over)
        # wall_s / wall_s would lose its test for 0, see below
        powers.subtract(under)
        if any(powers[part] >= 0 for part in under):
            return None  # the divisor cancels, and with it the test that it is not 0
    having = frozenset(part for other in others for part in _behind(query, other))
    return _Factors(powers, having, _divisors(query, others))


def _product_of(
    metric: Count | Sum | SumProduct | SumWhere | Moment,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields that a metric multiplies, and those that its jobs must have besides."""
    match metric:
        case Count():
            return (), ()
        case Sum(name):
            return (name,), ()
        case SumProduct(left, right):
            return (left, right), ()
        case SumWhere(name, others):
            return (name,), others
        case Moment(names, _, others):
            return names, others


def _over_and_under(query: Query, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    derived = query.field(name).derived
    return (derived.over, derived.under) if isinstance(derived, Quotient) else ((name,), ())


def _divisors(query: Query, having: Sequence[str]) -> frozenset[str]:
    derived = (query.field(name).derived for name in having)
    return frozenset(part for item in derived if isinstance(item, Quotient) for part in item.under)


def _term(
    factors: _Factors,
    where: tuple[Filter, ...],
    constants: Set[str],
    sure: Set[str],
    live: Mapping[str, LiveField],
) -> Term | None:
    variable = {name: power for name, power in factors.powers.items() if name not in constants}
    summed = tuple(Counter(variable).elements())
    needed = factors.fields - constants
    if len(summed) > 2 or any(power < 0 for power in variable.values()):
        return None
    # which of several paths has the value of a job is not known to a sum
    if any(len(live[name].paths) > 1 for name in needed):
        return None
    return Term(factors.fixed(constants), summed, frozenset(needed - sure), where, factors.nonzero)


def _atoms(term: Term) -> list[Atom]:
    some = (term.present, term.where)
    atoms = [Atom("count", (), *some)]
    if term.summed:
        atoms.append(Atom("sum", term.summed[-1:], *some))
    if len(term.summed) == 2:
        atoms.append(Atom("mean", term.summed, *some))
    return atoms
