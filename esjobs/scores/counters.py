"""Hardware counters of a batch of jobs, one column per event."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.core.metrics import METRICS
from esjobs.scores.families import WANTED, event_name

_METRICS = frozenset(metric.name for metric in METRICS)


class Counters:
    """Counts by event, NaN where missing; only events that some score uses.

    An event in two spellings counts with the larger value: a second pass of the same measurement, or a part
    of it. ``present``: jobs with any event.
    """

    def __init__(self, column: pa.MapArray) -> None:
        self._n_jobs = len(column)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        # flat arrays in place of maps: a day has millions of counts, and few names
        lengths = np.diff(column.offsets.to_numpy())
        first, last = (column.offsets[0].as_py(), column.offsets[-1].as_py()) if len(column) else (0, 0)
        keys = column.keys.slice(first, last - first).dictionary_encode()
        # items below a null map belong to no job
        of_job = np.repeat(np.arange(self._n_jobs), lengths)
        inside = np.repeat(valid, lengths)
        values = np.asarray(
            column.items.slice(first, last - first).to_numpy(zero_copy_only=False), np.float64
        )
        number = {name: index for index, name in enumerate(WANTED)}
        # names are read once each, not once per job
        wanted = np.array([number.get(event_name(key), -1) for key in keys.dictionary.to_pylist()], np.int64)
        codes = wanted[keys.indices.to_numpy()] if len(keys) else np.empty(0, np.int64)
        # figures of metrics (gpu_load.mean) stand among the counters, and are none
        events = np.array(
            [key.partition(".")[0] not in _METRICS for key in keys.dictionary.to_pylist()], np.bool_
        )
        counted = inside & events[keys.indices.to_numpy()]
        self.present: Mask = np.bincount(of_job[counted], minlength=self._n_jobs) > 0
        codes = np.where(inside, codes, -1)
        # counts of one event stand together; -1, events of no score, before all of them
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(WANTED) + 1))
        self._of_event = {
            name: (of_job[part], values[part])
            for index, name in enumerate(WANTED)
            if len(part := order[bounds[index] : bounds[index + 1]])
        }
        self._columns: dict[str, Floats] = {}

    def column(self, event: str) -> Floats:
        """Return the counts of an event by job; NaN where missing."""
        if event not in self._columns:
            counts = np.full(self._n_jobs, np.nan)
            if event in self._of_event:
                np.fmax.at(counts, *self._of_event[event])
            self._columns[event] = counts
        return self._columns[event]

    def has_any(self, events: Sequence[str]) -> Mask:
        """True if a job has a count of at least one of the events: a mask, one entry per job."""
        has = np.zeros(self._n_jobs, np.bool_)
        for event in events:
            if event in self._of_event:
                has |= ~np.isnan(self.column(event))
        return has

    def first(self, events: Sequence[str], jobs: Ints) -> tuple[Floats, Ints]:
        """Return for each job the count of its first available event, and the event's index; -1: none."""
        counts = np.full(len(jobs), np.nan)
        index = np.full(len(jobs), -1, np.int64)
        for number, event in enumerate(events):
            if event in self._of_event:
                mine = self.column(event)[jobs]
                taken = (index < 0) & ~np.isnan(mine)
                counts[taken], index[taken] = mine[taken], number
        return counts, index
