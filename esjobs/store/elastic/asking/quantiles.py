"""Exact quantiles in a cluster, without reading documents: counted bins, then the few values that are left.

All groups are asked together. A look at some documents guesses where to cut; every group is counted in every
bin; of the bins that hold a quantile the values are listed, or, where these are too many, they are cut again.
What is guessed costs time only: the counts of a cluster and the values that it lists must agree, else the
documents are read.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import repeat
from typing import TypeVar

import numpy as np
import pyarrow as pa

from esjobs.core.query import Count, Maximum, Metric, Minimum, Quantile, Query
from esjobs.store.duck.compile_sql import metric_type
from esjobs.store.elastic.asking.clauses import EVERY, NONE, Clause, Clauses
from esjobs.store.elastic.asking.composite import Grouping, grouping
from esjobs.store.elastic.asking.counted_numbers import IndexNumbers, Listed, Numbers, ReadNumbers
from esjobs.store.elastic.asking.days import here_and_there
from esjobs.store.elastic.asking.made_keys import made_columns, span_of
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
from esjobs.store.elastic.asking.sums import plan_sums
from esjobs.store.elastic.jobs.job_index import JobIndex
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.merge import plain

COUNT = "jobs in the group"
"""A metric of its own, by which groups are held against the books."""

_MOST_CELLS = 40_000
"""Bins of all groups together that are worth counting at once."""
_MOST_BINS = 256
_LEAST_BINS = 12
"""Below it would cost more to count than to list."""
_FEW = 60_000
"""Values that are listed as they are; above it pays to cut again."""
FEW_JOBS = 15_000
"""Jobs of which all values are listed, without a look at how they are distributed."""
_MOST_PASSES = 4
_SAMPLED = 8_000
"""Jobs by which the edges of bins are guessed, about."""
_IN_FLIGHT = 2
_EXACT = 2.0**53
"""Up to here a number with a fraction tells whole numbers apart."""


@dataclass(frozen=True)
class Distribution:
    """How the numbers of some jobs are asked for.

    ``asked``: the groups, with nothing but the number of their jobs. ``kept``: the clause of the jobs.
    ``forms``: of each field of which quantiles are wanted. ``few``: of some thousands of them.
    """

    at: PointInTime
    asked: Grouping
    time: str
    forms: Mapping[str, Sequence[Form]]
    kept: Clause = field(default_factory=lambda: NONE)
    n_jobs: int = 0
    few: Clause = field(default_factory=lambda: EVERY)

    def of(self, kept: Clause, n_jobs: int, first: datetime, last: datetime) -> "Distribution":
        """Those of the jobs of a clause, which ended between two times."""
        few = here_and_there(self.time, first, last, _SAMPLED / max(n_jobs, 1))
        return replace(self, kept=kept, n_jobs=n_jobs, few=few)


def _column(values: Floats, null: Mask, *, whole: bool) -> pa.Array:
    """Numbers as a column of an answer. Raises :class:`InconsistentError` where digits would be lost."""
    if not whole:
        return pa.array(values, mask=null)
    kept = np.where(null, 0.0, values)
    if (np.abs(kept) > _EXACT).any():
        raise InconsistentError("a whole number has more digits than a fraction tells")
    return pa.array(kept.astype(np.int64), mask=null)


def distribution_of(
    at: PointInTime, jobs: JobIndex, query: Query, plainer: Query, clauses: Clauses
) -> Distribution | None:
    """How the numbers of a question are asked for; None where the index cannot count one of them.

    ``plainer``: the question without its made keys.
    """
    time = jobs.live["end_time"].paths[0]
    forms: dict[str, list[Form]] = {}
    for metric in quantiles_in(query):
        of_field = forms_of(metric.field, clauses)
        if of_field is None:
            return None
        forms[metric.field] = of_field
    only = replace(plainer, metrics=(Count(COUNT),))
    counts = plan_sums(only, jobs.live, clauses)
    groups = grouping(only, jobs.live, counts) if counts is not None else None
    if groups is None:
        return None
    days = time if "day" in plainer.keys else ""
    return Distribution(at, replace(groups, days=days, span=span_of(query)), time, forms)


def quantiles_in(query: Query) -> list[Quantile]:
    """The quantiles of a question, smallest and largest numbers among them: those of fraction 0 and 1."""
    return [found for metric in query.metrics if (found := _as_quantile(query, metric)) is not None]


def _as_quantile(query: Query, metric: Metric) -> Quantile | None:
    if isinstance(metric, Quantile):
        return metric
    if isinstance(metric, Minimum | Maximum) and query.field(metric.field).type in ("integer", "number"):
        return Quantile(metric.field, 0.0 if isinstance(metric, Minimum) else 1.0, metric.name)
    return None


def with_count(query: Query) -> Query:
    """What is summed in each group, and the number of its jobs."""
    summed = tuple(metric for metric in query.metrics if _as_quantile(query, metric) is None)
    return replace(query, metrics=(*summed, Count(COUNT)))


def with_quantiles(
    table: pa.Table, query: Query, parts: Sequence[Distribution], read: pa.Table | None
) -> pa.Table:
    """The answer to a question, of the groups with their sums.

    ``read``: keys, without those that the question makes, and numbers of jobs that were read. Raises
    :class:`InconsistentError`.
    """
    known = [plain(table).column(key).to_pylist() for key in query.keys]
    numbered = {keys: number for number, keys in enumerate(zip(*known, strict=True))} if known else {(): 0}

    def place(rows: pa.Table) -> list[int]:
        columns = [column.to_pylist() for column in made_columns(rows, query)]
        keys = zip(*columns, strict=True) if columns else repeat((), rows.num_rows)
        try:
            return [numbered[each] for each in keys]
        except KeyError as error:
            raise InconsistentError(f"there is no group {error}") from error

    wanted: dict[str, list[float]] = {}
    for metric in quantiles_in(query):
        of_field = wanted.setdefault(metric.field, [])
        if metric.fraction not in of_field:
            of_field.append(metric.fraction)
    found: dict[tuple[str, float], Floats] = {}
    unordered: dict[str, Mask] = {}
    for name, fractions in wanted.items():
        numbers: list[Numbers] = [
            IndexNumbers(part.at, part.asked, part.kept, form, place, part.few)
            for part in parts
            for form in part.forms[name]
        ]
        n_jobs = sum(part.n_jobs for part in parts)
        if read is not None:
            values = read.column(name).cast(pa.float64()).to_numpy()
            of_rows, is_number = np.array(place(read), np.int64), ~np.isnan(values)
            unordered[name] = np.zeros(table.num_rows, np.bool_)
            known_nan = ~is_number & read.column(name).is_valid().to_numpy()
            unordered[name][of_rows[known_nan]] = True
            groups = of_rows[is_number]
            numbers.append(ReadNumbers(groups, values[is_number]))
            n_jobs += len(groups)
        answers = quantiles_of(numbers, table.num_rows, n_jobs, fractions)
        found |= {(name, fraction): values for fraction, values in zip(fractions, answers, strict=True)}
    columns = [table.column(key) for key in query.keys]
    for each in query.metrics:
        quantile = _as_quantile(query, each)
        if quantile is None:
            columns.append(table.column(each.name))
            continue
        values = found[quantile.field, quantile.fraction]
        null = np.isnan(values)
        if isinstance(each, Minimum | Maximum) and each.field in unordered:
            # NaN is above all numbers where the largest is asked for, as in the embedded engine
            nan = unordered[each.field] & (null if isinstance(each, Minimum) else True)
            values, null = np.where(nan, np.nan, values), null & ~nan
        columns.append(_column(values, null, whole=metric_type(query, each) == "integer"))
    return pa.table(columns, names=[*query.keys, *(metric.name for metric in query.metrics)])


def quantiles_of(
    numbers: Sequence[Numbers], n_groups: int, n_jobs: int, fractions: Sequence[float]
) -> list[Floats]:
    """The quantiles of a number in each group, an array a fraction; NaN where a group has none.

    ``numbers``: of jobs that together are all, each once. ``n_jobs``: how many these are, at most. Raises
    :class:`InconsistentError`. Cost: three searches for each of the numbers, with pages; memory: a few values
    a group.
    """
    if not numbers:
        return [np.full(n_groups, np.nan) for _ in fractions]
    edges, counts, holds = _counted(numbers, n_groups, n_jobs, fractions)
    n_left = n_jobs if counts is None or holds is None else int(counts[holds].sum())
    rows = _listed(numbers, edges, holds, n_left)
    if counts is None or holds is None:
        counts = np.zeros((n_groups, 1), np.int64)
        np.add.at(counts[:, 0], rows[0], rows[2])
        holds = np.ones(counts.shape, np.bool_)
    return quantiles(edges, counts, holds, rows, fractions)


def _counted(
    numbers: Sequence[Numbers], n_groups: int, n_jobs: int, fractions: Sequence[float]
) -> tuple[Floats, Counts | None, Mask | None]:
    """Edges, counts and the bins that hold; without counts where all values are few enough to be listed."""
    edges = np.array([], np.float64)
    counts: Counts | None = None
    holds: Mask | None = None
    n_left = n_jobs
    bins = min(_MOST_CELLS // max(n_groups, 1), _MOST_BINS)
    for number in range(_MOST_PASSES if bins >= _LEAST_BINS else 0):
        if n_left <= (_FEW if number else FEW_JOBS):
            break
        finer = _finer(numbers, ranks(() if number else fractions, bins), edges, holds)
        if len(finer) == len(edges):
            break  # values that most of them have
        within = None if holds is None else (edges, holds)
        ask = partial(_counts_of, edges=finer, n_groups=n_groups, within=within)
        measured = np.sum(_side_by_side(ask, numbers), axis=0)
        counts = measured if counts is None or holds is None else split(edges, counts, holds, finer, measured)
        edges, holds = finer, holding(counts, fractions)
        n_before, n_left = n_left, int(counts[holds].sum())
        if 2 * n_left > n_before:
            break
    return edges, counts, holds


def _finer(numbers: Sequence[Numbers], at: Sequence[float], edges: Floats, holds: Mask | None) -> Floats:
    """The edges, and more of them where jobs are that hold what is looked for."""
    guessed = _side_by_side(partial(_sample_of, ranks=at, holds=holds, edges=edges), numbers)
    # each bin of each group comes back with its edges as text: digits that nobody needs take half of the time
    brief = (float(f"{edge:.4g}") for some in guessed for edge in some)
    more = edges_at(brief, len(at))
    told = [edge for edge in more.tolist() if all(one.tells(edge) for one in numbers)]
    return np.union1d(edges, np.array(told, np.float64))


def _sample_of(one: Numbers, ranks: Sequence[float], holds: Mask | None, edges: Floats) -> list[float]:
    return one.sample(ranks, holds, edges)


def _counts_of(one: Numbers, edges: Floats, n_groups: int, within: tuple[Floats, Mask] | None) -> Counts:
    return one.counts(edges, n_groups, within)


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
    """What each of them answers, two asked at a time."""
    if len(numbers) == 1:
        return [ask(numbers[0])]
    with ThreadPoolExecutor(_IN_FLIGHT, "esjobs-numbers") as pool:
        try:
            return list(pool.map(ask, numbers))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
