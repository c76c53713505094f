"""Buckets added up over days: one row per task key and name, texts as codes.

A window may have far more buckets than fit into memory, a fit needs only their sums. They are read a few
days at a time and added one after the other in the order of their keys: the same buckets give the same sums,
to the bit, and so the same factors.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.query import Days, Filter, In
from esjobs.core.window import Window
from esjobs.core.words import NAMED_LEVELS
from esjobs.publish.publication import read_table
from esjobs.records.jobs.day_spans import spans
from esjobs.records.names.sites import Sites
from esjobs.records.tasks.keys import TaskKeys
from esjobs.records.tasks.memory import require_room
from esjobs.records.tasks.period_sums import MOST_PERIODS, PERIOD_SUMS, PeriodSums, n_periods, site_labels
from esjobs.schema.jobs import BUCKETS, DAYS
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

    ``n_jobs``: binned jobs by processing type ("" for none). ``mix``: sums by ``MIX_SUMS`` per queue and CPU
    model, None where the records name none. ``periods``: by level; empty for a single day.
    """

    levels: Mapping[str, TaskSums]
    n_buckets: int
    n_jobs: Mapping[str, int]
    mix: Mapping[tuple[str, str | None], Mapping[str, float]] = field(default_factory=dict)
    periods: Mapping[str, PeriodSums] = field(default_factory=dict)


def read_sums(store: JobStore, window: Window, where: Sequence[Filter] = ()) -> WindowSums:
    """Read the visible buckets of a window under filters on their keys, added up.

    Memory: about 100 bytes per row of the result, 250 per bucket of the largest day, 25 MB at least. Raises
    :class:`TooLargeError` as soon as there are more rows than the fits have memory for.
    """
    inside = [Days.of_window(window), In("kind", ("binned",))]
    booked = read_table(store, DAYS, inside, ["day", "n_jobs"]).to_pylist()
    n_jobs: Counter[date] = Counter()
    for row in booked:
        n_jobs[row["day"]] += row["n_jobs"]
    adder = Adder(window)
    waiting: list[pa.RecordBatch] = []
    # A bucket has a job or more: what bounds the jobs of a piece bounds its buckets.
    for piece in spans(sorted(n_jobs), n_jobs):
        of_days = Days("day", piece[0], piece[-1])
        waiting += store.read(BUCKETS, [of_days, *where], [*_KEYS, *SUMS])
        if sum(batch.num_rows for batch in waiting) >= _ADDED_TOGETHER:
            adder.add(waiting)
            waiting = []
            require_room(adder.rows)
    adder.add(waiting)
    require_room(adder.rows)
    return adder.sums()


