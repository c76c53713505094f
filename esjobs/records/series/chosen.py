"""Choice of the rows of a job that count, when several loads brought series of it.

A job belongs to the end that its newest load gives it, the latest one there. Of rows of the same metric,
scope and unit the newest counts; rows of other loads count as far as they lie within the time of the newest
load's, or overlap it and end before. So a job that was read while it ran is found once, at its end, and a job
id that a scheduler uses again does not mix two jobs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.query import Count, Filter, In, Query
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.schema.jobs import LOADS
from esjobs.schema.series import SERIES
from esjobs.store.base import JobStore

KEYS = ("source", "job_id", "metric", "scope", "unit")
"""Key columns of the rows of a load."""

INDEX = (*KEYS, "load_id", "loaded_at", "start_time", "end_time", "day", "slot")
READ = (*INDEX, "step_s", "n_samples", "packed")

# Ids of jobs in one question.
_IDS = 10_000

SERIES_MOMENT = pa.timestamp("us", tz="UTC")

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """The jobs of some days, or of one day those of some slots."""

    where: tuple[Filter, ...]
    first: np.datetime64
    last: np.datetime64
    slots: range

    def holds(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows in the part."""
        days = rows.column("day").to_numpy().astype("datetime64[D]")
        slots = rows.column("slot").to_numpy()
        inside: npt.NDArray[np.bool_] = (
            (days >= self.first)
            & (days <= self.last)
            & (slots >= self.slots.start)
            & (slots < self.slots.stop)
        )
        return inside


def loads_of(store: JobStore) -> pa.Table:
    """Return the days on which jobs of each load ended, with ``loaded_at``; groups and counts only."""
    by_day = store.aggregate(Query(("load_id", "day"), (Count("n_rows"),), over=SERIES)).table
    by_day = by_day.set_column(0, "load_id", by_day.column("load_id").cast(pa.string()))
    ids = by_day.column("load_id").unique().to_pylist()
    listed = read_table(store, LOADS, [In("load_id", tuple(ids))] if ids else [], ["load_id", "loaded_at"])
    made = dict(zip(*(column.to_pylist() for column in listed.columns), strict=True))
    for load_id in ids:
        if load_id not in made:
            # rows that no ingest step wrote
            (row,) = store.read(SERIES, [In("load_id", (load_id,))], ["loaded_at"], limit=1)
            made[load_id] = row.column("loaded_at")[0].as_py()
    moments = [made[load_id] for load_id in by_day.column("load_id").to_pylist()]
    return by_day.append_column("loaded_at", pa.array(moments, SERIES_MOMENT))


def chosen(
    store: JobStore, part: Part, window: Window | None, where: Sequence[Filter], loads: pa.Table
) -> pa.Table:
    """Return the rows (``READ``) of the jobs of a part and window, each key once, by :func:`loads_of`."""
    rows = read_table(store, SERIES, [*part.where, *where], READ)
    if not rows.num_rows:
        return rows
    several = len(loads.column("load_id").unique()) > 1
    if several:
        others = _others(store, part, rows, where, loads)
        if others.num_rows:
            rows = pa.concat_tables([rows, others])
    rows = rows.combine_chunks()
    job = job_codes(rows)
    if several:
        rows, job = _of_the_newest(rows, job)
    ends = _ends(rows, job)
    inside = part.holds(rows)
    # the row with the latest end says where the job belongs
    here = np.zeros(len(ends), bool)
    moments = micros(rows.column("end_time"))
    latest = moments == ends[job]
    here[job[latest & inside]] = True
    if window is not None:
        start, end = (
            np.datetime64(moment.replace(tzinfo=None), "us").astype(np.int64)
            for moment in (window.start, window.end)
        )
        here &= (ends >= start) & (ends < end)
    kept = here[job]
    return rows if kept.all() else rows.filter(pa.array(kept))


def job_codes(rows: pa.Table) -> Codes:
    """A number per job, from 0 on, the same for rows of the same job."""
    sources, ids = codes(rows.column("source")), codes(rows.column("job_id"))
    return np.unique(sources * (ids.max() + 1) + ids, return_inverse=True)[1]


