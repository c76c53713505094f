"""First jobs in some order: the index supplies the last value, and only these are read."""

from datetime import timedelta
from typing import Any

from esjobs.core.query import Select
from esjobs.store.elastic.asking.clauses import NONE, Clause
from esjobs.store.elastic.asking.days import between, moment_of
from esjobs.store.elastic.fields.live_fields import LiveField
from esjobs.store.elastic.jobs.job_index import JobIndex
from esjobs.store.elastic.transport.scan import PAGE, PointInTime

_MILLISECOND = timedelta(milliseconds=1)


def top_k(at: PointInTime, part: JobIndex, select: Select, sane: Clause) -> list[Clause]:
    """Return the clause of the first ``select.limit`` jobs of ``sane``; empty if the index cannot tell.

    Ties with the last value are included: their order is decided on the documents.
    """
    (name,), limit = select.sorted_by, select.limit
    live = part.live.get(name)
    # index.max_result_window limits "from" and "size" together
    if live is None or not _is_sortable(live) or limit is None or limit > PAGE:
        return []
    if limit == 0:
        return [NONE]
    path, descending = live.paths[0], select.order.startswith("-")
    value = _value_at(at, live, sane, limit, descending=descending)
    if value is None:
        return []
    if live.field.type == "time":
        # known to the millisecond here: what is finer is read with it
        moment = moment_of(value)
        return [between(path, moment, None) if descending else between(path, None, moment + _MILLISECOND)]
    return [{"range": {path: {"gte" if descending else "lte": value}}}]


def _is_sortable(live: LiveField) -> bool:
    return live.plain and live.field.type in ("integer", "number", "time")


def _value_at(at: PointInTime, live: LiveField, sane: Clause, place: int, *, descending: bool) -> Any:
    """Return the value of the job at a place in the order; None if fewer have one."""
    path = live.paths[0]
    how = {"order": "desc" if descending else "asc", "missing": "_last"}
    how |= {"numeric_type": "date"} if live.field.type == "time" else {"unmapped_type": "double"}
    # jobs without a value come last: they would have to be read when there are fewer than the limit with one
    query = {"bool": {"filter": [sane, {"exists": {"field": path}}]}}
    body = {
        "size": 1,
        "from": place - 1,
        "query": query,
        "sort": [{path: how}],
        "_source": False,
        "track_total_hits": False,
    }
    answer = at.search(body)
    hits = answer["hits"]["hits"] if answer else []
    return hits[0]["sort"][0] if hits else None
