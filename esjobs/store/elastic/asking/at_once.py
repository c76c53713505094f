"""A question in one search: of few groups, about jobs that the index can judge, without rules.

The long way takes a snapshot, counts what can be judged, and groups the rest in parts: what it costs besides
the groups themselves is most of a small answer. Here the same search counts what cannot be judged; where that
is any, or where a page does not have all groups, the long way is gone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.query import Query
from esjobs.store.base import Aggregate
from esjobs.store.books import books_table
from esjobs.store.elastic.asking import composite
from esjobs.store.elastic.asking.answers import answer_at_once_type
from esjobs.store.elastic.asking.clauses import Clause, Clauses, all_of, any_of
from esjobs.store.elastic.asking.days import moment_of
from esjobs.store.elastic.asking.made_keys import span_of, with_made_keys, without_made_keys
from esjobs.store.elastic.asking.quantiles import COUNT, quantiles_in, with_count
from esjobs.store.elastic.asking.reading import used_fields
from esjobs.store.elastic.asking.sums import plan_sums
from esjobs.store.elastic.jobs.job_index import JobIndex
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import decoded_once
from esjobs.store.merge import one_row

_Search = Callable[[Mapping[str, Any], Callable[[bytes | str], Any]], Any]
"""Asks a body and decodes the answer, which is about all shards; None where there is no index."""


@dataclass(frozen=True)
class AtOnce:
    """The groups of a question without its made keys and quantiles, and the clause of their jobs.

    ``asked``: how they were asked for. ``first``, ``last``: times between which the jobs ended.
    """

    table: pa.Table
    asked: composite.Grouping
    kept: Clause
    n_jobs: int
    first: datetime
    last: datetime


def answered_at_once(cluster: Cluster, jobs: JobIndex, query: Query) -> Aggregate | None:
    """The answer without books; None where it takes more than one search, or documents."""
    if quantiles_in(query):
        return None
    found = asked_at_once(lambda body, decode: decoded_once(cluster, jobs.index, body, decode), jobs, query)
    if found is None:
        return None
    table = found.table.drop_columns([COUNT])
    return Aggregate(with_made_keys(table, query) if query.made else table, books_table({}))


def asked_at_once(search: _Search, jobs: JobIndex, query: Query) -> AtOnce | None:
    """The groups of a question; None where these take more than one search, or documents."""
    plainer = without_made_keys(query)
    if plainer is None or query.drops or query.books or jobs.several_values:
        return None
    clauses = Clauses(jobs.live, lambda _: None)
    counting = with_count(plainer)
    sums = plan_sums(counting, jobs.live, clauses)
    asked = composite.grouping(counting, jobs.live, sums) if sums is not None else None
    where = clauses.filters(query.where)
    if asked is None or where is None:
        return None
    time = jobs.live["end_time"].paths[0]
    if "day" in plainer.keys:
        asked = replace(asked, days=time, span=span_of(query))
    base, odd = jobs.inside(query.window), jobs.odd(used_fields(query))
    body: dict[str, Any] = {
        "size": 0,
        "query": all_of([*base, *([any_of([all_of(where), *odd])] if where else [])]),
        "aggs": {
            "sane": {"filter": all_of(where, odd), "aggs": composite.body_of(asked)},
            "odd": {"filter": any_of(odd)},
        },
        "track_total_hits": False,
    }
    if quantiles_in(query):
        body["aggs"] |= {"first": {"min": {"field": time}}, "last": {"max": {"field": time}}}
    answer = search(body, msgspec.json.Decoder(answer_at_once_type(asked)).decode)
    if answer is None or answer.aggregations.odd.doc_count:
        return None
    sane = answer.aggregations.sane
    buckets = sane.groups.buckets if asked.has_keys else [sane] if sane.doc_count else []
    if len(buckets) >= asked.page:
        return None
    try:
        table = composite.rows_of(asked, [composite.columns_of(asked, buckets)] if buckets else [])
    except composite.NotExactError:
        return None
    if (pc.sum(table.column(COUNT)).as_py() or 0) != sane.doc_count:
        return None
    first, last = (moment_of(end.value or 0) for end in (answer.aggregations.first, answer.aggregations.last))
    return AtOnce(one_row(table, counting), asked, all_of([*base, *where]), sane.doc_count, first, last)
