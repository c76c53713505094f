"""Formulas of the numbers of a question, from sums of the store, with their standard errors.

A store gives *parts*: moments (sums over jobs), quantiles, extremes. Moments of several groups add up, so
that ``others`` and ``total`` are as true as each group. Standard errors take the jobs of a group for a
sample of independent ones:

- of a ratio R of sums by linearisation: sqrt(n / (n - 1) x sum((o - R u)^2)) / sum(u), over the n jobs that
  have both terms (Cochran, Sampling Techniques, 3rd ed., eq. 2.39, without the correction for a finite
  population). A mean is the ratio of a sum and a number of jobs, for which this is sd / sqrt(n).
- of a sum of x over a number of jobs that is itself random (Poisson): sqrt(sum(x^2)); of a number: its root.

Arrays are over groups; NaN stands for missing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import numpy as np

from esjobs.core.arrays import Floats, Mask
from esjobs.core.query import Filter, Maximum, Minimum, Missing, Moment, Quantile, Range

Part = Moment | Quantile | Minimum | Maximum
"""Parts that a store returns; their names do not matter here."""

Parts = Mapping[Part, Floats]
"""Values by part, an array over groups each."""


@dataclass(frozen=True)
class Amount:
    """The sum of a product of fields over jobs; without fields their number.

    ``having``, ``where``: as in :class:`~esjobs.core.query.Moment`.
    """

    factors: tuple[str, ...] = ()
    having: tuple[str, ...] = ()
    where: tuple[Filter, ...] = ()

    def times(self, *factors: str) -> Moment:
        """The same sum, with more factors."""
        present = tuple(name for name in self.having if name not in (*self.factors, *factors))
        return Moment((*self.factors, *factors), "", present, self.where)

    @property
    def moment(self) -> Moment:
        """The sum itself."""
        return self.times()

    @property
    def squares(self) -> Moment:
        """The sum of squares; of a number, the number."""
        return self.times(*self.factors)

    @property
    def count(self) -> Moment:
        """Number of jobs that count."""
        return Moment((), "", tuple(dict.fromkeys((*self.factors, *self.having))), self.where)


JOBS = Amount()
"""The number of jobs of a group."""


class _Formula(Protocol):
    """A number of each group, from parts that the store gives."""

    @property
    def counted(self) -> Moment:
        """Number of jobs that count."""

    def parts(self, *, errors: bool) -> Iterator[Part]:
        """Yield the parts that the store must give; ``errors``: for standard errors, too."""

    def values(self, parts: Parts) -> Floats:
        """Return the number of each group."""

    def left_out(self, parts: Parts) -> Floats:
        """Return the number of jobs that would count if more were known of them."""
        return parts[JOBS.moment] - parts[self.counted]

    def errors(self, parts: Parts) -> Floats:
        """Return the standard error of each group; NaN for formulas without one."""
        return np.full(len(self.values(parts)), np.nan)


@dataclass(frozen=True)
class Total(_Formula):
    """A sum; of groups together it is the sum of theirs.

    ``unknown``: the jobs of which nobody can say whether the conditions of the amount hold.
    """

    amount: Amount
    unknown: tuple[Filter, ...] = ()

    def parts(self, *, errors: bool) -> Iterator[Part]:
        """Yield the sum, and the counts that tell an empty sum from an unknown one."""
        yield self.amount.moment
        if self.amount.where and self.amount.factors:
            yield self._meeting
        if self.unknown:
            yield self._unknown
        if self.amount != JOBS:
            yield JOBS.moment
        if errors:
            yield self.amount.squares

    @property
    def _meeting(self) -> Moment:
        return Moment((), "", (), self.amount.where)

    @property
    def _unknown(self) -> Moment:
        return Moment((), "", (), self.unknown)

    @property
    def counted(self) -> Moment:
        return self.amount.count

    def left_out(self, parts: Parts) -> Floats:
        """Return the jobs of which a condition or a field is unknown; 0 without conditions."""
        if not self.unknown:
            return np.zeros_like(parts[self.amount.moment])
        if not self.amount.factors:
            return parts[self._unknown]
        return parts[self._unknown] + parts[self._meeting] - parts[self.counted]

    def values(self, parts: Parts) -> Floats:
        """Return the sums: 0 where no job meets the conditions, NaN where those that do lack a field."""
        values = parts[self.amount.moment]
        if self.amount.where and self.amount.factors:
            values = np.where(parts[self._meeting] == 0, 0.0, values)
        if self.amount == JOBS:
            return values
        jobs = parts[JOBS.moment]
        if self.unknown:
            # nothing is known where the condition is unknown of every job
            values = np.where(parts[self._unknown] == jobs, np.nan, values)
        return np.where(jobs == 0, 0.0, values)

    def errors(self, parts: Parts) -> Floats:
        return cast(
            "Floats", np.where(np.isnan(self.values(parts)), np.nan, np.sqrt(parts[self.amount.squares]))
        )


@dataclass(frozen=True)
class Difference(_Formula):
    """A sum less another one, over the jobs that have both; of groups together it is the sum of theirs.

    ``over``, ``less``: fields to multiply; ``factor``: of the first product.
    """

    over: tuple[str, ...]
    less: tuple[str, ...]
    factor: float = 1.0

    @property
    def _terms(self) -> tuple[Amount, Amount]:
        return Amount(self.over, self.less), Amount(self.less, self.over)

    def parts(self, *, errors: bool) -> Iterator[Part]:
        """Yield both sums and their products."""
        over, less = self._terms
        yield from (over.moment, less.moment, JOBS.moment)
        if errors:
            yield from (over.squares, over.times(*self.less), less.squares)

    @property
    def counted(self) -> Moment:
        return self._terms[0].count

    def values(self, parts: Parts) -> Floats:
        # of no jobs 0, null where none has both
        over, less = self._terms
        difference = self.factor * parts[over.moment] - parts[less.moment]
        return np.where(parts[JOBS.moment] == 0, 0.0, difference)

    def errors(self, parts: Parts) -> Floats:
        """Return the standard errors, as of a sum of the differences of jobs."""
        over, less = self._terms
        both = self.factor * parts[over.times(*self.less)]
        # sum((f o - l)^2), multiplied out
        squares = self.factor**2 * parts[over.squares] - 2 * both + parts[less.squares]
        return cast("Floats", np.sqrt(np.maximum(squares, 0.0)))


@dataclass(frozen=True)
class Ratio(_Formula):
    """A sum over another one, of the jobs that have every term; null where the lower one is not positive.

    The jobs of the upper sum are among those of the lower one.
    """

    over: Amount
    under: Amount

    def parts(self, *, errors: bool) -> Iterator[Part]:
        """Yield both sums; for errors their squares, products and count."""
        yield self.over.moment
        yield self.under.moment
        if errors:
            yield from (self.over.squares, self._products, self.under.squares, self.counted)

    @property
    def counted(self) -> Moment:
        return self.under.count

    @property
    def _products(self) -> Moment:
        return self.over.times(*self.under.factors)

    def values(self, parts: Parts) -> Floats:
        """Return the ratios of sums; NaN where the lower one is not positive."""
        under = parts[self.under.moment]
        over = _or_zero(parts[self.over.moment], under) if self.over.where else parts[self.over.moment]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(under > 0, over / under, np.nan)

    def errors(self, parts: Parts) -> Floats:
        """Return the standard errors of ratios of sums (linearised); NaN below two jobs."""
        ratio, under, count = self.values(parts), parts[self.under.moment], parts[self.counted]
        squares, products = parts[self.over.squares], parts[self._products]
        if self.over.where:
            squares, products = _or_zero(squares, under), _or_zero(products, under)
        # sum((o - R u)^2), multiplied out
        spread = squares - 2 * ratio * products + ratio**2 * parts[self.under.squares]
        return _root_of_spread(spread, squares, count) / under


@dataclass(frozen=True)
class Spread(_Formula):
    """Standard deviation over jobs (``sd``, n - 1 below), or standard error of the mean (``sem``)."""

    field: str
    of: Literal["sd", "sem"]

    def parts(self, *, errors: bool) -> Iterator[Part]:
        del errors
        amount = Amount((self.field,))
        yield from (amount.moment, amount.squares, amount.count)

    @property
    def counted(self) -> Moment:
        return Amount((self.field,)).count

    def values(self, parts: Parts) -> Floats:
        """Return the spread over jobs; NaN below two jobs."""
        total, squares, count = (parts[part] for part in self.parts(errors=False))
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_error = _root_of_spread(squares - total**2 / count, squares, count) / count
            return mean_error * np.sqrt(count) if self.of == "sd" else mean_error


@dataclass(frozen=True)
class OfJobs(_Formula):
    """A number of single jobs: a quantile, the smallest or the largest value."""

    part: Quantile | Minimum | Maximum

    def parts(self, *, errors: bool) -> Iterator[Part]:
        del errors
        yield self.part

    @property
    def counted(self) -> Moment:
        return Amount((self.part.field,)).count

    def values(self, parts: Parts) -> Floats:
        return parts[self.part]


@dataclass(frozen=True)
class OfScores(_Formula):
    """The mean of a column of scored jobs, weighted by another; null where no job has both.

    ``value``, ``weight``: columns of the scores, of jobs or of several that share a row.
    """

    value: str
    weight: str

    def parts(self, *, errors: bool) -> Iterator[Part]:
        del errors
        yield from (self._weighted, self._weights, self._unknown)

    @property
    def _weighted(self) -> Moment:
        return Moment((self.value, self.weight), "")

    @property
    def _weights(self) -> Moment:
        return Moment((self.weight,), "", (self.value,))

    @property
    def _unknown(self) -> Moment:
        return Moment(("n_jobs",), "", (), (Range(self.weight, gt=0), Missing(self.value)))

    @property
    def counted(self) -> Moment:
        return Moment(("n_jobs",), "", (self.value, self.weight))

    def values(self, parts: Parts) -> Floats:
        weighted, weights = parts[self._weighted], parts[self._weights]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(weights > 0, weighted / weights, np.nan)

    def left_out(self, parts: Parts) -> Floats:
        """Return the scored jobs with a weight and without the value."""
        return np.nan_to_num(parts[self._unknown])


Formula = Total | Difference | Ratio | Spread | OfJobs | OfScores


def leaves_out(formula: Formula) -> bool:
    """True if jobs may be left out of it that a reader must be told of."""
    return not isinstance(formula, Total) or bool(formula.unknown)


def together(parts: Parts, rows: Mask) -> dict[Part, Floats]:
    """The parts of some groups as those of one group; quantiles do not follow from those of groups: null."""
    one: dict[Part, Floats] = {}
    for part, values in parts.items():
        present = values[rows & ~np.isnan(values)]
        match part:
            case Moment():
                # a sum of nothing known is unknown, a count of it is 0
                nothing = np.nan if part.factors else 0.0
                value = present.sum() if len(present) else nothing
            case Minimum():
                value = present.min() if len(present) else np.nan
            case Maximum():
                value = present.max() if len(present) else np.nan
            case Quantile():
                value = np.nan
        one[part] = np.array([value], np.float64)
    return one


def _or_zero(values: Floats, present: Floats) -> Floats:
    # 0 where the condition holds for no job, unless nothing is known
    return np.where(np.isnan(values) & ~np.isnan(present), 0.0, values)


def _root_of_spread(spread: Floats, size: Floats, count: Floats) -> Floats:
    # sums of squares are known to 16 digits: what is left of their difference may be rounding alone
    seen = np.where(spread > 1e-13 * size, spread, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count > 1, np.sqrt(seen * count / (count - 1)), np.nan)
