"""A question to the stored jobs and its answer: groups in the order asked for, the rest, the total."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.arrow import arrow_type
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.query import adds_up
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.records.jobs.conditions import job_filters
from esjobs.records.jobs.questions.asking import Groups, Jobs, aligned, bins_of, groups
from esjobs.records.jobs.questions.cells import Cells, read_cells
from esjobs.records.jobs.questions.changes import LEAST_CLUSTERS, Change, Codes
from esjobs.records.jobs.questions.columns import Columns, Wanted, columns, noise_columns
from esjobs.records.jobs.questions.dimensions import Dimension, dimensions, parse_bins
from esjobs.records.jobs.questions.formulas import JOBS, Floats, Part, Ratio, leaves_out, together
from esjobs.records.jobs.questions.gaps import filled, gaps
from esjobs.records.jobs.questions.metrics import QueryMetric, metric
from esjobs.records.jobs.questions.ranking import differing, sentence
from esjobs.store.base import JobStore

GROUP, OTHERS = "group", "others"
TOTAL = "total"
_COUNT = JOBS.moment
_PREVIOUS = "previous"


@dataclass(frozen=True)
class Question:
    """A question to the stored jobs, in the words of ``esjobs query``.

    ``by``: fields, ``week``, ``month``, ``hour``; none: one row. ``bins``: ``FIELD=EDGES``. ``sort``: a
    column or a metric; ``descending`` None: numbers from the largest, names from A. ``top``: number of
    groups, the rest as one row. ``min_jobs``: smaller groups are no rows. A ratio that groups are sorted by
    has its 95 % interval beside it, and which groups differ from the rest. ``compare``: a second window;
    ``previous``: the one right before.
    """

    by: tuple[str, ...]
    metrics: tuple[str, ...] = ("jobs",)
    where: tuple[str, ...] = ()
    window: Window | None = None
    clean: CleaningRules | None = None
    bins: tuple[str, ...] = ()
    sort: str | None = None
    descending: bool | None = None
    top: int | None = None
    min_jobs: int = 0
    total: bool = False
    share: bool = False
    errors: bool = False
    compare: Window | str | None = None


@dataclass(frozen=True)
class Answer:
    """Groups of jobs with their numbers.

    ``table``: dimensions, numbers, and ``row`` (``group``, ``others`` or ``total``) where there may be
    others. ``notes``: one sentence each.
    """

    table: pa.Table
    question: Question
    by: tuple[Dimension, ...]
    metrics: tuple[QueryMetric, ...]
    notes: tuple[str, ...] = ()
    before: Window | None = None

    @property
    def title(self) -> str:
        """The windows that were compared; empty without comparison."""
        return f"{self.question.window}; before: {self.before}" if self.before else ""

    @property
    def read(self) -> pa.Table:
        """The table as people read it: bins in a unit of their size; all else as in ``table``."""
        table = self.table
        for dimension in self.by:
            row = table.column_names.index(dimension.name)
            kind = table.schema.field(row)
            texts = pa.array(dimension.read(table.column(row).to_pylist()), kind.type)
            table = table.set_column(row, kind, texts)
        return table


def answered(store: JobStore, question: Question, nothing: Callable[[], str]) -> Answer:
    """Return the answer; ``nothing`` gives the sentence for no matching job.

    One aggregation per window; one more for a total of numbers that do not add up, for bins of equal width,
    and for comparing by task and queue. Raises :class:`NoJobsError` if nothing matches, :class:`UsageError`
    for nonsense.
    """
    chosen = tuple(metric(name) for name in dict.fromkeys(question.metrics))
    _refuse_nonsense(question)
    before = _window_before(question)
    ranked = _ranked(question, chosen) if before is None else ""
    wanted = Wanted(chosen, question.errors, question.share, before is not None, ranked)
    jobs = _jobs(store, question, question.window)
    by = tuple(dimensions(question.by, bins_of(store, parse_bins(question.bins), jobs)))
    if before is not None and any(dimension.calendar for dimension in by):
        raise UsageError("another window has other days; compare by something else, such as queue")
    sorting = _sorting_metric(question, by, wanted)
    parts = _parts(question, by, wanted, sorting)
    requested = [jobs] if before is None else [jobs, _jobs(store, question, before)]
    sides = [groups(store, by, parts, one) for one in requested]
    if len(sides) == 2:
        sides = aligned(*sides)
    # a group has a job; without a group there is one row, which may have none
    if not any(side.number if by else side.parts[_COUNT][0] for side in sides):
        raise NoJobsError(nothing())
    if len(by) == 1 and before is None and _shows_all(question):
        sides = [filled(sides[0], by[0])]
    every = np.ones(sides[0].number, np.bool_)
    totals = [Groups({}, together(side.parts, every)) for side in sides]
    if question.total and by and not all(map(adds_up, parts)):
        totals = [groups(store, [], parts, one) for one in requested]
    cells = None if before is None else read_cells(store, by, chosen, requested, sides[0])
    arranged = _Arranged(question, by, wanted, sorting, sides, totals, cells)
    return Answer(arranged.table(), question, by, chosen, tuple(arranged.notes()), before)


def _jobs(store: JobStore, question: Question, window: Window | None) -> Jobs:
    drops = question.clean.drops() if question.clean else ()
    return Jobs(window, job_filters(store, question.where, window), drops)


def _parts(
    question: Question, by: Sequence[Dimension], wanted: Wanted, sorting: QueryMetric | None
) -> tuple[Part, ...]:
    parts = wanted.parts() if sorting is None else (*wanted.parts(), *sorting.formula.parts(errors=False))
    counted = not by or question.min_jobs or _sorted_by_size(question, by, wanted)
    return (_COUNT, *parts) if counted else parts


def _shows_all(question: Question) -> bool:
    return question.top is None and not question.min_jobs


def _refuse_nonsense(question: Question) -> None:
    if not question.metrics:
        raise UsageError("no metric given; add --metric jobs (list: esjobs fields)")
    if question.top is not None and question.top < 1:
        raise UsageError(f"--top {question.top} shows no groups; use 1 or more, or omit it")
    if question.min_jobs < 0:
        raise UsageError(f"min_jobs must be 0 or more; got {question.min_jobs}")
    if not (question.by or question.bins) and (
        question.top is not None or question.total or question.min_jobs
    ):
        raise UsageError("without a field to group by there is one row; omit top, total and min_jobs")


def _ranked(question: Question, metrics: Sequence[QueryMetric]) -> str:
    by = question.by or question.bins
    rates = [one.name for one in metrics if isinstance(one.formula, Ratio) and one.name == question.sort]
    return rates[0] if rates and by else ""


def _window_before(question: Question) -> Window | None:
    if question.compare is None:
        return None
    if question.window is None:
        raise UsageError("no window precedes all stored jobs; specify the window to compare with")
    if question.compare == _PREVIOUS:
        length = question.window.end - question.window.start
        try:
            return Window(question.window.start - length, question.window.start)
        except OverflowError:
            raise UsageError(f"no window of the same length precedes {question.window}") from None
    return Window.of(question.compare)


def _sorting_metric(question: Question, by: Sequence[Dimension], wanted: Wanted) -> QueryMetric | None:
    # it is no column of the answer
    name = question.sort
    if name is None or name in wanted.names or name in [dimension.name for dimension in by]:
        return None
    try:
        return metric(name)
    except UsageError:
        accepted = ", ".join([*(dimension.name for dimension in by), *wanted.names])
        raise UsageError(f"cannot sort by '{name}'; use one of {accepted}, or any metric") from None


def _sorted_by_size(question: Question, by: Sequence[Dimension], wanted: Wanted) -> bool:
    if question.sort is not None or wanted.compared:
        return False
    if question.top is not None and question.descending is None:
        return not wanted.metrics[0].adds_up
    return not any(dimension.in_order for dimension in by)


@dataclass(frozen=True)
class _Arranged:
    """Groups with their numbers, about to be rows."""

    question: Question
    by: tuple[Dimension, ...]
    wanted: Wanted
    sorting: QueryMetric | None
    sides: list[Groups]
    totals: list[Groups]
    cells: Cells | None

    def table(self) -> pa.Table:
        """The rows of the answer."""
        shown, _ = self._shown
        labels, joined = self._rows()
        names = [dimension.name for dimension in self.by]
        arrays = [self._keys(dimension, shown, labels[len(shown) :]) for dimension in self.by]
        changed = noise_columns(self.wanted, joined)
        for name, values in joined.items():
            names.append(name)
            arrays.append(_array(values, integral=self.wanted.is_count(name)))
            if name in changed:
                names.append(name.removesuffix("_z") + "_changed")
                arrays.append(pa.array(changed[name], pa.bool_()))
            if name == f"{self.wanted.ranked}_high":
                found = [self._differing[row] for row in shown.tolist()]
                names.append(f"{self.wanted.ranked}_differs")
                arrays.append(pa.array([*found, *(None for _ in labels[len(found) :])], pa.bool_()))
        if self._with_others or self.question.total:
            names.append("row")
            arrays.append(pa.array(labels, pa.string()))
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise UsageError(f"the answer would have two columns '{min(twice)}'; request one of them")
        return pa.Table.from_arrays(arrays, names=names)

    def _rows(self) -> tuple[list[str], Columns]:
        shown, rest = self._shown
        labels = [GROUP] * len(shown)
        pieces = [{name: values[shown] for name, values in self._numbers.items()}]
        if self._with_others and rest.any():
            others = [Groups({}, together(side.parts, rest)) for side in self.sides]
            pieces.append(self._columns(others, np.where(rest, 0, -1)))
            labels.append(OTHERS)
        if self.question.total and self.by:
            pieces.append(self._columns(self.totals, np.zeros(self.sides[0].number, np.int64)))
            labels.append(TOTAL)
        return labels, {name: np.concatenate([piece[name] for piece in pieces]) for name in self._numbers}

    def notes(self) -> Iterator[str]:
        """Yield notes on excluded jobs and empty values."""
        yield from self._excluded()
        yield from self._too_few()
        _, rest = self._shown
        single = [m.name for m in self.wanted.metrics if not all(map(adds_up, m.formula.parts(errors=False)))]
        if rest.any() and self._with_others and single:
            yield f"row others: {', '.join(single)} cannot be derived from the groups, so it is empty"
        if any(set(self.sides[0].keys[one.name]) == {None} for one in self.by if one.name == "country"):
            yield "countries are unknown; import a table with a column country: esjobs corepower import"
        yield from gaps(self.sides[0], self.by, self.question.window)
        if rest.any() and not self._with_others:
            yield f"{int(rest.sum()):,} groups with fewer than {self.question.min_jobs:,} jobs omitted"
        if text := sentence(self._differing):
            yield f"{self.wanted.ranked}: {text}"

    def _excluded(self) -> Iterator[str]:
        total = self.totals[0].parts
        for one in self.wanted.metrics:
            out = int(one.formula.left_out(total)[0]) if leaves_out(one.formula) else 0
            if out:
                yield f"{one.name}: {out:,} of {int(total[_COUNT][0]):,} jobs excluded ({one.leaves_out})"

    @cached_property
    def _differing(self) -> list[bool | None]:
        for one in self.wanted.metrics:
            if one.name == self.wanted.ranked and isinstance(one.formula, Ratio):
                return differing(one.formula, self.sides[0].parts)
        return []

    def _too_few(self) -> Iterator[str]:
        shown, _ = self._shown
        for name, change in self._changes(self._every_row, self.sides[0].number).items():
            few = int(change.few[shown].sum())
            if few:
                yield (
                    f"{name}: {few:,} of {len(shown):,} changes cannot be separated from noise: their jobs "
                    f"belong to effectively fewer than {LEAST_CLUSTERS:.0f} tasks or queues"
                )

    @property
    def _with_others(self) -> bool:
        return self.question.top is not None

    def _columns(self, sides: Sequence[Groups], group_of_row: Codes) -> Columns:
        changes = self._changes(group_of_row, sides[0].number)
        parts = [side.parts for side in sides]
        return columns(self.wanted, parts, [total.parts for total in self.totals], changes)

    def _changes(self, group_of_row: Codes, number: int) -> dict[str, Change]:
        if self.cells is None:
            return {}
        found = {one.name: self.cells.change(one, group_of_row, number) for one in self.wanted.metrics}
        return {name: change for name, change in found.items() if change is not None}

    @cached_property
    def _every_row(self) -> Codes:
        return np.arange(self.sides[0].number)

    @cached_property
    def _numbers(self) -> Columns:
        return self._columns(self.sides, self._every_row)

    @cached_property
    def _shown(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        # order of the groups that are rows of their own, and a mask of all others
        order = self._order(self._numbers)
        if self.question.min_jobs:
            n_jobs = np.sum([side.parts[_COUNT] for side in self.sides], axis=0)
            order = order[n_jobs[order] >= self.question.min_jobs]
        if self.question.top is not None:
            order = order[: self.question.top]
        rest = np.ones(self.sides[0].number, np.bool_)
        rest[order] = False
        return order, rest

    def _order(self, numbers: Columns) -> npt.NDArray[np.int64]:
        keys = {dimension.name: self.sides[0].keys[dimension.name] for dimension in self.by}
        order = list(range(self.sides[0].number))
        for values in reversed(keys.values()):
            order.sort(key=lambda row, of=values: _rank(of[row]))  # type: ignore[misc]
        name, descending = self.question.sort, self.question.descending
        if name in keys:
            return _sorted(order, keys[name], bool(descending))
        if name is None and self.wanted.compared:
            name, descending = f"{self.wanted.metrics[0].name}_diff", bool(descending)
        top_of_all = self.question.top is not None and descending is None
        if name is None and not top_of_all and any(dimension.in_order for dimension in self.by):
            return np.array(order[::-1] if descending else order, np.int64)
        sizes = self._sizes(name, numbers)
        sizes_present = [None if np.isnan(size) else size for size in sizes]
        return _sorted(order, sizes_present, descending is None or descending)

    def _sizes(self, name: str | None, numbers: Columns) -> Floats:
        if name is not None:
            return self.sorting.formula.values(self.sides[0].parts) if self.sorting else numbers[name]
        if _sorted_by_size(self.question, self.by, self.wanted):
            return self.sides[0].parts[_COUNT]
        return numbers[self.wanted.metrics[0].name]

    def _keys(self, dimension: Dimension, shown: npt.NDArray[np.int64], labels: Sequence[str]) -> pa.Array:
        # the first dimension that is a text names the other rows
        stored = self.sides[0].keys[dimension.name]
        values = dimension.shown([stored[row] for row in shown])
        kind = arrow_type(dimension.type)
        speaking = next((one for one in self.by if one.type == "keyword"), self.by[0])
        if dimension != speaking or not labels:
            return pa.array([*values, *(None for _ in labels)], kind)
        texts = [None if value is None else str(value) for value in values]
        return pa.array([*texts, *labels], pa.string())


def _sorted(order: Sequence[int], values: Sequence[Any], descending: bool) -> npt.NDArray[np.int64]:
    # missing values come last, equal ones stay in their order
    present = [row for row in order if values[row] is not None]
    present.sort(key=values.__getitem__, reverse=descending)
    return np.array(present + [row for row in order if values[row] is None], np.int64)


def _array(values: Floats, *, integral: bool) -> pa.Array:
    missing = np.isnan(values)
    if integral:
        return pa.array(np.where(missing, 0, values).astype(np.int64), pa.int64(), mask=missing)
    return pa.array(values, pa.float64(), mask=missing)


def _rank(value: Any) -> tuple[bool, Any]:
    # missing values come last
    return value is None, 0 if value is None else value
