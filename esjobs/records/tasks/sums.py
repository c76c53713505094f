"""Buckets added up over days: one row per task key and name, texts as codes.

A window may have far more buckets than fit into memory, a fit needs only their sums. They are read a few
days at a time and added one after the other in the order of their keys: the same buckets give the same sums,
to the bit, and so the same factors.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.query import Count, Days, Filter, Query
from esjobs.core.window import Window
from esjobs.core.words import NAMED_LEVELS
from esjobs.records.jobs.day_spans import spans
from esjobs.records.names.sites import Sites
from esjobs.records.tasks.keys import TaskKeys
from esjobs.records.tasks.memory import FINE_ROW_B, require_room
from esjobs.records.tasks.period_sums import MOST_PERIODS, PERIOD_SUMS, PeriodSums, n_periods, site_labels
from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import JobStore
from fitters.layout.columns import Labels

SUMS = ("n_jobs", "events", "events_sq", "cpu_s", "cpu_s_sq", "events_cpu_s", "core_s")
MIX_SUMS = ("n_jobs", "cpu_s", "core_s")
_KEYS = BUCKETS.column_names[:6]
_PACKED = ("task_id", "processing_type", "core_class")
# Buckets of several days that are added at once: each time all rows of the result are looked through
_ADDED_TOGETHER = 100_000
_LARGEST_CODE = 2**62

FloatArray = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class TaskSums:
    """Sums over days: one row per task key and name, in order of first occurrence.

    ``task``: labels are numbers of ``keys``. ``sums``: by ``SUMS``. ``mixed``: reason for excluding a mixed
    task, ``cut``: where a limit ends its long jobs at the name; else missing.
    """

    task: Labels
    name: Labels
    sums: Mapping[str, FloatArray]
    n_buckets: npt.NDArray[np.int64]
    mixed: Labels
    keys: TaskKeys
    cut: Labels

    def __len__(self) -> int:
        return len(self.task)

    def __getitem__(self, rows: Any) -> "TaskSums":
        sums = {column: values[rows] for column, values in self.sums.items()}
        return replace(
            self,
            task=self.task[rows],
            name=self.name[rows],
            sums=sums,
            n_buckets=self.n_buckets[rows],
            mixed=self.mixed[rows],
            cut=self.cut[rows],
        )

    def entering(self, min_bucket_jobs: int) -> npt.NDArray[np.bool_]:
        """Rows with enough jobs, of tasks that are neither set aside as mixed nor cut off."""
        aside = (self.mixed.codes >= 0) | (self.cut.codes >= 0)
        return np.asarray((self.sums["n_jobs"] >= min_bucket_jobs) & ~aside, np.bool_)

    def moments(self, rows: Any = slice(None)) -> dict[str, Any]:
        """The columns that functions of ``fitters`` take for sums over jobs."""
        names = ("n_jobs", "events", "cpu_s", "events_sq", "cpu_s_sq", "events_cpu_s")
        return {name: self.sums[name][rows] for name in names}


@dataclass(frozen=True)
class WindowSums:
    """All buckets of a window, added up for each level: queues and CPU models; :func:`with_sites` adds sites.

    ``n_jobs``: binned jobs by processing type ("" for none). ``fine``: what the levels were added up from.
    ``mix``: sums by ``MIX_SUMS`` per queue and CPU model, None where the records name none. ``periods``: by
    level, each made when asked for; empty for a single day.
    """

    levels: Mapping[str, TaskSums]
    n_buckets: int
    n_jobs: Mapping[str, int]
    fine: "FineSums"
    mix: Mapping[tuple[str, str | None], Mapping[str, float]]
    periods: "Periods"


@dataclass(frozen=True)
class FineSums:
    """Sums over days per task key, queue, CPU model and period of the window, in order of first occurrence.

    ``task``: labels are numbers of ``keys``. ``sums``: by ``SUMS``.
    """

    task: Labels
    queue: Labels
    cpu_model: Labels
    period: Codes
    sums: Mapping[str, FloatArray]
    n_buckets: npt.NDArray[np.int64]
    keys: TaskKeys

    def level(self, level: str) -> TaskSums:
        """Return the rows of a level added up; rows without its name are left out."""
        name, inside = self._named(level)
        task, name = self.task[inside], name[inside]
        # two codes of 32 bits as one number: a group is found in one pass
        row, first = _groups(task.codes.astype(np.int64) << 32 | name.codes)
        sums = {column: added(row, values[inside], len(first)) for column, values in self.sums.items()}
        n_buckets = added(row, self.n_buckets[inside], len(first)).astype(np.int64)
        nothing = Labels(np.empty(0, object), np.full(len(first), -1, np.int32))
        return TaskSums(task[first].used(), name[first].used(), sums, n_buckets, nothing, self.keys, nothing)

    def periods(self, level: str) -> PeriodSums:
        """Return the rows by period under the names of a level; those without its name are left out."""
        name, inside = self._named(level)
        sums = {column: self.sums[column][inside] for column in PERIOD_SUMS}
        return PeriodSums(self.task[inside].used(), name[inside].used(), self.period[inside], sums)

    def mix(self) -> dict[tuple[str, str | None], dict[str, float]]:
        """Return sums by queue and CPU model, in the order of these; None: the records name no model."""
        _, inside = self._named("queue")
        # a missing model, -1, comes first
        pairs = self.queue.codes[inside].astype(np.int64) << 32 | (self.cpu_model.codes[inside] + 1)
        pair, row = np.unique(pairs, return_inverse=True)
        sums = {column: added(row, self.sums[column][inside], len(pair)) for column in MIX_SUMS}
        models = [None, *self.cpu_model.names]
        return {
            (self.queue.names[key >> 32], models[key & 0xFFFFFFFF]): {
                column: float(values[position]) for column, values in sums.items()
            }
            for position, key in enumerate(pair.tolist())
        }

    def _named(self, level: str) -> tuple[Labels, Any]:
        # a slice copies nothing
        name: Labels = getattr(self, level)
        named = name.codes >= 0
        return name, slice(None) if named.all() else named


@dataclass(frozen=True)
class Periods(Mapping[str, PeriodSums]):
    """Rows by period under the names of each level, made from ``fine`` at each access.

    ``without``: task keys left out; ``number``: new number of each key.
    """

    fine: FineSums | None
    without: Sequence[int] = ()
    number: Codes | None = None
    sites: Sites | None = None

    def __getitem__(self, level: str) -> PeriodSums:
        if self.fine is None or level not in set(self):
            raise KeyError(level)
        rows = self.fine.periods("queue" if level == "site" else level)
        if self.number is not None:
            kept = ~np.isin(rows.task.names, self.without)[rows.task.codes]
            rows = rows[kept].renumbered(self.number)
        return rows.of_sites(self.sites) if level == "site" and self.sites is not None else rows

    def __iter__(self) -> Iterator[str]:
        yield from NAMED_LEVELS if self.fine is not None else ()
        if self.fine is not None and self.sites is not None:
            yield "site"

    def __len__(self) -> int:
        return sum(1 for _ in self)


def read_sums(store: JobStore, window: Window, where: Sequence[Filter] = ()) -> WindowSums:
    """Read the visible buckets of a window under filters on their keys, added up.

    Memory: about 100 bytes per row of the result and of its fine sums, and per bucket of the largest day,
    10 MB at least. Raises :class:`TooLargeError` as soon as there are more rows than fits have memory for.
    """
    sums = _added_up(store, window, where, Adder(window)).sums()
    require_room(max(len(rows) for rows in sums.levels.values()))
    return sums


def read_queue_sums(store: JobStore, window: Window) -> TaskSums:
    """Read the visible buckets of a window, added up by task key and queue; memory as :func:`read_sums`."""
    sums = _added_up(store, window, (), Adder()).fine().level("queue")
    require_room(len(sums))
    return sums


def _added_up(store: JobStore, window: Window, where: Sequence[Filter], adder: "Adder") -> "Adder":
    per_day = Query(("day",), (Count(),), where=(Days.of_window(window), *where), over=BUCKETS)
    n_buckets = {row["day"]: row["n_jobs"] for row in store.aggregate(per_day).table.to_pylist()}
    for piece in spans(sorted(n_buckets), n_buckets, most=_ADDED_TOGETHER):
        of_days = Days("day", piece[0], piece[-1])
        adder.add(store.read(BUCKETS, [of_days, *where], [*_KEYS, *SUMS]))
        require_room(adder.rows, FINE_ROW_B)
    return adder


class Adder:
    """Adds buckets up. What is added first must not be of later days than what follows.

    ``window``: to be cut into periods; None: the sums have none.
    """

    def __init__(self, window: Window | None = None) -> None:
        days = 1 if window is None else (window.end - window.start).days
        self._start = 0 if window is None else (window.start.date() - date(1970, 1, 1)).days
        self._days, self._n_periods = days, n_periods(days)
        self._texts = {key: _Texts() for key in _KEYS[1:]}
        self._keys, self._pairs = _Numbers(), _Numbers()
        self._rows = _Rows()
        self._n_jobs: Counter[int] = Counter()

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add the buckets of some days, in any order; all of a day at once."""
        parts = [self._columns(batch) for batch in batches if batch.num_rows]
        if not parts:
            return
        # the order of rows decides the last digits of sums: sorted, an engine cannot be told from another
        columns = self._sorted(parts)
        task, kind, core_class = (columns[column].astype(np.int64) + 1 for column in _PACKED)
        # 31 bits for the type, 2 for one core, several or unknown.
        key = self._keys.of((task << 31 | kind) << 2 | core_class)
        for number, jobs in enumerate(np.bincount(kind, columns["n_jobs"])):
            self._n_jobs[number - 1] += int(jobs)
        # + 1: a missing name, -1, becomes 0 and takes no bit of another part
        queue, model = (columns[column].astype(np.int64) + 1 for column in NAMED_LEVELS)
        period = (columns["day"] - self._start) * self._n_periods // self._days if self._n_periods > 1 else 0
        place = self._pairs.of(queue << 32 | model).astype(np.int64) * MOST_PERIODS + period
        self._rows.add(key.astype(np.int64) << 32 | place, columns)

    def _columns(self, batch: pa.RecordBatch) -> dict[str, npt.NDArray[Any]]:
        columns = {"day": np.asarray(batch.column("day").cast(pa.int32()))}
        columns |= {column: texts.codes(batch.column(column)) for column, texts in self._texts.items()}
        for column in SUMS:
            columns[column] = np.asarray(pc.fill_null(pc.cast(batch.column(column), pa.float64()), 0.0))
        return columns

    def _sorted(self, parts: Sequence[dict[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
        # popped: each column is held once
        names = (*_KEYS, *SUMS)
        columns = {column: np.concatenate([part.pop(column) for part in parts]) for column in names}
        order = self._order(columns)
        return {column: columns.pop(column)[order] for column in names}

    def _order(self, columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        # missing keys first
        day = columns["day"]
        ranks = [day - day.min(), *(texts.ranks()[columns[key]] + 1 for key, texts in self._texts.items())]
        sizes = [int(rank.max()) + 1 for rank in ranks]
        # one number for all keys is sorted in one pass, as long as it fits 63 bits
        if prod(sizes) > _LARGEST_CODE:
            return np.lexsort(ranks[::-1])
        combined = np.zeros(len(day), np.int64)
        for rank, size in zip(ranks, sizes, strict=True):
            combined = combined * size + rank
        return np.argsort(combined, kind="stable")

    @property
    def rows(self) -> int:
        """Rows by task key, queue, CPU model and period."""
        return len(self._rows)

    def sums(self) -> WindowSums:
        """Return the sums."""
        fine = self.fine()
        kind = self._texts["processing_type"].listed
        return WindowSums(
            {level: fine.level(level) for level in NAMED_LEVELS},
            int(fine.n_buckets.sum()),
            {kind[number] or "": jobs for number, jobs in sorted(self._n_jobs.items()) if jobs},
            fine,
            fine.mix(),
            Periods(fine if self._n_periods > 1 else None),
        )

    def fine(self) -> FineSums:
        """Return the sums before they are added up for a level."""
        task, kind, core_class = (self._texts[key].listed for key in _PACKED)
        # Parts were packed as number + 1; the missing one is -1 again and so the last of each list.
        keys, number = TaskKeys.of(
            (task[(key >> 33) - 1], core_class[(key & 3) - 1], kind[(key >> 2 & 0x7FFFFFFF) - 1], None)
            for key in self._keys.keys.tolist()
        )
        rows = self._rows.keys
        place = rows & 0xFFFFFFFF
        pair = self._pairs.keys[place // MOST_PERIODS]
        queue, model = (
            _labels(self._texts[level].listed[:-1], code - 1)
            for level, code in zip(NAMED_LEVELS, (pair >> 32, pair & 0xFFFFFFFF), strict=True)
        )
        return FineSums(
            Labels(np.arange(len(keys)), number[rows >> 32]),
            queue,
            model,
            (place % MOST_PERIODS).astype(np.int32),
            self._rows.sums,
            self._rows.n_buckets,
            keys,
        )


class _Texts:
    """Numbers of texts in order of first occurrence; -1 for null and for the empty text."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._ranks: Codes = np.empty(0, np.int32)

    @property
    def listed(self) -> list[str | None]:
        """The text of each number, at the end that of -1."""
        return [*self._number, None]

    def codes(self, column: pa.Array) -> Codes:
        """Return the number of each text, new ones in order of appearance; -1 for null or empty."""
        encoded = column.dictionary_encode()
        number_of = self._number
        numbers = [
            number_of.setdefault(text, len(number_of)) if text else -1
            for text in encoded.dictionary.to_pylist()
        ]
        # null indices point to the last one
        of_code: Codes = np.array([*numbers, -1], np.int32)
        found: Codes = of_code[np.asarray(encoded.indices.fill_null(len(numbers)))]
        return found

    def ranks(self) -> Codes:
        """The place of each number among the sorted texts, at the end that of -1, which is -1."""
        if len(self._ranks) != len(self._number) + 1:
            texts = list(self._number)
            self._ranks = np.full(len(texts) + 1, -1, np.int32)
            self._ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        return self._ranks


class _Numbers:
    """Numbers of keys in order of first occurrence."""

    def __init__(self) -> None:
        self._sorted = np.empty(0, np.int64)
        self._number = np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self._sorted)

    @property
    def keys(self) -> npt.NDArray[np.int64]:
        """The key of each number."""
        keys = np.empty(len(self), np.int64)
        keys[self._number] = self._sorted
        return keys

    def of(self, keys: npt.NDArray[np.int64]) -> Codes:
        """The number of each key; new keys get one."""
        # sorted keys beside their numbers need 12 bytes each, far less than a dict of integers
        position = np.searchsorted(self._sorted, keys)
        unknown = np.ones(len(keys), np.bool_)
        inside = position < len(self)
        unknown[inside] = self._sorted[position[inside]] != keys[inside]
        if unknown.any():
            fresh, first = np.unique(keys[unknown], return_index=True)
            number = np.empty(len(fresh), np.int32)
            # unique sorts by key; numbers follow the first occurrence
            number[np.argsort(first)] = np.arange(len(self), len(self) + len(fresh))
            before = np.searchsorted(self._sorted, fresh)
            self._number = np.insert(self._number, before, number)
            self._sorted = np.insert(self._sorted, before, fresh)
            position = np.searchsorted(self._sorted, keys)
        return self._number[position]


class _Rows:
    """Sums by key, in order of first occurrence; its length is that of its rows."""

    def __init__(self) -> None:
        self._numbers = _Numbers()
        self.sums = {column: np.empty(0) for column in SUMS}
        self.n_buckets = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def keys(self) -> npt.NDArray[np.int64]:
        """The key of each row."""
        return self._numbers.keys

    def add(self, keys: npt.NDArray[np.int64], columns: Mapping[str, FloatArray]) -> None:
        """Add rows in their order."""
        row = self._numbers.of(keys)
        more = len(self) - len(self.n_buckets)
        for column, total in self.sums.items():
            grown = np.append(total, np.zeros(more))
            # in the order of the rows; bincount would begin again at 0 and add the earlier sum last
            np.add.at(grown, row, columns[column])
            self.sums[column] = grown
        self.n_buckets = np.append(self.n_buckets, np.zeros(more, np.int64))
        self.n_buckets += np.bincount(row, minlength=len(self))


def _groups(keys: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the group of each key, in order of first occurrence, and where each group first occurs."""
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return number[group], first[order]


def added(row: npt.NDArray[np.int64], values: npt.NDArray[Any], n_rows: int) -> FloatArray:
    """Return the sums of values by their row, in the order of the values."""
    return np.bincount(row, values, n_rows).astype(np.float64)


def _labels(texts: Sequence[str | None], codes: npt.NDArray[np.int64]) -> Labels:
    order = sorted(range(len(texts)), key=texts.__getitem__)  # type: ignore[arg-type]
    position = np.full(len(texts) + 1, -1, np.int32)  # the last place is that of missing texts, -1
    position[order] = np.arange(len(texts))
    names = np.empty(len(texts), object)
    names[:] = [texts[number] for number in order]
    return Labels(names, position[codes])


def with_sites(sums: WindowSums, sites: Sites) -> WindowSums:
    """Return the sums with those of sites beside."""
    queues, models = (sums.levels[level] for level in NAMED_LEVELS)
    levels = {"queue": queues, "site": _of_sites(queues, sites), "cpu_model": models}
    return replace(sums, levels=levels, periods=replace(sums.periods, sites=sites))


def _of_sites(rows: TaskSums, sites: Sites) -> TaskSums:
    names, site = site_labels(rows.name, sites)
    if len(names) == len(rows.name.names):
        # each site has one queue, whose sums are shared
        return replace(rows, name=Labels(names, site))
    # in the order of their first queue, so that a site of one queue has the sums of that queue
    row, first = _groups(rows.task.codes.astype(np.int64) << 32 | site)
    # a site's jobs of a task are cut off where those of one of its queues are
    cut = np.full(len(first), -1, np.int32)
    np.maximum.at(cut, row, rows.cut.codes)
    return TaskSums(
        rows.task[first],
        Labels(names, site[first]),
        {column: added(row, values, len(first)) for column, values in rows.sums.items()},
        added(row, rows.n_buckets, len(first)).astype(np.int64),
        rows.mixed[first],
        rows.keys,
        Labels(rows.cut.names, cut),
    )


def joined(first: TaskSums, second: TaskSums) -> TaskSums:
    """The rows of two sums, which share none but their keys, one after the other."""
    return TaskSums(
        _joined(first.task, second.task),
        _joined(first.name, second.name),
        {column: np.append(values, second.sums[column]) for column, values in first.sums.items()},
        np.append(first.n_buckets, second.n_buckets),
        _joined(first.mixed, second.mixed),
        first.keys,
        _joined(first.cut, second.cut),
    )


def renumbered(rows: TaskSums, keys: TaskKeys, number: Codes) -> TaskSums:
    """The rows under another table of keys; ``number``: in it, of each key of the present one."""
    return replace(rows, task=Labels(number[rows.task.names], rows.task.codes), keys=keys)


def _joined(first: Labels, second: Labels) -> Labels:
    names = sorted({*first.names, *second.names})
    number = {name: code for code, name in enumerate(names)}
    codes = []
    for part in (first, second):
        of_code = np.array([*(number[name] for name in part.names), -1], np.int32)
        codes.append(of_code[part.codes])
    listed = np.empty(len(names), first.names.dtype)
    listed[:] = names
    return Labels(listed, np.concatenate(codes)).used()
