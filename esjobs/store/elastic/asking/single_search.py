"""Small questions in a single search: few groups, no rules, no books.

The same search counts the documents that the index cannot judge. If there are any, or a page does not hold
all groups, the caller falls back to the long way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa

from esjobs.core.query import Query
from esjobs.store.base import Aggregate
from esjobs.store.books import books_table
from esjobs.store.elastic.asking import composite
from esjobs.store.elastic.asking.answers import answer_at_once_type
from esjobs.store.elastic.asking.clauses import Clause, Clauses, all_of, any_of
from esjobs.store.elastic.asking.days import moment_of
from esjobs.store.elastic.asking.derived_keys import span_of, with_made_keys, without_made_keys
from esjobs.store.elastic.asking.quantiles import COUNT, quantiles_in, with_count
from esjobs.store.elastic.asking.reading import used_fields
from esjobs.store.elastic.jobs.job_index import JobIndex
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import decoded_once, only_aggregations
from esjobs.store.merge import one_row, total

# Asks a body and decodes the answer, which is about all shards; None where there is no index
_Search = Callable[[Mapping[str, Any], Callable[[bytes | str], Any]], Any]


@dataclass(frozen=True)
class SingleSearch:
    """Groups without derived keys and quantiles, and the clause of their jobs.

    ``first``, ``last``: times between which the jobs ended.
    """

    table: pa.Table
    kept: Clause
    n_jobs: int
    first: datetime
    last: datetime


def single_search_answer(cluster: Cluster, jobs: JobIndex, query: Query) -> Aggregate | None:
    """Return the answer without books; None if one search is not enough."""
    if quantiles_in(query):
        return None
    found = search_groups(lambda body, decode: decoded_once(cluster, jobs.index, body, decode), jobs, query)
    if found is None:
        return None
    table = found.table.drop_columns([COUNT])
    return Aggregate(with_made_keys(table, query) if query.made else table, books_table({}))


def search_groups(search: _Search, jobs: JobIndex, query: Query) -> SingleSearch | None:
    """Return the groups of a question; None if one search is not enough."""
    plainer = without_made_keys(query)
    # rules and books need counts of their own
    if plainer is None or query.drops or query.books or jobs.several_values:
        return None
    clauses = Clauses(jobs.live, lambda _: None)
    counting = with_count(plainer)
    requested = composite.grouping(counting, jobs.live, clauses)
    where = clauses.filters(query.where)
    if requested is None or where is None:
        return None
    time = jobs.live["end_time"].paths[0]
    if "day" in plainer.keys:
        requested = replace(requested, days=time, span=span_of(query))
    base, unjudged = jobs.inside(query.window), jobs.unjudged(used_fields(query))
    aggregations: dict[str, Any] = {
        "sane": {"filter": all_of(where, unjudged), "aggs": composite.body_of(requested)},
        "unjudged": {"filter": any_of(unjudged)},
    }
    if quantiles_in(query):
        aggregations |= {"first": {"min": {"field": time}}, "last": {"max": {"field": time}}}
    # outside of the aggregations too: they would look at every job of the window
    possible = [any_of([all_of(where), *unjudged])] if where else []
    body = only_aggregations(all_of([*base, *possible]), aggregations)
    answer = search(body, msgspec.json.Decoder(answer_at_once_type(requested)).decode)
    if answer is None or answer.aggregations.unjudged.doc_count:
        return None
    table = _table_of(requested, answer.aggregations.sane)
    if table is None:
        return None
    first, last = (moment_of(end.value or 0) for end in (answer.aggregations.first, answer.aggregations.last))
    n_jobs = answer.aggregations.sane.doc_count
    return SingleSearch(one_row(table, counting), all_of([*base, *where]), n_jobs, first, last)


def _table_of(requested: composite.Grouping, sane: Any) -> pa.Table | None:
    """Return the groups of an answer; None if they are not all there, or not exact."""
    buckets = sane.groups.buckets if requested.has_keys else [sane] if sane.doc_count else []
    # a full page may have a next one
    if len(buckets) >= requested.page:
        return None
    try:
        table = composite.rows_of(requested, [composite.columns_of(requested, buckets)] if buckets else [])
    except composite.NotExactError:
        return None
    return table if total(table, COUNT) == sane.doc_count else None
