"""Stored series as arrays: jobs with as many samples together, a bounded number of values at a time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.query import Count, Days, Filter, In, Query, Range, Sum
from esjobs.core.window import Window
from esjobs.records.series.assembly import assembled
from esjobs.records.series.chosen import Part, chosen, loads_of
from esjobs.records.series.packing import SLOTS, Samples
from esjobs.schema.series import SERIES
from esjobs.store.base import JobStore

MOST = 1 << 26
"""Values in memory at a time unless told otherwise: 256 MB of 32-bit floats, some copies of them beside."""

# Values of a part at most: their bytes stand in one Arrow array, which holds 2 GiB.
_MOST_AT_ONCE = 1 << 28

# Values that take as much room as what a row has beside its samples.
_ROW_VALUES = 64


@dataclass(frozen=True)
class Block:
    """Jobs with as many samples each.

    ``jobs``: source, job_id, end_time. ``start_time``: of the first sample (datetime64[us], UTC); ``step_s``:
    distance of the samples. ``values``: per metric a float32 array (jobs, units, samples), NaN where missing;
    no units where no job has the metric. ``units``, ``scopes``: per metric and job, the finest scope.
    ``resampled``: jobs with series of several distances, of which the nearest samples were taken.
    """

    jobs: pa.Table
    start_time: npt.NDArray[np.datetime64]
    step_s: npt.NDArray[np.float64]
    values: Mapping[str, Samples]
    units: Mapping[str, tuple[tuple[str, ...], ...]]
    scopes: Mapping[str, tuple[str, ...]]
    resampled: npt.NDArray[np.bool_]

    @property
    def n_samples(self) -> int:
        """Samples of each job."""
        return next((array.shape[2] for array in self.values.values()), 0)


def blocks(
    store: JobStore,
    window: Window | None,
    metrics: Sequence[str],
    *,
    where: Sequence[Filter] = (),
    most: int = MOST,
) -> Iterator[Block]:
    """Yield the series of the jobs that ended in a window (None: all), about ``most`` values per block.

    ``metrics``: a job that has none of them is omitted. ``where``: on the columns source and job_id. Of loads
    with the same series the newest counts (:mod:`esjobs.records.series.chosen`). Memory: about ``most``
    values, or one job.
    """
    metrics = tuple(dict.fromkeys(metrics))
    most = min(most, _MOST_AT_ONCE)
    requested = [In("metric", metrics), *where]
    loads = loads_of(store)
    for part in parts(store, window, requested, most):
        rows = chosen(store, part, window, requested, loads)
        for piece in assembled(rows, metrics, most):
            yield Block(*piece)


def parts(store: JobStore, window: Window | None, where: Sequence[Filter], most: int) -> Iterator[Part]:
    """The days of a window in parts of about ``most`` values each: several days, or slots of one."""
    sums = (Sum("n_samples", "values"), Count("n_rows"))
    by_day = store.aggregate(Query(("day",), sums, window, tuple(where), over=SERIES)).table
    together: list[date] = []
    room = most
    for row in sorted(by_day.to_pylist(), key=lambda row: row["day"]):
        size = int(row["values"] or 0) + _ROW_VALUES * row["n_rows"]
        if together and size > room:
            yield _part(together)
            together, room = [], most
        if size <= most:
            together.append(row["day"])
            room -= size
            continue
        # a day too large for one part: the slots of its jobs, a hash, are filled evenly
        width = max(1, int(SLOTS / math.ceil(size / most)))
        for start in range(0, SLOTS, width):
            yield _part([row["day"]], range(start, min(start + width, SLOTS)))
    if together:
        yield _part(together)


def _part(days: Sequence[date], slots: range | None = None) -> Part:
    first, last = min(days), max(days)
    where: list[Filter] = [Days("day", first, last)]
    if slots is not None:
        where.append(Range("slot", ge=slots.start, lt=slots.stop))
    return Part(tuple(where), np.datetime64(first), np.datetime64(last), slots or range(SLOTS))
