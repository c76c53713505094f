"""Jobs cut into parts of few documents each, that are asked for on their own.

A composite aggregation collects all documents of its query again for every page; in parts it collects each
document once. Where an answer is as long as the jobs are many, a key whose text is long and whose values are
few is taken out of it: the jobs of one value are asked for on their own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.store.elastic.asking.clauses import EVERY, Clause, all_of, negated
from esjobs.store.elastic.fields.live_fields import LiveField
from esjobs.store.elastic.transport.cluster import RefusedError
from esjobs.store.elastic.transport.scan import PointInTime

if TYPE_CHECKING:
    from esjobs.store.elastic.asking.composite import Grouping

SLICE = 10_000
"""Documents of a range of keys, about."""
PAGE = 20_000
"""Groups of a page at most; below the least default of ``search.max_buckets``, 65 535."""
LEAST_CELL = 2_500
"""Jobs of one value of a key from which on they are asked for on their own."""
LONG_KEY = 8
"""Characters of a key, on average, from which on it pays to ask without it."""
_LEAST_PAGE = 100
_TOO_MANY = "too_many_buckets_exception"
_MOST_VALUES = 10_000


@dataclass(frozen=True)
class Part:
    """Jobs that are asked for on their own: those of a clause that lie inside the cut.

    ``fixed``: values that all of them have, by the name of the column in answers.
    """

    of: Clause
    cut: Clause
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def clause(self) -> Clause:
        """The clause of the jobs."""
        return all_of([self.of, self.cut])


def cells(
    at: PointInTime, asked: "Grouping", clause: Clause, n_jobs: int, sample: pa.Table
) -> Iterator[Part]:
    """The jobs of a clause by the values of the key that takes the most of an answer, if one is worth it.

    ``sample``: some groups of the answer. Rare values stay together.
    """
    name = _longest(asked, sample, n_jobs)
    if name is None:
        yield from ranges(at, asked, clause, n_jobs)
        return
    path = asked.columns[name].path
    counts = islice(_counts(at, path, clause, PAGE), n_jobs // LEAST_CELL)
    often = {value: count for value, count in counts if count >= LEAST_CELL}
    for value, count in often.items():
        of_value = all_of([clause, {"term": {path: value}}])
        parts = [Part(of_value, EVERY)] if count <= PAGE else ranges(at, asked, of_value, count)
        for part in parts:
            yield replace(part, fixed={name: value})
    if n_rest := n_jobs - sum(often.values()):
        yield from ranges(at, asked, all_of([clause], [{"terms": {path: list(often)}}]), n_rest)


def _longest(asked: "Grouping", sample: pa.Table, n_jobs: int) -> str | None:
    """The name in answers of the key with the longest text, of those with few values; never the only one."""
    cut_by = _cut_by(asked)
    lengths: dict[str, float] = {}
    for name, column in asked.columns.items():
        live = asked.live[column.field]
        if column.field not in asked.keys or column.path == cut_by or len(live.paths) != 1:
            continue
        if not live.plain or live.field.type != "keyword":
            continue
        texts = sample.column(column.field).cast(pa.string())
        if pc.count_distinct(texts).as_py() * LEAST_CELL <= n_jobs:
            lengths[name] = pc.mean(pc.binary_length(texts)).as_py() or 0.0
    longest = max(lengths, key=lengths.__getitem__, default=None)
    return longest if longest and lengths[longest] >= LONG_KEY and len(asked.columns) > 1 else None


def distinct(at: PointInTime, path: str, clause: Clause) -> list[Any] | None:
    """The distinct values of a path; None when there are more than 10 000."""
    counts = islice(_counts(at, path, clause, _MOST_VALUES + 1), _MOST_VALUES + 1)
    values = [key for key, _ in counts]
    return values if len(values) <= _MOST_VALUES else None


def ranges(at: PointInTime, asked: "Grouping", clause: Clause, n_jobs: int) -> Iterator[Part]:
    """The clause, cut by the values of one key where that pays."""
    path = _cut_by(asked)
    if path is None or n_jobs <= SLICE:
        yield Part(clause, EVERY)
        return
    without = n_jobs
    first: Any = None
    n_inside = 0
    for key, count in _counts(at, path, clause, PAGE):
        if n_inside and n_inside + count > SLICE:
            yield Part(clause, {"range": {path: {"gte": first, "lt": key}}})
            first, n_inside = key, 0
        first = key if n_inside == 0 else first
        n_inside += count
        without -= count
    if n_inside:
        yield Part(clause, {"range": {path: {"gte": first}}})
    if without:
        yield Part(clause, negated({"exists": {"field": path}}))


def _ordered(live: LiveField) -> bool:
    """Whether a range clause takes the values as aggregations give them."""
    return live.field.type in ("keyword", "integer")


def _cut_by(asked: "Grouping") -> str | None:
    for name in asked.keys:
        if asked.query.field(name).derived is None and asked.live[name].plain and _ordered(asked.live[name]):
            return asked.live[name].paths[0]
    return None


def _counts(at: PointInTime, path: str, clause: Clause, page: int) -> Iterator[tuple[Any, int]]:
    """Documents per value of a path, in the order of the values."""
    sources = [{"value": {"terms": {"field": path}}}]

    def ask(composite: dict[str, Any]) -> Page:
        groups_of = {"values": {"composite": composite}}
        answer = at.search({"size": 0, "query": clause, "aggs": groups_of, "track_total_hits": False})
        grouped = answer["aggregations"]["values"]
        return grouped["buckets"], grouped.get("after_key")

    for buckets in paged(ask, sources, page):
        for bucket in buckets:
            yield bucket["key"]["value"], bucket["doc_count"]


Page = tuple[Sequence[Any], Any]


def paged(
    ask: Callable[[dict[str, Any]], Page], sources: Sequence[Any], page: int
) -> Iterator[Sequence[Any]]:
    """All buckets of a composite aggregation, in pages as large as the cluster allows."""
    size = min(PAGE, page)
    after: Any = None
    while True:
        more = {} if after is None else {"after": after}
        try:
            buckets, last = ask({"size": size, "sources": list(sources), **more})
        except RefusedError as error:
            if error.kind != _TOO_MANY or size <= _LEAST_PAGE:
                raise
            size = max(size // 4, _LEAST_PAGE)
            continue
        yield buckets
        if len(buckets) < size:
            return
        after = last
