"""Documents that a cluster cannot judge, read into the embedded engine."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import schema_of
from esjobs.core.fields import CoreClassOf, DayOf, Quotient
from esjobs.core.query import Query, Select, filter_fields, metric_fields
from esjobs.core.words import INVALID
from esjobs.store.base import Aggregate
from esjobs.store.books import Outcome, books_table
from esjobs.store.elastic.asking import partitions
from esjobs.store.elastic.asking.clauses import Clause, Clauses, all_of, any_of
from esjobs.store.elastic.asking.quantiles import quantiles_in
from esjobs.store.elastic.asking.scratch import scratch_of_jobs
from esjobs.store.elastic.jobs.job_index import JobIndex
from esjobs.store.elastic.transport.scan import PointInTime

if TYPE_CHECKING:
    from esjobs.store.duck.scratch import DuckScratch


@dataclass(frozen=True)
class Unread:
    """Documents of a clause that the cluster cannot group."""

    at: PointInTime
    jobs: JobIndex
    clause: Clause


@dataclass(frozen=True)
class Documents:
    """Jobs that were read, in the embedded engine, and the count of invalid documents by day."""

    scratch: "DuckScratch"
    invalid: Counter[date]

    def groups(self, query: Query) -> Aggregate:
        """Return the answer to a question about them."""
        answer = self.scratch.aggregate(query)
        # documents that are no jobs: counted, so that the books balance with the index
        extra = books_table({Outcome(day, INVALID, "dropped"): count for day, count in self.invalid.items()})
        return Aggregate(answer.table, pa.concat_tables([answer.books, extra]))

    def numbers(self, query: Query) -> pa.Table:
        """Return keys and numbers of each job."""
        names = dict.fromkeys([*query.keys, *(metric.field for metric in quantiles_in(query))])
        select = Select(tuple(names), query.window, query.where, query.drops)
        schema = schema_of(fields.field(name) for name in names)
        return pa.Table.from_batches(self.scratch.select(select), schema)


@contextmanager
def documents_of(unread: Sequence[Unread], query: Query) -> Iterator[Documents]:
    """Read documents inside the window of a query. Memory: the jobs, beyond a limit on disk."""
    invalid: Counter[date] = Counter()
    with scratch_of_jobs() as scratch:
        for some in unread:
            base = some.jobs.inside(query.window)
            requested = all_of([*base, some.clause, *possible(some.jobs, query, some.at)])
            for page in some.jobs.documents(some.at, requested, used_fields(query)):
                scratch.add(page.jobs)
                invalid += page.invalid
        yield Documents(scratch, invalid)


def possible(jobs: JobIndex, query: Query, at: PointInTime) -> list[Clause]:
    """Return clauses that narrow a read for inexpressible filters; empty if all are expressible."""
    base = all_of(jobs.inside(query.window))
    clauses = Clauses(jobs.live, lambda path: partitions.distinct(at, path, base))
    if clauses.filters(query.where) is not None or not (narrow := clauses.narrowing(query.where)):
        return []
    # documents that no clause can judge may match: they are read in any case
    return [any_of([*jobs.unjudged(used_fields(query)), all_of(narrow)])]


def used_fields(query: Query) -> frozenset[str]:
    """Return the stored fields that a query reads."""
    made = {key.name: key.field for key in query.made}
    keys = (made.get(key, key) for key in query.keys)
    names = [*keys, *filter_fields(query.where), *(rule.keep.field for rule in query.drops)]
    return stored_fields([*names, *(name for metric in query.metrics for name in metric_fields(metric))])


def stored_fields(names: Iterable[str]) -> frozenset[str]:
    """Return the stored fields behind some fields, and the end time."""
    stored: set[str] = {"end_time"}
    for name in names:
        match fields.field(name).derived:
            case Quotient(over, under):
                stored |= {*over, *under}
            case DayOf(source) | CoreClassOf(source):
                stored.add(source)
            case _:
                stored.add(name)
    return frozenset(stored)
