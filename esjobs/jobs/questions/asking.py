"""What a question needs of the store: groups with the parts that its metrics are made of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core import fields
from esjobs.core.keys import Bins, Named
from esjobs.core.query import DropRule, Filter, Maximum, Metric, Minimum, Moment, Query, adds_up, is_count
from esjobs.core.window import Window
from esjobs.jobs.questions.dimensions import BinsAsked, Dimension
from esjobs.jobs.questions.formulas import Floats, Part, unnamed
from esjobs.jobs.questions.round_bins import round_bins
from esjobs.jobs.resolution import resolve_keys, resolvers, source_of, store_keys
from esjobs.store.base import JobStore
from esjobs.store.merge import plain


@dataclass(frozen=True)
class Jobs:
    """The jobs that a question is about."""

    window: Window | None
    where: tuple[Filter, ...]
    drops: tuple[DropRule, ...] = ()


@dataclass(frozen=True)
class Groups:
    """Groups of jobs: their keys, a column a dimension, and their parts, an array each."""

    keys: dict[str, list[Any]]
    parts: dict[Part, Floats]

    @property
    def number(self) -> int:
        """How many groups there are."""
        return len(next(iter(self.parts.values())))


def groups(store: JobStore, by: Sequence[Dimension], parts: Iterable[Part], jobs: Jobs) -> Groups:
    """The groups of the jobs. One query; one more for resolved fields where a part does not add up.

    Where all parts are of the same jobs, such as the failed ones, these are asked for, and the names of all
    groups beside them: an engine finds some jobs faster than it looks at each.
    """
    wanted = list(dict.fromkeys(parts))
    condition = _condition_of(wanted)
    if by and condition:
        moments = [part for part in wanted if isinstance(part, Moment)]
        return _of_some(store, by, moments, jobs, condition)
    named = {part: f"part {number}" for number, part in enumerate(wanted)}
    metrics = tuple(unnamed(part, name) for part, name in named.items())
    table = _table(store, by, metrics, jobs)
    return Groups(
        {dimension.name: table.column(dimension.key).to_pylist() for dimension in by},
        {part: _floats(table.column(name)) for part, name in named.items()},
    )


def _condition_of(parts: Iterable[Part]) -> tuple[Filter, ...]:
    """The condition that all parts have; empty where they differ."""
    conditions = {part.where if isinstance(part, Moment) else () for part in parts}
    return conditions.pop() if len(conditions) == 1 else ()


def _of_some(
    store: JobStore, by: Sequence[Dimension], wanted: list[Moment], jobs: Jobs, condition: tuple[Filter, ...]
) -> Groups:
    """All groups, with the parts of the jobs that meet a condition; of none counts are 0, sums null."""
    of_all = {part: replace(part, where=()) for part in wanted}
    some = groups(store, by, of_all.values(), replace(jobs, where=(*jobs.where, *condition)))
    table = _table(store, by, (), jobs)
    keys = {dimension.name: table.column(dimension.key).to_pylist() for dimension in by}
    place = {row: number for number, row in enumerate(zip(*some.keys.values(), strict=True))}
    taken = np.array([place.get(row, -1) for row in zip(*keys.values(), strict=True)], np.int64)
    parts: dict[Part, Floats] = {}
    for part in wanted:
        # the last value stands for the groups that have no such job
        parts[part] = np.append(some.parts[of_all[part]], 0.0 if is_count(part) else np.nan)[taken]
    return Groups(keys, parts)


def _table(store: JobStore, by: Sequence[Dimension], metrics: tuple[Metric, ...], jobs: Jobs) -> pa.Table:
    fields_asked = [dimension.key for dimension in by if dimension.made is None]
    made = tuple(dimension.made for dimension in by if dimension.made is not None)
    resolved = [name for name in fields_asked if source_of(name) is not None]
    question = Query((), metrics, jobs.window, jobs.where, jobs.drops, books=False)
    known = resolvers(store, resolved, jobs.window)
    if all(map(adds_up, metrics)) or not resolved:
        keys = (*store_keys(fields_asked), *(key.name for key in made))
        table = store.aggregate(replace(question, keys=keys, made=made)).table
        return plain(resolve_keys(table, [dimension.key for dimension in by], known))
    # quantiles of queues are none of sites: the store must know what belongs together
    for name in resolved:
        source = source_of(name) or name
        values = plain(store.aggregate(replace(question, keys=(source,), metrics=())).table)
        stored = values.column(source).to_pylist()
        made += (Named(name, source, tuple(zip(stored, known[name](stored), strict=True))),)
    keys = tuple(dimension.key for dimension in by)
    return plain(store.aggregate(replace(question, keys=keys, made=made)).table)


def bins_of(store: JobStore, asked: Iterable[BinsAsked], jobs: Jobs) -> list[Bins]:
    """The bins that were asked for, those of a number between the extremes of the jobs. One query a field."""
    bins = []
    for one in asked:
        edges = one.edges
        if not edges:
            extremes: tuple[Part, ...] = (Minimum(one.field, ""), Maximum(one.field, ""))
            found = groups(store, [], extremes, jobs).parts
            low, high = (float(found[part][0]) for part in extremes)
            unit = fields.field(one.field).unit
            edges = round_bins(one.number, low, high, unit) if np.isfinite([low, high]).all() else (0.0,)
        bins.append(Bins(f"bin of {one.field}", one.field, edges))
    return bins


def _floats(column: pa.ChunkedArray) -> Floats:
    """Numbers, NaN where there is none."""
    values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.array(values, np.float64)
