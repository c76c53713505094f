"""Records of jobs with and without series."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import job_keys
from esjobs.core.errors import NoJobsError
from esjobs.core.query import Count, Days, In, Query
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.records.context import Context
from esjobs.records.jobs.resolution import fields_schema, select
from esjobs.schema.series import SERIES
from esjobs.store.base import JobStore

# Ids that a store is asked for at a time
_IDS = 5_000
_KEY = ("source", "job_id")


def with_records(store: JobStore, jobs: pa.Table, names: Sequence[str], day: date) -> tuple[pa.Table, int]:
    """Return the records of jobs, in order, and the number of jobs without one.

    Without a record only source, job_id and end_time are set. Records may end a day before or after the
    series. Cost: a query per 5,000 jobs, over three days.
    """
    window = Window.of_days(day - timedelta(days=1), day + timedelta(days=1))
    schema = fields_schema(names)
    records = pa.Table.from_batches([], schema)
    ids = jobs.column("job_id").unique().to_pylist()
    for start in range(0, len(ids), _IDS):
        chosen = [In("job_id", tuple(ids[start : start + _IDS]))]
        records = pa.concat_tables([records, select(store, names, window, where=chosen).read_all()])
    # ids repeat between sources: looked up by both
    places = pc.index_in(job_keys(jobs), value_set=job_keys(records))
    found = records.take(places)
    columns = [
        pc.coalesce(found.column(name), jobs.column(name).cast(schema.field(name).type))
        if name in ("source", "job_id", "end_time")
        else found.column(name)
        for name in names
    ]
    return pa.Table.from_arrays(columns, schema=schema), places.null_count


def noted(context: Context, report: RunReport) -> RunReport:
    """Return the account of a load, with a note on series whose jobs have no record.

    Cost: a grouped query, and a query per 5,000 jobs with series.
    """
    if not any(report.counts.get(f"{SERIES.name} {what}") for what in ("stored", "updated")):
        return report
    of_load = In("load_id", (report.run,))
    query = Query(("day", "source", "job_id"), (Count("n"),), where=(of_load,), over=SERIES)
    jobs = context.store.aggregate(query).table
    lacking = sum(
        with_records(context.store, jobs.filter(pc.equal(jobs.column("day"), day)), _KEY, day.as_py())[1]
        for day in jobs.column("day").drop_null().unique()
    )
    if not lacking:
        return report
    what = f"{lacking:,} of {jobs.num_rows:,} jobs with series have no record yet"
    note = f"{what}: load their records, with the same source and job_id, before esjobs detect"
    return replace(report, notes=(*report.notes, note))


def stored_days(store: JobStore) -> Window:
    """Return the days with jobs or series; raises :class:`NoJobsError` without any."""
    span = store.span()
    days = [] if span.first is None or span.last is None else [span.first.date(), span.last.date()]
    by_day = store.aggregate(Query(("day",), (Count("n"),), over=SERIES)).table
    days += [day for day in by_day.column("day").to_pylist() if day is not None]
    if not days:
        raise NoJobsError("no jobs and no time series are stored; load some: esjobs ingest")
    return Window.of_days(min(days), max(days))


def jobs_without_series(store: JobStore, names: Sequence[str], day: date) -> Iterator[pa.Table]:
    """Yield records of jobs that ended on a day and have no series on it or an adjacent day."""
    # a job with series on the next day is judged there
    with_series = pa.concat_arrays([_keys_with_series(store, each) for each in beside(day)])
    for batch in select(store, names, Window.of_days(day, day)):
        jobs = pa.Table.from_batches([batch])
        has_series = pc.is_in(job_keys(jobs), value_set=with_series)
        jobs = jobs.filter(pc.invert(has_series)).combine_chunks()
        if jobs.num_rows:
            yield jobs


def beside(day: date) -> list[date]:
    """Return a day with those before and after it."""
    return [day + timedelta(days=by) for by in (-1, 0, 1)]


def _keys_with_series(store: JobStore, day: date) -> pa.Array:
    keys = pa.array([], pa.string())
    for batch in store.read(SERIES, [Days("day", day, day)], ["source", "job_id"]):
        of_batch = job_keys(batch).unique()
        keys = pa.concat_arrays([keys, of_batch.filter(pc.invert(pc.is_in(of_batch, value_set=keys)))])
    return keys