class Adder:
    """Adds buckets up. What is added first must not be of later days than what follows.

    ``window``: to be cut into periods; None: the sums have none.
    """

    def __init__(self, window: Window | None = None) -> None:
        days = 1 if window is None else (window.end - window.start).days
        self._start = 0 if window is None else (window.start.date() - date(1970, 1, 1)).days
        self._days, self._n_periods = days, n_periods(days)
        self._periods = {level: _Level(PERIOD_SUMS) for level in NAMED_LEVELS if self._n_periods > 1}
        self._texts = {key: _Texts() for key in _KEYS[1:]}
        self._keys = _Numbers()
        self._levels = {level: _Level() for level in NAMED_LEVELS}
        self._mix = _Level(MIX_SUMS)
        self._n_jobs: Counter[int] = Counter()
        self._n_buckets = 0

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add the buckets of some days, in any order; all of a day at once."""
        parts: dict[str, list[npt.NDArray[Any]]] = {column: [] for column in (*_KEYS, *SUMS)}
        for batch in batches:
            if not batch.num_rows:
                continue
            parts["day"].append(np.asarray(batch.column("day").cast(pa.int32())))
            for column, texts in self._texts.items():
                parts[column].append(texts.codes(batch.column(column)))
            for column in SUMS:
                values = pc.fill_null(pc.cast(batch.column(column), pa.float64()), 0.0)
                parts[column].append(np.asarray(values))
        if not parts["day"]:
            return
        columns = {column: np.concatenate(parts.pop(column)) for column in (*_KEYS, *SUMS)}
        order = self._order(columns)
        codes = {column: columns.pop(column)[order] for column in _KEYS}
        task, kind, core_class = (codes[column].astype(np.int64) + 1 for column in _PACKED)
        # 31 bits for the type, 2 for one core, several or unknown.
        key = self._keys.of((task << 31 | kind) << 2 | core_class)
        for column in SUMS:
            columns[column] = columns[column][order]
        self._n_buckets += len(order)
        for number, jobs in enumerate(np.bincount(kind, columns["n_jobs"])):
            self._n_jobs[number - 1] += int(jobs)
        for level, rows in self._levels.items():
            rows.add(key, codes[level], columns)
        period = (codes["day"] - self._start) * self._n_periods // self._days
        for level, rows in self._periods.items():
            rows.add(key, np.where(codes[level] < 0, -1, codes[level] * MOST_PERIODS + period), columns)
        self._mix.add(codes["queue"] + 1, codes["cpu_model"] + 1, columns)

    def _order(self, columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        # missing keys first
        day = columns["day"]
        ranks = [day - day.min(), *(texts.ranks()[columns[key]] + 1 for key, texts in self._texts.items())]
        sizes = [int(rank.max()) + 1 for rank in ranks]
        if prod(sizes) > _LARGEST_CODE:
            return np.lexsort(ranks[::-1])
        combined = np.zeros(len(day), np.int64)
        for rank, size in zip(ranks, sizes, strict=True):
            combined = combined * size + rank
        return np.argsort(combined, kind="stable")

    @property
    def rows(self) -> int:
        """Rows of the level that has most."""
        return max(len(rows) for rows in self._levels.values())

    def sums(self) -> WindowSums:
        """Return the sums."""
        task, kind, core_class = (self._texts[key].listed for key in _PACKED)
        # Parts were packed as number + 1; the missing one is -1 again and so the last of each list.
        keys, number = TaskKeys.of(
            (task[(key >> 33) - 1], core_class[(key & 3) - 1], kind[(key >> 2 & 0x7FFFFFFF) - 1], None)
            for key in self._keys.keys.tolist()
        )
        return WindowSums(
            {
                level: rows.sums(keys, number, self._texts[level].listed[:-1])
                for level, rows in self._levels.items()
            },
            self._n_buckets,
            {kind[number] or "": jobs for number, jobs in sorted(self._n_jobs.items()) if jobs},
            self._mix.of_pairs(self._texts["queue"].listed, self._texts["cpu_model"].listed),
            {
                level: rows.of_periods(number, self._texts[level].listed[:-1])
                for level, rows in self._periods.items()
            },
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
        encoded = column.dictionary_encode()
        number_of = self._number
        numbers = [
            number_of.setdefault(text, len(number_of)) if text else -1
            for text in encoded.dictionary.to_pylist()
        ]
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
        position = np.searchsorted(self._sorted, keys)
        unknown = np.ones(len(keys), np.bool_)
        inside = position < len(self)
        unknown[inside] = self._sorted[position[inside]] != keys[inside]
        if unknown.any():
            fresh, first = np.unique(keys[unknown], return_index=True)
            number = np.empty(len(fresh), np.int32)
            number[np.argsort(first)] = np.arange(len(self), len(self) + len(fresh))
            before = np.searchsorted(self._sorted, fresh)
            self._number = np.insert(self._number, before, number)
            self._sorted = np.insert(self._sorted, before, fresh)
            position = np.searchsorted(self._sorted, keys)
        return self._number[position]


class _Level:
    """The sums of one level; its length is that of its rows."""

    def __init__(self, columns: Sequence[str] = SUMS) -> None:
        self._rows = _Numbers()
        self._sums = {column: np.empty(0) for column in columns}
        self._n_buckets = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, key: Codes, name: Codes, columns: Mapping[str, FloatArray]) -> None:
        """Add rows in their order; those without a name are left out."""
        named = name >= 0
        inside = slice(None) if named.all() else named
        row = self._rows.of(key[inside].astype(np.int64) << 32 | name[inside])
        more = len(self._rows) - len(self._n_buckets)
        for column, total in self._sums.items():
            grown = np.append(total, np.zeros(more))
            np.add.at(grown, row, columns[column][inside])
            self._sums[column] = grown
        self._n_buckets = np.append(self._n_buckets, np.zeros(more, np.int64))
        self._n_buckets += np.bincount(row, minlength=len(self._rows))

    def of_pairs(
        self, first: Sequence[str | None], second: Sequence[str | None]
    ) -> dict[tuple[str, str | None], dict[str, float]]:
        """Return sums by two texts; keys and names are numbers of the texts from 1, 0 for missing.

        In the order of the texts; pairs without the first text are omitted.
        """
        keys = self._rows.keys
        found = {
            (text, second[(key & 0xFFFFFFFF) - 1]): {
                column: float(values[position]) for column, values in self._sums.items()
            }
            for position, key in enumerate(keys.tolist())
            if (text := first[(key >> 32) - 1]) is not None
        }
        return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or "")))

    def sums(self, keys: TaskKeys, number: Codes, names: Sequence[str | None]) -> TaskSums:
        """The rows; ``number`` of each key in the order in which they first came."""
        rows = self._rows.keys
        task = Labels(np.arange(len(keys)), number[rows >> 32]).used()
        name = _labels(names, rows & 0xFFFFFFFF)
        nothing = Labels(np.empty(0, object), np.full(len(rows), -1, np.int32))
        return TaskSums(task, name, self._sums, self._n_buckets, nothing, keys, nothing)

    def of_periods(self, number: Codes, names: Sequence[str | None]) -> PeriodSums:
        """Return the rows of names that carry their period in their last digit."""
        rows = self._rows.keys
        task = number[rows >> 32]
        used, codes = np.unique(task, return_inverse=True)
        name = rows & 0xFFFFFFFF
        return PeriodSums(
            Labels(used.astype(np.int64), codes.astype(np.int32)),
            _labels(names, name // MOST_PERIODS),
            (name % MOST_PERIODS).astype(np.int32),
            self._sums,
        )


def _labels(texts: Sequence[str | None], codes: npt.NDArray[np.int64]) -> Labels:
    order = sorted(range(len(texts)), key=texts.__getitem__)  # type: ignore[arg-type]
    position = np.empty(len(texts), np.int32)
    position[order] = np.arange(len(texts))
    names = np.empty(len(texts), object)
    names[:] = [texts[number] for number in order]
    return Labels(names, position[codes]).used()


def with_sites(sums: WindowSums, sites: Sites) -> WindowSums:
    """Return the sums with those of sites beside."""
    queues, models = (sums.levels[level] for level in NAMED_LEVELS)
    levels = {"queue": queues, "site": _of_sites(queues, sites), "cpu_model": models}
    periods = dict(sums.periods)
    if "queue" in periods:
        periods["site"] = periods["queue"].of_sites(sites)
    return replace(sums, levels=levels, periods=periods)


def _of_sites(rows: TaskSums, sites: Sites) -> TaskSums:
    names, site = site_labels(rows.name, sites)
    if len(names) == len(rows.name.names):
        # each site has one queue, whose sums are shared
        return replace(rows, name=Labels(names, site))
    key = rows.task.codes.astype(np.int64) << 32 | site
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    # in the order of their first queue, so that a site of one queue has the sums of that queue
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    row, first = number[group], first[order]
    # a site's jobs of a task are cut off where those of one of its queues are
    cut = np.full(len(first), -1, np.int32)
    np.maximum.at(cut, row, rows.cut.codes)
    sums = {
        column: np.bincount(row, values, len(first)).astype(np.float64)
        for column, values in rows.sums.items()
    }
    return TaskSums(
        rows.task[first],
        Labels(names, site[first]),
        sums,
        np.bincount(row, rows.n_buckets, len(first)).astype(np.int64),
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
