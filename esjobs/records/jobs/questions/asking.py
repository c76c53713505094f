"""Queries of a question to the store: groups with the parts that its metrics are made of."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrays import Floats
from esjobs.core.errors import UsageError
from esjobs.core.keys import Bins, Named, TimePart, beginning
from esjobs.core.keys import Part as Period
from esjobs.core.query import (
    DropRule,
    Either,
    Filter,
    Maximum,
    Metric,
    Minimum,
    Missing,
    Moment,
    Query,
    adds_up,
    filter_fields,
    is_count,
)
from esjobs.core.window import Window
from esjobs.records.jobs.questions.dimensions import Dimension, RequestedBins
from esjobs.records.jobs.questions.formulas import JOBS, Part
from esjobs.records.jobs.questions.metrics import METRICS
from esjobs.records.jobs.questions.round_bins import round_bins
from esjobs.records.jobs.resolution import Resolver, resolve_keys, resolvers, source_of, store_keys
from esjobs.schema.scores import SCORES
from esjobs.store.base import JobStore
from esjobs.store.merge import Integers, encoded, floats, merged, numbered, plain


@dataclass(frozen=True)
class Jobs:
    """The jobs that a question is about."""

    window: Window | None
    where: tuple[Filter, ...]
    drops: tuple[DropRule, ...] = ()


@dataclass(frozen=True)
class Groups:
    """Groups of jobs: their keys, a column a dimension, texts encoded, and their parts, an array each."""

    keys: dict[str, pa.ChunkedArray]
    parts: dict[Part, Floats]

    @property
    def has_jobs(self) -> bool:
        """True if any job is in it: a group has one, but without keys there is a group in any case."""
        return bool(self.number if self.keys else self.parts[JOBS.moment][0])

    @property
    def number(self) -> int:
        """Number of groups."""
        return len(next(chain(self.keys.values(), self.parts.values())))


def groups(store: JobStore, by: Sequence[Dimension], parts: Iterable[Part], jobs: Jobs) -> Groups:
    """Return the groups of the jobs.

    One query; one more for resolved fields where a part does not add up, and one for parts of scores.

    Where all parts are of the same jobs, such as failed ones, these and the names of all groups are queried:
    an engine finds some jobs faster than it looks at each.
    """
    wanted = list(dict.fromkeys(parts))
    if of_scores := [part for part in wanted if isinstance(part, Moment) and _is_of_scores(part)]:
        return _with_scores(store, by, wanted, of_scores, jobs)
    if by and _are_of_few_jobs(wanted):
        return _of_few(store, by, [part for part in wanted if isinstance(part, Moment)], jobs)
    return _groups(store, by, wanted, jobs)


def _groups(store: JobStore, by: Sequence[Dimension], wanted: Sequence[Part], jobs: Jobs) -> Groups:
    metrics = _named_parts(wanted)
    return _groups_in(_table(store, by, tuple(metrics.values()), jobs), by, metrics)


def _named_parts(wanted: Sequence[Part]) -> dict[Part, Part]:
    """Return each part as a metric with a name of its own."""
    return {part: replace(part, name=f"part {number}") for number, part in enumerate(wanted)}


def _groups_in(table: pa.Table, by: Sequence[Dimension], metrics: Mapping[Part, Part]) -> Groups:
    return Groups(
        {dimension.name: table.column(dimension.key) for dimension in by},
        {part: floats(table.column(metric.name)) for part, metric in metrics.items()},
    )


def _is_of_scores(part: Moment) -> bool:
    return not all(map(fields.is_field, part.factors))


def _with_scores(
    store: JobStore, by: Sequence[Dimension], wanted: Sequence[Part], of_scores: Sequence[Moment], jobs: Jobs
) -> Groups:
    found = groups(store, by, [part for part in wanted if part not in of_scores], jobs)
    parts = found.parts | _among(found, _scored(store, by, of_scores, jobs))
    return Groups(found.keys, {part: parts[part] for part in wanted})


def _scored(store: JobStore, by: Sequence[Dimension], wanted: Sequence[Moment], jobs: Jobs) -> Groups:
    """Return groups of the scores of the jobs; :class:`UsageError` for what scores do not know."""
    periods = {
        each.key: each.made.part
        for each in by
        if isinstance(each.made, TimePart) and each.made.part != "hour"
    }
    keys = {each.key: "day" if each.key in periods else _score_key(each.key) for each in by}
    _require_of_scores(wanted, keys.values(), jobs)
    metrics = _named_parts(wanted)
    stored = tuple(dict.fromkeys(keys.values()))
    question = Query(stored, tuple(metrics.values()), jobs.window, jobs.where, over=SCORES)
    table = plain(store.aggregate(question).table)
    for key, period in periods.items():
        table = table.append_column(key, _beginnings(period, table.column("day")))
    resolved = list(keys.keys() - {*table.column_names})
    answer = resolve_keys(table, list(keys), resolvers(store, resolved, jobs.window))
    if keys:
        names = [metric.name for metric in metrics.values()]
        answer = merged(answer.select([*keys, *names]), list(keys))
    return _groups_in(encoded(answer), by, metrics)


def _beginnings(period: Period, days: pa.ChunkedArray) -> pa.Array:
    return pa.array([beginning(period, day) for day in days.to_pylist()], pa.date32())


def _score_key(key: str) -> str:
    if key in SCORES.column_names or not fields.is_field(key):
        return key
    return source_of(key) or key


def _require_of_scores(wanted: Collection[Part], keys: Iterable[str], jobs: Jobs) -> None:
    names = [
        each.name for each in METRICS if any(part in wanted for part in each.formula.parts(errors=False))
    ]
    what = f"{' and '.join(names)} {'is a mean' if len(names) == 1 else 'are means'} of scores"
    if jobs.drops:
        raise UsageError(f"{what}, which cleaning rules do not know; omit --clean")
    for name in (*keys, *filter_fields(jobs.where)):
        if name not in SCORES.column_names:
            raise UsageError(f"{what}, which have no '{name}'; columns: esjobs show scores")


def _are_of_few_jobs(parts: Sequence[Part]) -> bool:
    if not all(isinstance(part, Moment) and (part.where or is_count(part)) for part in parts):
        return False
    conditions = {part.where for part in parts if isinstance(part, Moment) and part.where}
    # a second condition costs a query of its own, and a missing value is found only by looking at each job
    return sum(not _finds_missing(where) for where in conditions) == 1


def _finds_missing(where: Sequence[Filter]) -> bool:
    return any(isinstance(each, Either) and Missing(each.filters[0].field) in each.filters for each in where)


def _of_few(store: JobStore, by: Sequence[Dimension], wanted: list[Moment], jobs: Jobs) -> Groups:
    # of a group without such jobs counts are 0 and sums null
    of_all = _groups(store, by, [part for part in wanted if not part.where], jobs)
    parts = dict(of_all.parts)
    for condition in dict.fromkeys(part.where for part in wanted if part.where):
        met: dict[Part, Moment] = {
            replace(part, where=()): part for part in wanted if part.where == condition
        }
        some = groups(store, by, met, replace(jobs, where=(*jobs.where, *condition)))
        parts |= {met[bare]: values for bare, values in _among(of_all, some).items()}
    return Groups(of_all.keys, {part: parts[part] for part in wanted})


def _table(store: JobStore, by: Sequence[Dimension], metrics: tuple[Metric, ...], jobs: Jobs) -> pa.Table:
    keys_of_all = [dimension.key for dimension in by]
    requested_fields = [dimension.key for dimension in by if dimension.made is None]
    made = tuple(dimension.made for dimension in by if dimension.made is not None)
    resolved = [name for name in requested_fields if source_of(name) is not None]
    question = Query((), metrics, jobs.window, jobs.where, jobs.drops, books=False)
    resolving = resolvers(store, resolved, jobs.window)
    # sums of queues add up to those of their site
    if all(map(adds_up, metrics)) or not resolved:
        keys = store_keys(requested_fields) + tuple(key.name for key in made)
        table = store.aggregate(replace(question, keys=keys, made=made)).table
        return encoded(resolve_keys(table, keys_of_all, resolving))
    # quantiles of queues are none of sites: the store must know what belongs together
    made += tuple(_named(store, question, name, resolving[name]) for name in resolved)
    return encoded(store.aggregate(replace(question, keys=tuple(keys_of_all), made=made)).table)


def _named(store: JobStore, question: Query, name: str, resolve: Resolver) -> Named:
    source = source_of(name) or name
    values = store.aggregate(replace(question, keys=(source,), metrics=())).table
    stored = values.column(source).to_pylist()
    return Named(name, source, tuple(zip(stored, resolve(stored), strict=True)))


def aligned(now: Groups, before: Groups) -> list[Groups]:
    """The groups of two windows in one order: those of the first, then those that only the second has."""
    group, first = numbers_of(now, before, now.keys)
    keys = {
        name: _one_after_other(column, before.keys[name]).take(first) for name, column in now.keys.items()
    }
    sides = []
    for side, own in ((now, group[: now.number]), (before, group[now.number :])):
        taken = _taken(own, len(first))
        parts = {part: _of_rows(part, values, taken) for part, values in side.parts.items()}
        sides.append(Groups(keys, parts))
    return sides


def numbers_of(first: Groups, second: Groups, names: Iterable[str]) -> tuple[Integers, pa.Array]:
    """Return the numbers of the groups of both by some keys, as in :func:`~esjobs.store.merge.numbered`."""
    columns = [_one_after_other(first.keys[name], second.keys[name]) for name in names]
    return numbered(columns, first.number + second.number)


def _one_after_other(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([*first.chunks, *second.chunks], first.type).unify_dictionaries()


def _among(own: Groups, others: Groups) -> dict[Part, Floats]:
    """Return the parts of others by group of its own; of a group that these lack counts are 0."""
    group, first = numbers_of(own, others, own.keys)
    taken = _taken(group[own.number :], len(first))[: own.number]
    return {part: _of_rows(part, values, taken) for part, values in others.parts.items()}


def _taken(own: Integers, number: int) -> Integers:
    taken = np.full(number, -1, np.int64)
    taken[own] = np.arange(len(own))
    return taken


def _of_rows(part: Part, values: Floats, taken: Integers) -> Floats:
    # the last value stands for the groups without such jobs
    return np.append(values, 0.0 if is_count(part) else np.nan)[taken]


def bins_of(store: JobStore, requested: Iterable[RequestedBins], jobs: Jobs) -> list[Bins]:
    """The bins that were asked for, those of a number between the extremes of the jobs. One query a field."""
    bins = []
    for one in requested:
        edges = one.edges
        if not edges:
            extremes: tuple[Part, ...] = (Minimum(one.field, ""), Maximum(one.field, ""))
            found = groups(store, [], extremes, jobs).parts
            low, high = (float(found[part][0]) for part in extremes)
            unit = fields.field(one.field).unit
            # where no job has a value one edge is enough: no job has a bin
            edges = round_bins(one.number, low, high, unit) if np.isfinite([low, high]).all() else (0.0,)
        bins.append(Bins(f"bin of {one.field}", one.field, edges))
    return bins
