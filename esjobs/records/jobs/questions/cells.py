"""Cells of two windows: what a store gives for the errors of changes, a row a group, task and queue."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from esjobs.core.arrays import Floats
from esjobs.core.query import In, is_count
from esjobs.records.jobs.questions.asking import Groups, Jobs, aligned, groups, numbers_of
from esjobs.records.jobs.questions.changes import Change, Codes, Terms, change_of_ratio, change_of_sum
from esjobs.records.jobs.questions.dimensions import Dimension
from esjobs.records.jobs.questions.formulas import Amount, Part, Ratio, Total
from esjobs.records.jobs.questions.metrics import QueryMetric
from esjobs.store.base import JobStore
from esjobs.store.merge import numbered

_TASK, _QUEUE, _USER, _DAY = "task_id", "queue", "user", "day"
# Who groups or compares by one of these, or chooses some, asks about them, not about queues like them.
_QUEUE_FIELDS = frozenset((_QUEUE, "site", "country"))


@dataclass(frozen=True)
class Cells:
    """Parts of the jobs of each task and queue in the window, then in that before.

    ``row``: number of the group of a cell, in the order of the answer. ``stratum``: kind of work, if its mix
    is asked for. ``days``: the same jobs by day in place of task and queue.
    """

    row: Codes
    cell: Codes
    clusters: tuple[Codes, ...]
    sides: Sequence[Groups]
    stratum: Codes | None = None
    days: "Cells | None" = None

    def change(self, metric: QueryMetric, group_of_row: Codes, number: int) -> Change | None:
        """Return the change of a metric in groups of rows; None for metrics without errors.

        ``group_of_row``: the group that each row of the answer is in, -1: in none.
        """
        terms = _terms(metric)
        if not terms:
            return None
        cells = self._in_groups(terms, group_of_row)
        if len(terms) == 1:
            return change_of_sum(cells, number)
        days = None if self.days is None else self.days._in_groups(terms, group_of_row)
        return change_of_ratio(cells, number, counted=all(map(is_count, terms)), days=days)

    def _in_groups(self, terms: Sequence[Part], group_of_row: Codes) -> Terms:
        group = group_of_row[self.row]
        inside = group >= 0
        over, under = (self._sums(part, inside) for part in (terms[0], terms[-1]))
        stratum = None if self.stratum is None else self.stratum[inside]
        clusters = tuple(codes[inside] for codes in self.clusters)
        return Terms(group[inside], self.cell[inside], clusters, over, under, stratum)

    def share_change(self, metric: QueryMetric, of: Codes) -> Change | None:
        """Return the change of each row's share of the sum of rows with the same ``of``; None without error.

        A ratio of two sums: each task of a queue is a cell of every row of the queue.
        """
        terms = _terms(metric)
        if len(terms) != 1:
            return None
        values = self._sums(terms[0], np.ones(len(self.row), np.bool_))
        different, cell = np.unique(self.cell, return_inverse=True)
        # one number for a pair of total and cell, so that a single pass of unique finds the pairs
        both = of[self.row] * max(len(different), 1) + cell
        combined, first, unit = np.unique(both, return_index=True, return_inverse=True)
        units = np.divmod(combined, max(len(different), 1))
        # cells of each total, and where they begin among the pairs, which are sorted by total
        number = np.bincount(units[0], minlength=int(of.max(initial=0)) + 1)
        start = np.cumsum(number) - number
        # the cells of a row: all units of its total, in order
        size = number[of]
        begin = np.cumsum(size) - size
        group = np.repeat(np.arange(len(of)), size)
        at = np.arange(len(group)) - begin[group] + start[of[group]]
        # the cells that the row itself has: zero in all others, so that they count as cells without its jobs
        own = begin[self.row] + unit - start[of[self.row]]
        over, under = (
            np.stack([np.bincount(index, side, width).astype(np.float64) for side in values])
            for index, width in ((own, len(group)), (unit, len(combined)))
        )
        clusters = tuple(codes[first][at] for codes in self.clusters)
        return change_of_ratio(Terms(group, units[1][at], clusters, over, under[:, at]), len(of), share=True)

    def _sums(self, part: Part, inside: np.ndarray) -> Floats:
        # before, then now; a group without such jobs adds nothing to a sum
        return np.stack([np.nan_to_num(side.parts[part][inside]) for side in reversed(self.sides)])


def read_cells(
    store: JobStore,
    by: Sequence[Dimension],
    metrics: Iterable[QueryMetric],
    both: Sequence[Jobs],
    rows: Groups,
    strata: Sequence[Dimension] = (),
) -> Cells | None:
    """Read the cells of the groups of ``rows``; ``both``: the jobs of the window, and of that before.
    ``strata``: fields that tell kinds of work apart.

    None where no metric has an error. Where no job names a task, users take the place of tasks. Cost: one
    query per window, with a row for each group, task and queue that has jobs; one more by day for ratios of
    two windows.
    """
    formulas = [_terms(metric) for metric in metrics]
    parts = list(dict.fromkeys(chain.from_iterable(formulas)))
    if not parts:
        return None
    unit = _TASK
    found = _read(store, by, parts, both, unit, strata)
    tasks = found[0].keys[_named(_TASK)]
    if tasks.null_count == len(tasks):
        unit = _USER
        found = _read(store, by, parts, both, unit, strata)
    row = _rows_of(found[0], by, rows)
    codes = {name: _codes(found[0].keys[_named(name)]) for name in (unit, _QUEUE)}
    own, queue = codes.values()
    fixed = _fixed_fields(by, both, strata)
    clusters = tuple(codes[name] for name in codes if name not in fixed)
    ratios = list(chain.from_iterable(terms for terms in formulas if len(terms) == 2))
    days = None
    # without clusters there is no error; in one window both sides share their days
    if clusters and ratios and both[0].window != both[1].window:
        days = _by_day(store, by, ratios, both, rows)
    # a cell is a pair of task and queue: the same task at another queue runs on other machines
    cell = own * (queue.max(initial=0) + 1) + queue
    stratum = _strata_of(found[0], strata)
    if stratum is not None:
        cell = cell * (stratum.max(initial=0) + 1) + stratum
    return Cells(row, cell, clusters, found, stratum, days)


def _strata_of(cells: Groups, strata: Sequence[Dimension]) -> Codes | None:
    if not strata:
        return None
    return _codes(*(cells.keys[_named(one.key)] for one in strata))


def _fixed_fields(
    by: Sequence[Dimension], both: Sequence[Jobs], strata: Sequence[Dimension]
) -> frozenset[str]:
    """Return the fields that the question names; their values are no sample of others."""
    chosen = {one.field for jobs in both for one in jobs.where if isinstance(one, In)}
    keys = {dimension.key for dimension in by}
    of_queues = _QUEUE_FIELDS & {*keys, *(one.key for one in strata)}
    return frozenset({*keys, *chosen, *({_QUEUE} if of_queues else ())})


def _by_day(
    store: JobStore,
    by: Sequence[Dimension],
    parts: Sequence[Part],
    both: Sequence[Jobs],
    rows: Groups,
) -> Cells:
    day = Dimension(_named(_DAY), _DAY)
    found = aligned(*(groups(store, [*by, day], parts, jobs) for jobs in both))
    codes = _codes(found[0].keys[day.name])
    return Cells(_rows_of(found[0], by, rows), codes, (codes,), found)


def _rows_of(cells: Groups, by: Sequence[Dimension], rows: Groups) -> Codes:
    # rows are all different, so that their numbers are their positions
    return numbers_of(rows, cells, [dimension.name for dimension in by])[0][rows.number :]


def _read(
    store: JobStore,
    by: Sequence[Dimension],
    parts: Iterable[Part],
    both: Sequence[Jobs],
    similar: str,
    strata: Sequence[Dimension],
) -> list[Groups]:
    extra = {name: Dimension(_named(name), name) for name in (similar, _QUEUE)}
    for one in strata:
        # a stratum may be the task or the queue itself
        extra.setdefault(one.key, replace(one, name=_named(one.key)))
    named = {dimension.key: dimension.name for dimension in by}
    missing = [one for key, one in extra.items() if key not in named]
    now, before = (groups(store, [*by, *missing], parts, jobs) for jobs in both)
    found = aligned(now, before)
    keys = dict(found[0].keys)
    for one in extra.values():
        keys[one.name] = keys[named.get(one.key, one.name)]
    return [replace(side, keys=keys) for side in found]


def _terms(metric: QueryMetric) -> tuple[Part, ...]:
    match metric.formula:
        case Ratio(over=Amount() as over, under=Amount() as under):
            return over.moment, under.moment
        case Total(amount=amount):
            return (amount.moment,)
    return ()


def _named(key: str) -> str:
    return f"cell {key}"


def _codes(*columns: pa.ChunkedArray) -> Codes:
    return numbered(columns, len(columns[0]))[0]