def codes(column: pa.ChunkedArray) -> Codes:
    """A number per value of a column, from 0 on."""
    encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    numbers: Codes = encoded.dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def micros(column: pa.ChunkedArray) -> Codes:
    """Times as microseconds since 1970."""
    numbers: Codes = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy()
    return numbers


def _ends(rows: pa.Table, job: Codes) -> Codes:
    ends = np.full(int(job.max()) + 1 if len(job) else 0, np.iinfo(np.int64).min)
    np.maximum.at(ends, job, micros(rows.column("end_time")))
    return ends


def _others(
    store: JobStore, part: Part, rows: pa.Table, where: Sequence[Filter], loads: pa.Table
) -> pa.Table:
    days = loads.column("day").to_numpy().astype("datetime64[D]")
    names = np.array(loads.column("load_id").to_pylist(), object)
    made = micros(loads.column("loaded_at"))
    begun = np.datetime64(pc.min(rows.column("start_time")).as_py().date())
    own = np.isin(names, rows.column("load_id").unique().to_pylist())
    # of a newer load any row may tell of another end; of others those of the same time may count
    relevant = (made >= made[own].min()) | ((days >= begun) & (days <= part.last))
    outside = (days < part.first) | (days > part.last)
    requested = sorted(set(names[relevant]) & set(names[outside]))
    if not requested:
        return rows.slice(0, 0)
    found = []
    jobs = rows.column("job_id").unique().to_pylist()
    for ids in (tuple(jobs[start : start + _IDS]) for start in range(0, len(jobs), _IDS)):
        same_jobs: list[Filter] = [In("load_id", tuple(requested)), In("job_id", ids), *where]
        index = read_table(store, SERIES, same_jobs, INDEX)
        outside = index.filter(pa.array(~part.holds(index)))
        if not outside.num_rows:
            continue
        whose = tuple(outside.column("job_id").unique().to_pylist())
        their = read_table(
            store, SERIES, [In("load_id", tuple(requested)), In("job_id", whose), *where], READ
        )
        found.append(their.filter(pa.array(~part.holds(their))))
    return pa.concat_tables(found) if found else rows.slice(0, 0)


def _of_the_newest(rows: pa.Table, job: Codes) -> tuple[pa.Table, Codes]:
    names = rows.column("load_id").combine_chunks().dictionary_encode()
    by_name = pc.rank(names.dictionary, tiebreaker="dense").to_numpy().astype(np.int64)
    order = by_name[names.indices.to_numpy()]
    age = micros(rows.column("loaded_at"))
    # loads of the same moment: by their name, so that every engine says the same
    ranking = np.lexsort((order, age))
    rank = np.empty(len(ranking), np.int64)
    rank[ranking] = np.cumsum(np.r_[0, (np.diff(age[ranking]) != 0) | (np.diff(order[ranking]) != 0)])
    newest = np.zeros(int(job.max()) + 1, np.int64)
    np.maximum.at(newest, job, rank)
    of_it = rank == newest[job]
    if of_it.all():
        # no job has rows of two loads, as long as none was read again or while it ran
        return rows, job
    start, end = micros(rows.column("start_time")), micros(rows.column("end_time"))
    first = np.full(len(newest), np.iinfo(np.int64).max)
    np.minimum.at(first, job[of_it], start[of_it])
    last = np.full(len(newest), np.iinfo(np.int64).min)
    np.maximum.at(last, job[of_it], end[of_it])
    kept = of_it | ((start <= last[job]) & (end >= first[job]) & (end <= last[job]))
    # the newest of each key
    key = job
    for name in KEYS[2:]:
        more = codes(rows.column(name))
        key = key * (more.max() + 1) + more
    by_key = np.lexsort((rank, key))
    by_key = by_key[kept[by_key]]
    final = np.r_[key[by_key][1:] != key[by_key][:-1], True][: len(by_key)]
    chosen_rows = np.sort(by_key[final])
    return rows.take(pa.array(chosen_rows)), job[chosen_rows]
