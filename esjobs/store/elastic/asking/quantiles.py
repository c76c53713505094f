"""Exact quantiles in a cluster without reading documents: counted bins, then listed values.

A sample guesses the edges; every group is counted in every bin; bins that hold a quantile are listed, or
split again. Guesses affect time only: counts and listed values must agree, else documents are read.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import repeat
from operator import methodcaller
from typing import TypeVar

import numpy as np
import pyarrow as pa

from esjobs.core.query import Count, Maximum, Metric, Minimum, Quantile, Query
from esjobs.store.duck.compile_sql import metric_type
from esjobs.store.elastic.asking.clauses import EVERY, NONE, Clause, Clauses
from esjobs.store.elastic.asking.composite import Grouping, grouping
from esjobs.store.elastic.asking.counted_numbers import IndexNumbers, Listed, Locate, Numbers, ReadNumbers
from esjobs.store.elastic.asking.days import here_and_there
from esjobs.store.elastic.asking.derived_keys import made_columns, span_of
from esjobs.store.elastic.asking.numbers import Form, forms_of
from esjobs.store.elastic.asking.refinement import (
    Counts,
    Floats,
    InconsistentError,
    Mask,
    edges_at,
    holding,
    quantiles,
    ranks,
    split,
)
from esjobs.store.elastic.jobs.job_index import JobIndex
from esjobs.store.elastic.transport.parallel import in_parallel
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.merge import plain

COUNT = "jobs in the group"
"""Extra metric by which groups are checked against the books."""

# Bins of all groups together that are worth counting at once
_MOST_CELLS = 40_000
_MOST_BINS = 256
# Below it would cost more to count than to list
_LEAST_BINS = 12
# Values that are listed as they are; above it pays to cut again
_FEW = 60_000
FEW_JOBS = 15_000
"""Number of jobs up to which all values are listed without counting bins."""
_MOST_PASSES = 4
# Jobs by which the edges of bins are guessed, about
_SAMPLED = 8_000
_IN_FLIGHT = 2
# Up to here a number with a fraction tells whole numbers apart
_EXACT = 2.0**53


@dataclass(frozen=True)
class Distribution:
    """Access to the numbers of some jobs.

    ``requested``: grouping with counts only. ``kept``: clause of the jobs. ``forms``: by field. ``few``: a
    sample.
    """

    at: PointInTime
    requested: Grouping
    time: str
    forms: Mapping[str, Sequence[Form]]
    kept: Clause = field(default_factory=lambda: NONE)
    n_jobs: int = 0
    few: Clause = field(default_factory=lambda: EVERY)

    def of(self, kept: Clause, n_jobs: int, first: datetime, last: datetime) -> "Distribution":
        """Return the distribution of the jobs of a clause that ended between two times."""
        few = here_and_there(self.time, first, last, _SAMPLED / max(n_jobs, 1))
        return replace(self, kept=kept, n_jobs=n_jobs, few=few)

    def numbers(self, name: str, locate: Locate) -> list[IndexNumbers]:
        """Return a field in each of its forms."""
        forms = self.forms[name]
        return [IndexNumbers(self.at, self.requested, self.kept, form, locate, self.few) for form in forms]


def distribution_of(
    at: PointInTime, jobs: JobIndex, query: Query, plainer: Query, clauses: Clauses
) -> Distribution | None:
    """Return the distribution for a question; None if the index cannot count a number."""
    time = jobs.live["end_time"].paths[0]
    forms: dict[str, list[Form]] = {}
    for metric in quantiles_in(query):
        of_field = forms_of(metric.field, clauses)
        if of_field is None:
            return None
        forms[metric.field] = of_field
    only = replace(plainer, metrics=(Count(COUNT),))
    groups = grouping(only, jobs.live, clauses)
    if groups is None:
        return None
    days = time if "day" in plainer.keys else ""
    return Distribution(at, replace(groups, days=days, span=span_of(query)), time, forms)


def quantiles_in(query: Query) -> list[Quantile]:
    """Return the quantiles of a question; extremes count as fractions 0 and 1."""
    return [found for metric in query.metrics if (found := _as_quantile(query, metric)) is not None]


def _as_quantile(query: Query, metric: Metric) -> Quantile | None:
    if isinstance(metric, Quantile):
        return metric
    if isinstance(metric, Minimum | Maximum) and query.field(metric.field).type in ("integer", "number"):
        return Quantile(metric.field, 0.0 if isinstance(metric, Minimum) else 1.0, metric.name)
    return None


def with_count(query: Query) -> Query:
    """Return the question with its sums and a count."""
    summed = tuple(metric for metric in query.metrics if _as_quantile(query, metric) is None)
    return replace(query, metrics=(*summed, Count(COUNT)))


def with_quantiles(
    table: pa.Table, query: Query, parts: Sequence[Distribution], read: pa.Table | None
) -> pa.Table:
    """Return the answer with quantiles, from the groups with their sums.

    ``read``: keys and numbers of jobs that were read. Raises :class:`InconsistentError`.
    """
    locate = _locator(table, query)
    found: dict[tuple[str, float], Floats] = {}
    unordered: dict[str, Mask] = {}
    for name, fractions in _fractions(query).items():
        numbers: list[Numbers] = [one for part in parts for one in part.numbers(name, locate)]
        n_jobs = sum(part.n_jobs for part in parts)
        if read is not None:
            of_read, unordered[name] = _read_numbers(read, name, locate(read), table.num_rows)
            numbers.append(of_read)
            n_jobs += len(of_read.groups)
        answers = quantiles_of(numbers, table.num_rows, n_jobs, fractions)
        found |= {(name, fraction): values for fraction, values in zip(fractions, answers, strict=True)}
    columns = [table.column(key) for key in query.keys]
    for each in query.metrics:
        quantile = _as_quantile(query, each)
        if quantile is None:
            columns.append(table.column(each.name))
        else:
            values = found[quantile.field, quantile.fraction]
            columns.append(_quantile_column(query, each, values, unordered.get(quantile.field)))
    return pa.table(columns, names=[*query.keys, *(metric.name for metric in query.metrics)])


def _fractions(query: Query) -> dict[str, list[float]]:
    """Return the distinct fractions of each field: its numbers are counted once for all of them."""
    fractions: dict[str, list[float]] = defaultdict(list)
    for metric in quantiles_in(query):
        if metric.fraction not in fractions[metric.field]:
            fractions[metric.field].append(metric.fraction)
    return fractions


def _quantile_column(query: Query, metric: Metric, values: Floats, with_nan: Mask | None) -> pa.Array:
    """Return a quantile as column; ``with_nan``: groups in which a read job has NaN."""
    # NaN marks groups without numbers
    null = np.isnan(values)
    if isinstance(metric, Minimum | Maximum) and with_nan is not None:
        # NaN is above all numbers where the largest is asked for, as in the embedded engine
        nan = with_nan & (null if isinstance(metric, Minimum) else True)
        values, null = np.where(nan, np.nan, values), null & ~nan
    if metric_type(query, metric) != "integer":
        return pa.array(values, mask=null)
    kept = np.where(null, 0.0, values)
    if (np.abs(kept) > _EXACT).any():
        raise InconsistentError("a whole number has too many digits for a floating-point number")
    return pa.array(kept.astype(np.int64), mask=null)


def _locator(table: pa.Table, query: Query) -> Locate:
    """Return the function that maps rows of keys to group numbers; it raises :class:`InconsistentError`."""
    stored = [plain(table).column(key).to_pylist() for key in query.keys]
    numbered = {keys: number for number, keys in enumerate(zip(*stored, strict=True))} if stored else {(): 0}

    def locate(rows: pa.Table) -> list[int]:
        columns = [column.to_pylist() for column in made_columns(rows, query)]
        keys = zip(*columns, strict=True) if columns else repeat((), rows.num_rows)
        try:
            return [numbered[each] for each in keys]
        except KeyError as error:
            raise InconsistentError(f"no group {error}") from error

    return locate


def _read_numbers(
    read: pa.Table, name: str, groups: Sequence[int], n_groups: int
) -> tuple[ReadNumbers, Mask]:
    """Return the numbers of read jobs, and the mask of groups that have a NaN."""
    values = read.column(name).cast(pa.float64()).to_numpy()
    of_rows, is_number = np.array(groups, np.int64), ~np.isnan(values)
    with_nan = np.zeros(n_groups, np.bool_)
    with_nan[of_rows[~is_number & read.column(name).is_valid().to_numpy()]] = True
    return ReadNumbers(of_rows[is_number], values[is_number]), with_nan


def quantiles_of(
    numbers: Sequence[Numbers], n_groups: int, n_jobs: int, fractions: Sequence[float]
) -> list[Floats]:
    """Return the quantiles of each group, an array per fraction; NaN without numbers.

    ``n_jobs``: upper bound. Raises :class:`InconsistentError`. Cost: about three paged searches per number;
    memory: a few values per group.
    """
    if not numbers:
        return [np.full(n_groups, np.nan) for _ in fractions]
    edges, counts, holds = _counted(numbers, n_groups, n_jobs, fractions)
    n_left = n_jobs if counts is None or holds is None else int(counts[holds].sum())
    rows = _listed(numbers, edges, holds, n_left)
    if counts is None or holds is None:
        # all values were listed: one bin over everything
        counts = np.zeros((n_groups, 1), np.int64)
        np.add.at(counts[:, 0], rows[0], rows[2])
        holds = np.ones(counts.shape, np.bool_)
    return quantiles(edges, counts, holds, rows, fractions)


def _counted(
    numbers: Sequence[Numbers], n_groups: int, n_jobs: int, fractions: Sequence[float]
) -> tuple[Floats, Counts | None, Mask | None]:
    """Return edges, counts and open bins; no counts if all values can be listed."""
    edges = np.array([], np.float64)
    counts: Counts | None = None
    holds: Mask | None = None
    n_left = n_jobs
    # many groups leave few bins to each; below the least number listing is cheaper
    bins = min(_MOST_CELLS // max(n_groups, 1), _MOST_BINS)
    for number in range(_MOST_PASSES if bins >= _LEAST_BINS else 0):
        if n_left <= (_FEW if number else FEW_JOBS):
            break
        # the first time denser beside the fractions; later open bins are sampled evenly
        finer = _finer(numbers, ranks(() if number else fractions, bins), edges, holds)
        if len(finer) == len(edges):
            break  # values that most of them have
        within = None if holds is None else (edges, holds)
        ask = methodcaller("counts", finer, n_groups, within)
        measured = np.sum(_side_by_side(ask, numbers), axis=0)
        counts = measured if counts is None or holds is None else split(edges, counts, holds, finer, measured)
        edges, holds = finer, holding(counts, fractions)
        n_before, n_left = n_left, int(counts[holds].sum())
        # another pass would not pay: what is left is nearly all equal, or spread evenly
        if 2 * n_left > n_before:
            break
    return edges, counts, holds


def _finer(numbers: Sequence[Numbers], at: Sequence[float], edges: Floats, holds: Mask | None) -> Floats:
    guessed = _side_by_side(lambda one: one.sample(at, holds, edges), numbers)
    # each bin of each group comes back with its edges as text: digits that nobody needs take half of the time
    brief = (float(f"{edge:.4g}") for some in guessed for edge in some)
    more = edges_at(brief, len(at))
    representable = [edge for edge in more.tolist() if all(one.tells(edge) for one in numbers)]
    return np.union1d(edges, np.array(representable, np.float64))


def _listed(numbers: Sequence[Numbers], edges: Floats, holds: Mask | None, n_jobs: int) -> Listed:
    def pages(one: Numbers) -> list[Listed]:
        return list(one.listed(edges, holds, n_jobs))

    found = [page for some in _side_by_side(pages, numbers) for page in some]
    if not found:
        return np.array([], np.int64), np.array([], np.float64), np.array([], np.int64)
    groups, values, counts = (np.concatenate(column) for column in zip(*found, strict=True))
    return groups, values, counts


_Found = TypeVar("_Found")


def _side_by_side(ask: Callable[[Numbers], _Found], numbers: Sequence[Numbers]) -> list[_Found]:
    return in_parallel(ask, numbers, _IN_FLIGHT, "esjobs-numbers")
