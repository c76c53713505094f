"""Partitioning of jobs into requests of few documents each.

A composite aggregation collects all documents again for every page; in parts it collects each once. For long
answers a long key with few values becomes a filter.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.store.elastic.asking.clauses import EVERY, Clause, all_of, negated
from esjobs.store.elastic.transport.cluster import RefusedError
from esjobs.store.elastic.transport.scan import PointInTime, only_aggregations

if TYPE_CHECKING:
    from esjobs.store.elastic.asking.composite import Grouping

SLICE = 10_000
"""Approximate documents of a range of keys until the number of groups is known."""
PAGE = 20_000
"""Groups of a page at most; below the least default of ``search.max_buckets``, 65 535."""
LEAST_CELL = 2_500
"""Least number of jobs of one value of a key that are requested separately."""
LONG_KEY = 8
"""Average length of a key from which on a filter is cheaper than the key."""
_LEAST_PAGE = 100
_TOO_MANY = "too_many_buckets_exception"
_MOST_VALUES = 10_000


@dataclass
class Cut:
    """Jobs of a range of keys, about; may be widened between two ranges."""

    jobs: int = field(default_factory=lambda: SLICE)

    def widen(self, n_groups: int, n_jobs: int, page: int) -> None:
        """Let ranges be as long as half a page of groups; the share of groups is that of a first range."""
        # half a page: ranges vary, and a full page costs a second request
        self.jobs = max(self.jobs, n_jobs * page // (2 * max(n_groups, 1)))


@dataclass(frozen=True)
class Part:
    """Jobs of a clause inside a cut; ``fixed``: columns with one common value."""

    of: Clause
    cut: Clause
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def clause(self) -> Clause:
        """Clause of its documents."""
        return all_of([self.of, self.cut])


def cells(
    at: PointInTime, requested: "Grouping", clause: Clause, n_jobs: int, sample: pa.Table
) -> Iterator[Part]:
    """Yield parts by the values of the costliest key, if worthwhile; rare values stay together."""
    name = _longest(requested, sample, n_jobs)
    if name is None:
        yield from ranges(at, requested, clause, n_jobs)
        return
    path = requested.columns[name].path
    # no more values than this can have so many jobs
    counts = islice(_counts(at, path, clause, PAGE), n_jobs // LEAST_CELL)
    often = {value: count for value, count in counts if count >= LEAST_CELL}
    for value, count in often.items():
        of_value = all_of([clause, {"term": {path: value}}])
        parts = [Part(of_value, EVERY)] if count <= PAGE else ranges(at, requested, of_value, count)
        for part in parts:
            yield replace(part, fixed={name: value})
    if n_rest := n_jobs - sum(often.values()):
        yield from ranges(at, requested, all_of([clause], [{"terms": {path: list(often)}}]), n_rest)


def _longest(requested: "Grouping", sample: pa.Table, n_jobs: int) -> str | None:
    """Return the key with the longest texts and few values; None if none is worthwhile."""
    # a filter in place of the only key would leave nothing to page by
    if len(requested.columns) <= 1:
        return None
    cut_by = _cut_by(requested)
    lengths: dict[str, float] = {}
    for name, column in requested.columns.items():
        # the key by which ranges are cut has to stay
        if column.path == cut_by or not _is_plain_text(requested, column.field):
            continue
        texts = sample.column(column.field).cast(pa.string())
        if pc.count_distinct(texts).as_py() * LEAST_CELL <= n_jobs:
            lengths[name] = pc.mean(pc.binary_length(texts)).as_py() or 0.0
    longest = max(lengths, key=lengths.__getitem__, default=None)
    return longest if longest and lengths[longest] >= LONG_KEY else None


def _is_plain_text(requested: "Grouping", name: str) -> bool:
    live = requested.live[name]
    return name in requested.keys and len(live.paths) == 1 and live.plain and live.field.type == "keyword"


def distinct(at: PointInTime, path: str, clause: Clause) -> list[Any] | None:
    """Return the distinct values of a path; None if more than 10 000."""
    # one more than allowed tells that there are too many
    counts = islice(_counts(at, path, clause, _MOST_VALUES + 1), _MOST_VALUES + 1)
    values = [key for key, _ in counts]
    return values if len(values) <= _MOST_VALUES else None


def ranges(
    at: PointInTime, requested: "Grouping", clause: Clause, n_jobs: int, cut: Cut | None = None
) -> Iterator[Part]:
    """Yield the clause cut by ranges of one key, where that pays."""
    path, cut = _cut_by(requested), cut or Cut()
    if path is None or n_jobs <= cut.jobs:
        yield Part(clause, EVERY)
        return
    without = n_jobs
    first: Any = None
    n_inside = 0
    for key, count in _counts(at, path, clause, PAGE):
        # cut before a value that does not fit any more: one value is never in two parts
        if n_inside and n_inside + count > cut.jobs:
            yield Part(clause, {"range": {path: {"gte": first, "lt": key}}})
            first, n_inside = key, 0
        first = key if n_inside == 0 else first
        n_inside += count
        without -= count
    if n_inside:
        yield Part(clause, {"range": {path: {"gte": first}}})
    if without:
        yield Part(clause, negated({"exists": {"field": path}}))


def _cut_by(requested: "Grouping") -> str | None:
    for name in requested.keys:
        live = requested.live.get(name)
        # of these types range clauses and aggregations agree on the values
        if live is not None and live.plain and live.field.type in ("keyword", "integer"):
            return live.paths[0]
    return None


def _counts(at: PointInTime, path: str, clause: Clause, page: int) -> Iterator[tuple[Any, int]]:
    sources = [{"value": {"terms": {"field": path}}}]

    def ask(composite: dict[str, Any]) -> Page:
        groups_of = {"values": {"composite": composite}}
        answer = at.search(only_aggregations(clause, groups_of))
        grouped = answer["aggregations"]["values"]
        return grouped["buckets"], grouped.get("after_key")

    for buckets in paged(ask, sources, page):
        for bucket in buckets:
            yield bucket["key"]["value"], bucket["doc_count"]


Page = tuple[Sequence[Any], Any]


def paged(
    ask: Callable[[dict[str, Any]], Page], sources: Sequence[Any], page: int
) -> Iterator[Sequence[Any]]:
    """Yield all buckets of a composite aggregation, in pages that the cluster accepts."""
    size = min(PAGE, page)
    after: Any = None
    while True:
        more = {} if after is None else {"after": after}
        try:
            buckets, last = ask({"size": size, "sources": list(sources), **more})
        except RefusedError as error:
            # a cluster may allow fewer buckets than the default; its limit cannot be asked for by
            # everybody
            if error.kind != _TOO_MANY or size <= _LEAST_PAGE:
                raise
            size = max(size // 4, _LEAST_PAGE)
            continue
        yield buckets
        # a page that is not full is the last one
        if len(buckets) < size:
            return
        after = last
