"""Cells of two windows: what a store gives for the errors of changes, a row a group, task and queue."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from esjobs.core.query import In, is_count
from esjobs.records.jobs.questions.asking import Groups, Jobs, aligned, groups
from esjobs.records.jobs.questions.changes import Change, Codes, Terms, change_of_ratio, change_of_sum
from esjobs.records.jobs.questions.dimensions import Dimension
from esjobs.records.jobs.questions.formulas import Amount, Floats, Part, Ratio, Total
from esjobs.records.jobs.questions.metrics import QueryMetric
from esjobs.store.base import JobStore

_TASK, _QUEUE, _USER = "task_id", "queue", "user"
_PLACES = frozenset((_QUEUE, "site", "country"))
"""Who groups by one of these, or chooses some, asks about these queues, not about queues like them."""


@dataclass(frozen=True)
class Cells:
    """Parts of the jobs of each task and queue: of the window, then of that before.

    ``row``: the group that a cell belongs to, as a number in the order of the answer.
    """

    row: Codes
    cell: Codes
    clusters: tuple[Codes, ...]
    sides: Sequence[Groups]

    def change(self, metric: QueryMetric, group_of_row: Codes, number: int) -> Change | None:
        """Change of a metric in groups of rows; None for metrics without errors.

        ``group_of_row``: the number of the group that each row of the answer is in, -1: in none.
        """
        terms = _terms(metric)
        if not terms:
            return None
        group = group_of_row[self.row]
        inside = group >= 0
        over, under = (self._sums(part, inside) for part in (terms[0], terms[-1]))
        cells = Terms(
            group[inside], self.cell[inside], tuple(codes[inside] for codes in self.clusters), over, under
        )
        if len(terms) == 1:
            return change_of_sum(cells, number)
        return change_of_ratio(cells, number, counted=all(map(is_count, terms)))

    def _sums(self, part: Part, inside: np.ndarray) -> Floats:
        """A part before and after; 0 where no job of the cell has it."""
        return np.stack([np.nan_to_num(side.parts[part][inside]) for side in reversed(self.sides)])


def read_cells(
    store: JobStore,
    by: Sequence[Dimension],
    metrics: Iterable[QueryMetric],
    both: Sequence[Jobs],
    rows: Groups,
) -> Cells | None:
    """Read the cells of the groups of ``rows``; ``both``: the jobs of the window, and of that before.

    None where no metric has an error. Where no job names a task, jobs of a user are alike. Cost: one query
    for each window, with a row for each group, task and queue that has jobs.
    """
    parts = list(dict.fromkeys(part for metric in metrics for part in _terms(metric)))
    if not parts:
        return None
    keys = {dimension.key for dimension in by}
    chosen = {one.field for jobs in both for one in jobs.where if isinstance(one, In)}
    alike = [_TASK, *(() if keys & _PLACES or _QUEUE in chosen else (_QUEUE,))]
    found = _read(store, by, parts, both, _TASK)
    if all(task is None for task in found[0].keys[_named(_TASK)]):
        alike[0] = _USER
        found = _read(store, by, parts, both, _USER)
    place = {row: number for number, row in enumerate(_tuples(rows, by))}
    row = np.array([place[values] for values in _tuples(found[0], by)], np.int64)
    codes = {name: _codes(found[0].keys[_named(name)]) for name in (alike[0], _QUEUE)}
    own, queue = codes.values()
    clusters = tuple(codes[name] for name in alike if name not in keys and name not in chosen)
    return Cells(row, own * (queue.max(initial=0) + 1) + queue, clusters, found)


def _read(
    store: JobStore, by: Sequence[Dimension], parts: Iterable[Part], both: Sequence[Jobs], alike: str
) -> list[Groups]:
    extra = [Dimension(_named(name), name) for name in (alike, _QUEUE)]
    missing = [one for one in extra if one.key not in {dimension.key for dimension in by}]
    now, before = (groups(store, [*by, *missing], parts, jobs) for jobs in both)
    found = aligned(now, before)
    keys = dict(found[0].keys)
    for one in extra:
        named = next((dimension.name for dimension in by if dimension.key == one.key), one.name)
        keys[one.name] = keys[named]
    return [replace(side, keys=keys) for side in found]


def _terms(metric: QueryMetric) -> tuple[Part, ...]:
    match metric.formula:
        case Ratio(over=Amount() as over, under=Amount() as under):
            return over.moment, under.moment
        case Total(amount=amount):
            return (amount.moment,)
    return ()


def _named(key: str) -> str:
    """The name of a key of cells, which no dimension has."""
    return f"cell {key}"


def _tuples(table: Groups, by: Sequence[Dimension]) -> list[tuple[object, ...]]:
    if not by:
        return [()] * table.number
    return list(zip(*(table.keys[dimension.name] for dimension in by), strict=True))


def _codes(values: Sequence[object]) -> Codes:
    """Numbers of values in the order in which they appear."""
    number = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return np.fromiter((number[value] for value in values), np.int64, len(values))
