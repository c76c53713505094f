"""Groups in the order asked for, the rest, the total: the rows of an answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.arrays import Floats
from esjobs.core.arrow import arrow_type
from esjobs.core.errors import UsageError
from esjobs.core.query import adds_up
from esjobs.records.jobs.questions.asking import Groups
from esjobs.records.jobs.questions.cells import Cells
from esjobs.records.jobs.questions.changes import LEAST_CLUSTERS, Change, Codes
from esjobs.records.jobs.questions.columns import Columns, Wanted, columns, noise_columns
from esjobs.records.jobs.questions.dimensions import Dimension
from esjobs.records.jobs.questions.formulas import JOBS, Parts, Ratio, leaves_out, together
from esjobs.records.jobs.questions.gaps import gaps
from esjobs.records.jobs.questions.metrics import QueryMetric
from esjobs.records.jobs.questions.question import Question
from esjobs.records.jobs.questions.ranking import differing, sentence
from esjobs.store.merge import numbered

GROUP, OTHERS = "group", "others"
TOTAL = "total"
COUNT = JOBS.moment
"""Part that counts the jobs of a group."""


def sorted_by_size(question: Question, by: Sequence[Dimension], wanted: Wanted) -> bool:
    """Return true if rows stand in the order of their jobs."""
    if question.sort is not None or wanted.compared:
        return False
    # the largest groups: by the first metric if that adds up, else by their jobs
    if question.top is not None and question.descending is None:
        return not wanted.metrics[0].adds_up
    return not in_order(by)


def in_order(by: Sequence[Dimension]) -> bool:
    """True if groups stand in the order of a dimension, unless something else is asked for."""
    return any(dimension.in_order for dimension in by)


@dataclass(frozen=True)
class Arranged:
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
            # right after the interval that it was judged by
            if name == f"{self.wanted.ranked}_high":
                found = pa.array([self._differing[row] for row in shown.tolist()], pa.bool_())
                names.append(f"{self.wanted.ranked}_differs")
                arrays.append(pa.concat_arrays([found, pa.nulls(len(labels) - len(found), pa.bool_())]))
        if self._with_others or self.question.total:
            names.append("row")
            arrays.append(pa.array(labels, pa.string()))
        _refuse_equal(names)
        return pa.Table.from_arrays(arrays, names=names)

    def _rows(self) -> tuple[list[str], Columns]:
        shown, rest = self._shown
        labels = [GROUP] * len(shown)
        pieces = [{name: values[shown] for name, values in self._numbers.items()}]
        if self._with_others and rest.any():
            others = [Groups({}, together(side.parts, rest)) for side in self.sides]
            # group 0 is the row of all others, -1 are groups with rows of their own
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
        omitted = int(self._shown[1].sum())
        single = [m.name for m in self.wanted.metrics if not all(map(adds_up, m.formula.parts(errors=False)))]
        if omitted and self._with_others and single:
            yield f"row others: {', '.join(single)} cannot be derived from the groups, so it is empty"
        country = self.sides[0].keys.get("country", ())
        if len(country) and country.null_count == len(country):
            yield "countries are unknown; import a table with a column country: esjobs corepower import"
        yield from gaps(self.sides[0], self.by, self.question.window)
        if omitted:
            yield from self._omitted(omitted)
        if text := sentence(self._differing):
            yield f"{self.wanted.ranked}: {text}"

    def _omitted(self, number: int) -> Iterator[str]:
        if self.question.changed:
            yield f"{number:,} groups without a change beyond noise, or without an error, omitted"
        elif not self._with_others:
            yield f"{number:,} groups with fewer than {self.question.min_jobs:,} jobs omitted"

    def _excluded(self) -> Iterator[str]:
        total = self.totals[0].parts
        for one in self.wanted.metrics:
            out = int(one.formula.left_out(total)[0]) if leaves_out(one.formula) else 0
            if out:
                yield f"{one.name}: {out:,} of {int(total[COUNT][0]):,} jobs excluded ({one.leaves_out})"

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
        return columns(self.wanted, parts, self._totals(group_of_row), changes)

    def _totals(self, group_of_row: Codes) -> list[Parts]:
        """Return the totals that shares are of: of all groups, or of those with one value of a field."""
        if self.question.share_of is None:
            return [total.parts for total in self.totals]
        # the rest and the total have jobs of many values: they are no share of one
        if group_of_row is not self._every_row:
            return [{part: np.array([np.nan]) for part in side.parts} for side in self.sides]
        of = self._total_of
        return [
            {part: np.bincount(of, np.nan_to_num(v))[of].astype(np.float64) for part, v in s.parts.items()}
            for s in self.sides
        ]

    @cached_property
    def _total_of(self) -> Codes:
        values = self.sides[0].keys[self.question.share_of or ""]
        return numbered([values], len(values))[0]

    def _changes(self, group_of_row: Codes, number: int) -> dict[str, Change]:
        return (
            self._own_changes if group_of_row is self._every_row else self._changed_by(group_of_row, number)
        )

    @cached_property
    def _own_changes(self) -> dict[str, Change]:
        return self._changed_by(self._every_row, self.sides[0].number)

    def _changed_by(self, group_of_row: Codes, number: int) -> dict[str, Change]:
        if self.cells is None:
            return {}
        found = {one.name: self.cells.change(one, group_of_row, number) for one in self.wanted.metrics}
        if self.wanted.share_changes and group_of_row is self._every_row:
            shares = {one.name: self.cells.share_change(one, self._total_of) for one in self.wanted.metrics}
            found |= {f"{name}_share": change for name, change in shares.items()}
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
            n_jobs = np.sum([side.parts[COUNT] for side in self.sides], axis=0)
            order = order[n_jobs[order] >= self.question.min_jobs]
        if self.question.changed:
            order = order[self._changed[order]]
        if self.question.top is not None:
            order = order[: self.question.top]
        rest = np.ones(self.sides[0].number, np.bool_)
        rest[order] = False
        return order, rest

    @cached_property
    def _changed(self) -> npt.NDArray[np.bool_]:
        found = noise_columns(self.wanted, self._numbers)
        of_shares = {name: flags for name, flags in found.items() if name.endswith("_share_z")}
        flags = np.array(list((of_shares or found).values()))
        return np.asarray((flags == True).any(axis=0), np.bool_)  # noqa: E712  null is not changed

    def _order(self, numbers: Columns) -> npt.NDArray[np.int64]:
        keys = {dimension.name: self.sides[0].keys[dimension.name] for dimension in self.by}
        # lexsort takes the last key first
        ranks = [_ranks(values) for values in reversed(keys.values())]
        order = np.lexsort(ranks) if ranks else np.arange(self.sides[0].number)
        name, descending = self._sorting()
        if name in keys:
            return _sorted(order, _ranks(keys[name], missing=np.nan), bool(descending))
        # days and bins keep their own order, unless the largest of them are wanted
        top_of_all = self.question.top is not None and descending is None
        if name is None and not top_of_all and in_order(self.by):
            return order[::-1] if descending else order
        return _sorted(order, self._sizes(name, numbers), descending is not False)

    def _sorting(self) -> tuple[str | None, bool | None]:
        """Return the column that rows are sorted by, and the direction; None: the usual one."""
        name, descending = self.question.sort, self.question.descending
        if name is not None or not self.wanted.compared:
            return name, descending
        # a comparison puts the largest change first: of shares if they are what is compared
        first = self.wanted.metrics[0]
        share = "_share" if self.wanted.share_changes and first.adds_up else ""
        return f"{first.name}{share}_diff", bool(share or descending)

    def _sizes(self, name: str | None, numbers: Columns) -> Floats:
        if name is not None:
            return self.sorting.formula.values(self.sides[0].parts) if self.sorting else numbers[name]
        if sorted_by_size(self.question, self.by, self.wanted):
            return self.sides[0].parts[COUNT]
        return numbers[self.wanted.metrics[0].name]

    def _keys(
        self, dimension: Dimension, shown: npt.NDArray[np.int64], labels: Sequence[str]
    ) -> pa.Array | pa.ChunkedArray:
        # the first dimension that is a text names the other rows
        stored = self.sides[0].keys[dimension.name].take(pa.array(shown))
        kind = arrow_type(dimension.type)
        if dimension.made is None and not labels:
            return stored.cast(kind)
        values = dimension.shown(stored.to_pylist())
        speaking = next((one for one in self.by if one.type == "keyword"), self.by[0])
        if dimension != speaking or not labels:
            return pa.array([*values, *(None for _ in labels)], kind)
        texts = [None if value is None else str(value) for value in values]
        return pa.array([*texts, *labels], pa.string())


def _refuse_equal(names: Sequence[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise UsageError(f"the answer would have two columns '{min(twice)}'; request one of them")


def _sorted(order: Codes, values: Floats, descending: bool) -> Codes:
    # missing values come last, equal ones stay in their order
    by = values[order]
    missing = np.isnan(by)
    present = order[~missing]
    sizes = by[~missing]
    place = np.argsort(-sizes if descending else sizes, kind="stable")
    return np.concatenate([present[place], order[missing]])


def _array(values: Floats, *, integral: bool) -> pa.Array:
    missing = np.isnan(values)
    if integral:
        return pa.array(np.where(missing, 0, values).astype(np.int64), pa.int64(), mask=missing)
    return pa.array(values, pa.float64(), mask=missing)


def _ranks(column: pa.ChunkedArray, missing: float = np.inf) -> Floats:
    """Return the position of each value among the different ones, which are far fewer than groups."""
    code, first = numbered([column], len(column))
    values = column.take(first).to_pylist()
    position = {
        value: number for number, value in enumerate(sorted(one for one in values if one is not None))
    }
    return np.array([position.get(value, missing) for value in values], np.float64)[code]
