"""A question to the stored jobs and its answer: groups in the order asked for, the rest, the total."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from esjobs.records.jobs.questions.formulas import JOBS, Floats, Ratio, leaves_out, left_out, together
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
    """What is asked of the stored jobs, in the words of ``esjobs query``.

    ``by``: fields, ``week``, ``month``, ``hour``; none: one row. ``bins``: ``FIELD=EDGES``. ``sort``: a
    column of the answer or a metric; ``descending`` None: numbers from the largest, names from A.
    ``top``: so many groups, the largest unless an order is asked for, the rest as one row. ``min_jobs``:
    groups of fewer are no rows of their own. ``total``: a row of all jobs. ``share``: beside sums, their part
    of the total. ``errors``: beside ratios and sums, their standard errors. A ratio that groups are sorted by
    has its 95 % interval beside it, and which groups differ from the rest. ``compare``: another window, held
    against the first; ``previous``: the one as long right before it.
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

    ``table``: the dimensions, the numbers, and, where there may be others or a total, ``row``: ``group``,
    ``others`` or ``total``. ``notes``: what a reader must know to understand it, a sentence each.
    """

    table: pa.Table
    question: Question
    by: tuple[Dimension, ...]
    metrics: tuple[QueryMetric, ...]
    notes: tuple[str, ...] = ()
    before: Window | None = None

    @property
    def title(self) -> str:
        """What was compared; empty where nothing was."""
        return f"{self.question.window}; before: {self.before}" if self.before else ""

    @property
    def read(self) -> pa.Table:
        """The table as people read it: bins in a unit of their size; all else as in ``table``."""
        table = self.table
        for dimension in self.by:
            place = table.column_names.index(dimension.name)
            kind = table.schema.field(place)
            texts = pa.array(dimension.read(table.column(place).to_pylist()), kind.type)
            table = table.set_column(place, kind, texts)
        return table


def answered(store: JobStore, question: Question, nothing: Callable[[], str]) -> Answer:
    """The answer. ``nothing``: gives the sentence that is said when no job matches.

    One aggregation for each window; one more for a total of numbers that do not add up, and for bins of equal
    width; to compare one more for each window, by task and queue. Raises
    :class:`NoJobsError` when nothing matches, :class:`UsageError` for what makes no sense.
    """
    chosen = tuple(metric(name) for name in dict.fromkeys(question.metrics))
    _refuse_nonsense(question)
    before = _window_before(question)
    ranked = _ranked(question, chosen) if before is None else ""
    wanted = Wanted(chosen, question.errors, question.share, before is not None, ranked)
    drops = question.clean.drops() if question.clean else ()
    jobs = Jobs(question.window, job_filters(store, question.where, question.window), drops)
    by = tuple(dimensions(question.by, bins_of(store, parse_bins(question.bins), jobs)))
    if before is not None and any(dimension.calendar for dimension in by):
        raise UsageError("another window has other days; compare by something else, such as queue")
    sorting = _sorting_metric(question, by, wanted)
    parts = wanted.parts() if sorting is None else (*wanted.parts(), *sorting.formula.parts(errors=False))
    if not by or question.min_jobs or _sorted_by_size(question, by, wanted):
        parts = (_COUNT, *parts)
    sides = [groups(store, by, parts, jobs)]
    asked = [jobs]
    if before is not None:
        past = replace(jobs, window=before, where=job_filters(store, question.where, before))
        sides = aligned(sides[0], groups(store, by, parts, past))
        asked.append(past)
    # a group has a job; without a group there is one row, which may have none
    if not any(side.number if by else side.parts[_COUNT][0] for side in sides):
        raise NoJobsError(nothing())
    if len(by) == 1 and before is None and question.top is None and not question.min_jobs:
        sides = [filled(sides[0], by[0])]
    every = np.ones(sides[0].number, np.bool_)
    totals = [Groups({}, together(side.parts, every)) for side in sides]
    if question.total and by and not all(map(adds_up, parts)):
        totals = [groups(store, [], parts, one) for one in asked]
    cells = None if before is None else read_cells(store, by, chosen, asked, sides[0])
    arranged = _Arranged(question, by, wanted, sorting, sides, totals, cells)
    return Answer(arranged.table(), question, by, chosen, tuple(arranged.notes()), before)


def _refuse_nonsense(question: Question) -> None:
    if not question.metrics:
        raise UsageError("no metric is asked for; name one, such as jobs: esjobs fields lists them")
    if question.top is not None and question.top < 1:
        raise UsageError(f"the top {question.top} of groups are none; give 1 or more, or leave it out")
    if question.min_jobs < 0:
        raise UsageError(f"no group has fewer than 0 jobs; got {question.min_jobs}")
    if not (question.by or question.bins) and (
        question.top is not None or question.total or question.min_jobs
    ):
        raise UsageError("without something to group by there is one row; leave top, total and min_jobs out")


def _ranked(question: Question, metrics: Sequence[QueryMetric]) -> str:
    """The rate by which groups are sorted, if they are."""
    by = question.by or question.bins
    rates = [one.name for one in metrics if isinstance(one.formula, Ratio) and one.name == question.sort]
    return rates[0] if rates and by else ""


def _window_before(question: Question) -> Window | None:
    """The window to compare with."""
    if question.compare is None:
        return None
    if question.window is None:
        raise UsageError("nothing comes before all that is stored; give the window to compare, too")
    if question.compare == _PREVIOUS:
        length = question.window.end - question.window.start
        try:
            return Window(question.window.start - length, question.window.start)
        except OverflowError:
            raise UsageError(f"no window as long lies before {question.window}") from None
    return Window.of(question.compare)


def _sorting_metric(question: Question, by: Sequence[Dimension], wanted: Wanted) -> QueryMetric | None:
    """A metric that groups are sorted by and that is no column of the answer."""
    name = question.sort
    if name is None or name in wanted.names or name in [dimension.name for dimension in by]:
        return None
    try:
        return metric(name)
    except UsageError:
        there = ", ".join([*(dimension.name for dimension in by), *wanted.names])
        raise UsageError(
            f"nothing here is called '{name}' to sort by; there are {there}, and any metric"
        ) from None


def _sorted_by_size(question: Question, by: Sequence[Dimension], wanted: Wanted) -> bool:
    """Whether groups are shown in the order of their jobs: where nothing else is said, or follows."""
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
        numbers, (shown, rest) = self._numbers, self._shown
        labels = [GROUP] * len(shown)
        pieces = [{name: values[shown] for name, values in numbers.items()}]
        if self._with_others and rest.any():
            together_now = [Groups({}, together(side.parts, rest)) for side in self.sides]
            pieces.append(self._columns(together_now, np.where(rest, 0, -1)))
            labels.append(OTHERS)
        if self.question.total and self.by:
            pieces.append(self._columns(self.totals, np.zeros(self.sides[0].number, np.int64)))
            labels.append(TOTAL)
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in numbers}
        names = [dimension.name for dimension in self.by]
        arrays = [self._keys(dimension, shown, labels[len(shown) :]) for dimension in self.by]
        changed = noise_columns(self.wanted, joined)
        for name, values in joined.items():
            names.append(name)
            arrays.append(_array(values, whole=self.wanted.is_whole(name)))
            if name in changed:
                names.append(name.removesuffix("_z") + "_changed")
                arrays.append(pa.array(changed[name], pa.bool_()))
            if name == f"{self.wanted.ranked}_high":
                found = [self._differing[place] for place in shown.tolist()]
                names.append(f"{self.wanted.ranked}_differs")
                arrays.append(pa.array([*found, *(None for _ in labels[len(found) :])], pa.bool_()))
        if self._with_others or self.question.total:
            names.append("row")
            arrays.append(pa.array(labels, pa.string()))
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise UsageError(f"the answer would have two columns '{min(twice)}'; ask for one of them")
        return pa.Table.from_arrays(arrays, names=names)

    def notes(self) -> Iterator[str]:
        """What a reader must know: who is left out, and why a number is not there."""
        _, rest = self._shown
        total = self.totals[0].parts
        for one in self.wanted.metrics:
            if not leaves_out(one.formula):
                continue
            n_jobs, out = int(total[_COUNT][0]), int(left_out(one.formula, total)[0])
            if out:
                yield f"{one.name}: {out:,} of {n_jobs:,} jobs are left out: {one.leaves_out}"
        yield from self._too_few()
        if rest.any() and self._with_others:
            single = [
                m.name for m in self.wanted.metrics if not all(map(adds_up, m.formula.parts(errors=False)))
            ]
            if single:
                yield f"{', '.join(single)} of others: not known, for it does not follow from that of groups"
        if any(set(self.sides[0].keys[one.name]) == {None} for one in self.by if one.name == "country"):
            yield "no country is known: import a table with a column country (esjobs corepower import)"
        yield from gaps(self.sides[0], self.by, self.question.window)
        if rest.any() and not self._with_others:
            yield f"{int(rest.sum()):,} groups of fewer than {self.question.min_jobs:,} jobs are left out"

        if told := sentence(self._differing):
            yield f"{self.wanted.ranked}: {told}"

    @cached_property
    def _differing(self) -> list[bool | None]:
        """Which groups differ from the rest in the rate that they are ranked by; none without one."""
        for one in self.wanted.metrics:
            if one.name == self.wanted.ranked and isinstance(one.formula, Ratio):
                return differing(one.formula, self.sides[0].parts)
        return []

    def _too_few(self) -> Iterator[str]:
        """Which changes have no error, because the jobs of both windows are of too few tasks or queues."""
        shown, _ = self._shown
        for name, change in self._changes(self._every_row, self.sides[0].number).items():
            few = int(change.few[shown].sum())
            if few:
                yield (
                    f"{name}: {few:,} of {len(shown):,} changes cannot be told from noise: their jobs are of "
                    f"fewer than {LEAST_CLUSTERS:.0f} tasks or queues in effect"
                )

    @property
    def _with_others(self) -> bool:
        return self.question.top is not None

    def _columns(self, sides: Sequence[Groups], group_of_row: Codes) -> Columns:
        changes = self._changes(group_of_row, sides[0].number)
        parts = [side.parts for side in sides]
        return columns(self.wanted, parts, [total.parts for total in self.totals], changes)

    def _changes(self, group_of_row: Codes, number: int) -> dict[str, Change]:
        """Changes with their errors, by metric that has one."""
        if self.cells is None:
            return {}
        found = {one.name: self.cells.change(one, group_of_row, number) for one in self.wanted.metrics}
        return {name: change for name, change in found.items() if change is not None}

    @cached_property
    def _every_row(self) -> Codes:
        """Each group on its own."""
        return np.arange(self.sides[0].number)

    @cached_property
    def _numbers(self) -> Columns:
        """The columns of the groups."""
        return self._columns(self.sides, self._every_row)

    @cached_property
    def _shown(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The groups that are rows of their own, in their order, and whether a group is none."""
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
        """The places of the groups in the order in which they are shown; what is missing comes last."""
        keys = [self.sides[0].keys[dimension.name] for dimension in self.by]
        order = list(range(self.sides[0].number))
        for values in reversed(keys):
            order.sort(key=lambda place, of=values: _rank(of[place]))  # type: ignore[misc]
        name, descending = self.question.sort, self.question.descending
        if name in [dimension.name for dimension in self.by]:
            values = self.sides[0].keys[str(name)]
            there = [place for place in order if values[place] is not None]
            there.sort(key=lambda place: _rank(values[place]), reverse=bool(descending))
            return np.array(there + [place for place in order if values[place] is None], np.int64)
        if name is None and self.wanted.compared and self.wanted.metrics:
            name, descending = f"{self.wanted.metrics[0].name}_diff", bool(descending)
        top_of_all = self.question.top is not None and descending is None
        if name is None and not top_of_all and any(dimension.in_order for dimension in self.by):
            return np.array(order[::-1] if descending else order, np.int64)
        if name is None:
            by_size = _sorted_by_size(self.question, self.by, self.wanted)
            sizes = self.sides[0].parts[_COUNT] if by_size else numbers[self.wanted.metrics[0].name]
        else:
            sizes = self.sorting.formula.values(self.sides[0].parts) if self.sorting else numbers[name]
        falling = descending is None or descending
        known = [place for place in order if not np.isnan(sizes[place])]
        known.sort(key=lambda place: -sizes[place] if falling else sizes[place])
        return np.array(known + [place for place in order if np.isnan(sizes[place])], np.int64)

    def _keys(self, dimension: Dimension, shown: npt.NDArray[np.int64], labels: Sequence[str]) -> pa.Array:
        """The column of a dimension; the first one that is a text says what other rows are."""
        stored = self.sides[0].keys[dimension.name]
        values = dimension.shown([stored[place] for place in shown])
        kind = arrow_type(dimension.type)
        speaking = next((one for one in self.by if one.type == "keyword"), self.by[0])
        if dimension != speaking or not labels:
            return pa.array([*values, *(None for _ in labels)], kind)
        texts = [None if value is None else str(value) for value in values]
        return pa.array([*texts, *labels], pa.string())


def _array(values: Floats, *, whole: bool) -> pa.Array:
    missing = np.isnan(values)
    if whole:
        return pa.array(np.where(missing, 0, values).astype(np.int64), pa.int64(), mask=missing)
    return pa.array(values, pa.float64(), mask=missing)


def _rank(value: Any) -> tuple[bool, Any]:
    """What sorts a value of a dimension: missing ones last."""
    return value is None, 0 if value is None else value
