"""Reading single jobs: the index narrows, the embedded engine decides."""

from collections.abc import Iterator

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import schema_of
from esjobs.core.query import Select, filter_fields
from esjobs.store.duck.scratch import DuckScratch
from esjobs.store.elastic.asking.aggregation import stored_fields
from esjobs.store.elastic.asking.clauses import Clauses, all_of, any_of
from esjobs.store.elastic.asking.days import within
from esjobs.store.elastic.jobs.job_index import JobIndex
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime


def selected(cluster: Cluster, jobs: JobIndex, select: Select) -> Iterator[pa.RecordBatch]:
    """Stream jobs as of the moment of the call.

    The cluster finds the documents that can match; what it cannot judge of a filter is decided on what it
    hands out. Documents that are no jobs are passed over: the books of an aggregate count them.
    """
    names = select.fields or tuple(field.name for field in fields.JOB_FIELDS)
    needed = stored_fields(
        [*names, *filter_fields(select.where), *(rule.keep.field for rule in select.drops)]
    )
    clauses = Clauses(jobs.live, lambda _: None)
    kept = [clauses.keep(rule) for rule in select.drops]
    narrow = [*clauses.narrowing(select.where), *(clause for clause in kept if clause is not None)]
    base = [*jobs.visible(), *within(jobs.live["end_time"].paths[0], select.window)]
    query = all_of([*base, any_of([*jobs.odd(needed), all_of(narrow)])] if narrow else base)
    at = PointInTime(cluster, jobs.index)
    anytime = Select(select.fields, None, select.where, select.drops)
    plain = not select.where and not select.drops and set(names) <= _STORED
    schema = schema_of(fields.field(name) for name in names)

    def batches() -> Iterator[pa.RecordBatch]:
        with at:
            if at.empty:
                return
            if plain:
                for documents in jobs.documents(at, query, needed):
                    yield pa.RecordBatch.from_arrays([documents.jobs.column(n) for n in names], schema=schema)
                return
            with DuckScratch.of_jobs() as scratch:
                for documents in jobs.documents(at, query, needed):
                    scratch.add(documents.jobs)
                    yield from scratch.select(anytime)
                    scratch.clear()

    return batches()


_STORED = frozenset(field.name for field in fields.JOB_FIELDS)
