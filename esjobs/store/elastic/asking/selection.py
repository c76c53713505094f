"""Selection of single jobs: the index narrows, the embedded engine decides."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import schema_of
from esjobs.core.query import Select, filter_fields
from esjobs.store.elastic.asking.clauses import Clause, Clauses, all_of, any_of
from esjobs.store.elastic.asking.limits import count_of, require_allowed
from esjobs.store.elastic.asking.partitions import distinct
from esjobs.store.elastic.asking.reading import stored_fields
from esjobs.store.elastic.asking.scratch import scratch_of_jobs
from esjobs.store.elastic.asking.top_k import top_k
from esjobs.store.elastic.jobs.job_index import JobIndex, JobSource
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime


def selected(cluster: Cluster, jobs: JobSource, select: Select) -> Iterator[pa.RecordBatch]:
    """Stream jobs as of the call; invalid documents are skipped."""
    names = select.fields or tuple(field.name for field in fields.JOB_FIELDS)
    needed = _needed(select, names)
    # documents of the window only come here: their times need no second look
    anytime = replace(select, window=None)
    is_bounded = bool(select.order) or select.limit is not None
    plain = not select.where and not select.drops and set(names) <= _STORED and not is_bounded
    schema = schema_of(fields.field(name) for name in names)
    _require_allowed(cluster, jobs, select, needed)
    stack = ExitStack()
    with stack:
        snapshots = [
            (stack.enter_context(PointInTime(cluster, part.index)), part)
            for part in jobs.parts(select.window, needed)
        ]
        # the snapshots are of the call, and are closed by the reader of the last batch
        open_until_read = stack.pop_all()

    def batches() -> Iterator[pa.RecordBatch]:
        with open_until_read, scratch_of_jobs() as scratch:
            for at, part in snapshots:
                if at.empty:
                    continue
                for documents in part.documents(at, _matching(at, part, select, needed), needed):
                    if plain:
                        columns = [documents.jobs.column(name) for name in names]
                        yield pa.RecordBatch.from_arrays(columns, schema=schema)
                        continue
                    scratch.add(documents.jobs)
                    if not is_bounded:
                        yield from scratch.select(anytime)
                        scratch.clear()
            if is_bounded:
                yield from scratch.select(anytime)

    return batches()


def _require_allowed(cluster: Cluster, jobs: JobSource, select: Select, needed: frozenset[str]) -> None:
    if jobs.most_read is not None:
        parts = jobs.parts(select.window, needed)
        sizes = (count_of(cluster, part, [_matching(None, part, select, needed)]) for part in parts)
        require_allowed(jobs, sum(sizes))


def _needed(select: Select, names: Sequence[str]) -> frozenset[str]:
    """Return the stored fields that a selection reads; an order breaks ties by identity."""
    wanted = [*names, *filter_fields(select.where), *(rule.keep.field for rule in select.drops)]
    if select.order:
        wanted += [*select.sorted_by, "source", "job_id"]
    return stored_fields(wanted)


def _matching(at: PointInTime | None, part: JobIndex, select: Select, needed: frozenset[str]) -> Clause:
    """Return the clause of possible and unjudgeable matches; without a snapshot patterns stay open."""
    inside = all_of(part.inside(select.window))
    clauses = Clauses(part.live, lambda path: None if at is None else distinct(at, path, inside))
    kept = [clauses.keep(rule) for rule in select.drops]
    narrow = [*clauses.narrowing(select.where), *(clause for clause in kept if clause is not None)]
    base = part.inside(select.window)
    exact = clauses.filters(select.where) is not None and None not in kept
    if at is not None and exact and select.order:
        # the last value is looked up among judgeable jobs; the others are read in any case
        sane = all_of([*base, *narrow], part.unjudged(needed))
        narrow += top_k(at, part, select, sane)
    return all_of([*base, any_of([*part.unjudged(needed), all_of(narrow)])] if narrow else base)


_STORED = frozenset(field.name for field in fields.JOB_FIELDS)
