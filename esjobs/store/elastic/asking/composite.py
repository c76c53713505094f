"""Groups of jobs by composite aggregation: exact key ranges of few documents each, several in flight.

A composite aggregation collects all documents of its query again for every page. Cut into ranges of the
first key that hold few documents each, it collects each document once. A range whose page is full goes on
paging: a wrong cut costs time, never groups.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from esjobs.core.arrow import arrow_type
from esjobs.core.fields import CoreClassOf
from esjobs.core.query import Query, is_count
from esjobs.store.duck.compile_sql import metric_type
from esjobs.store.elastic.asking.clauses import Clause, all_of, negated, translated
from esjobs.store.elastic.asking.days import moment_of
from esjobs.store.elastic.asking.sums import Atom, Floats, Sums
from esjobs.store.elastic.fields.live_fields import LiveField
from esjobs.store.elastic.transport.cluster import RefusedError
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.merge import ENCODED, merged

_SLICE = 10_000
"""Documents of a key range, about."""
_IN_FLIGHT = 2
_NEARLY_ALL = 0.75
"""Groups per job from which on it is cheaper to have every number among the keys than to sum it."""
_PAGE = 20_000
"""Groups of a page at most; below the least default of ``search.max_buckets``, 65 535."""
_LEAST_PAGE = 100
_TOO_MANY = "too_many_buckets_exception"
_MOST_VALUES = 10_000


class NotExactError(Exception):
    """The index holds values with which groups cannot be exact; whoever asked reads the documents."""


@dataclass(frozen=True)
class Column:
    """A path of the index, and the field of the catalogue that it stands for."""

    field: str
    path: str


@dataclass(frozen=True)
class Grouping:
    """What is asked of each range; ``columns``: what makes a group, by its brief name in answers."""

    query: Query
    live: Mapping[str, LiveField]
    sums: Sums
    columns: Mapping[str, "Column"]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that a range yields; the day of a job is known without asking."""
        return tuple(key for key in self.query.keys if key in self.live or key != "day")

    @property
    def coarser(self) -> bool:
        """Whether several groups of the cluster can be one of ours."""
        asked = set(self.keys)
        plain = all(self.live[key].plain for key in asked if self.query.field(key).derived is None)
        return not plain or set(self.sums.constants) != asked & set(self.sums.constants)

    def schema(self) -> pa.Schema:
        """Keys, then metrics."""
        kinds = [(key, self.query.field(key).type) for key in self.keys]
        kinds += [(metric.name, metric_type(self.query, metric)) for metric in self.query.metrics]
        return pa.schema([(name, ENCODED if kind == "keyword" else arrow_type(kind)) for name, kind in kinds])


def grouping(query: Query, live: Mapping[str, LiveField], sums: Sums) -> Grouping | None:
    """How to group by the keys of a query; None when the index cannot."""
    columns: list[Column] = []
    stored = [key for key in query.keys if query.field(key).derived is None]
    for name in dict.fromkeys([*stored, *sums.constants]):
        item = live[name]
        kinds = ("keyword", "integer", "boolean", "day", *(("number",) if name in sums.constants else ()))
        if not item.askable or item.field.type not in kinds:
            return None
        columns += [Column(name, path) for path in item.paths]
    return Grouping(query, live, sums, {f"k{number}": column for number, column in enumerate(columns)})


def groups(
    at: PointInTime, asked: Grouping, clause: Clause, n_jobs: int, by_value: Grouping | None = None
) -> pa.Table:
    """The groups of the jobs of a clause, their number known: keys, then metrics.

    ``by_value``: another way to the same answer, with every number among the keys. The first range tells
    which of the two the others are asked in. Raises :class:`NotExactError`. Memory: the groups, and a few
    ranges with their answers.
    """
    ranges = _ranges(at, asked, clause, n_jobs)
    parts = []
    if by_value is not None and n_jobs > _SLICE:
        first = _range_groups(at, asked, next(ranges), _decoder(asked))
        parts.append(first.table)
        if first.n_groups > _NEARLY_ALL * first.n_jobs:
            asked = by_value
    decoder = _decoder(asked)
    with ThreadPoolExecutor(_IN_FLIGHT, "esjobs-groups") as pool:
        try:
            parts += pool.map(lambda part: _range_groups(at, asked, part, decoder).table, ranges)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    filled = [part for part in parts if part.num_rows]
    return pa.concat_tables(filled).unify_dictionaries() if filled else asked.schema().empty_table()


def distinct(at: PointInTime, path: str, clause: Clause) -> list[Any] | None:
    """The distinct values of a path; None when there are more than 10 000."""
    counts = islice(_counts(at, path, clause, _MOST_VALUES + 1), _MOST_VALUES + 1)
    values = [key for key, _ in counts]
    return values if len(values) <= _MOST_VALUES else None


def _ranges(at: PointInTime, asked: Grouping, clause: Clause, n_jobs: int) -> Iterator[Clause]:
    """The clause, cut by the values of one key where that pays."""
    path = _cut_by(asked)
    if path is None or n_jobs <= _SLICE:
        yield clause
        return
    without = n_jobs
    first: Any = None
    n_inside = 0
    for key, count in _counts(at, path, clause, _PAGE):
        if n_inside and n_inside + count > _SLICE:
            yield all_of([clause, {"range": {path: {"gte": first, "lt": key}}}])
            first, n_inside = key, 0
        first = key if n_inside == 0 else first
        n_inside += count
        without -= count
    if n_inside:
        yield all_of([clause, {"range": {path: {"gte": first}}}])
    if without:
        yield all_of([clause, negated({"exists": {"field": path}})])


def _ordered(live: LiveField) -> bool:
    """Whether a range clause takes the values as aggregations give them."""
    return live.field.type in ("keyword", "integer")


def _cut_by(asked: Grouping) -> str | None:
    for name in asked.keys:
        if asked.query.field(name).derived is None and asked.live[name].plain and _ordered(asked.live[name]):
            return asked.live[name].paths[0]
    return None


def _counts(at: PointInTime, path: str, clause: Clause, page: int) -> Iterator[tuple[Any, int]]:
    """Documents per value of a path, in the order of the values."""
    sources = [{"value": {"terms": {"field": path}}}]

    def ask(composite: dict[str, Any]) -> _Page:
        groups_of = {"values": {"composite": composite}}
        answer = at.search({"size": 0, "query": clause, "aggs": groups_of, "track_total_hits": False})
        grouped = answer["aggregations"]["values"]
        return grouped["buckets"], grouped.get("after_key")

    for buckets in _paged(ask, sources, page):
        for bucket in buckets:
            yield bucket["key"]["value"], bucket["doc_count"]


_Page = tuple[Sequence[Any], Any]


def _paged(
    ask: Callable[[dict[str, Any]], _Page], sources: Sequence[Any], page: int
) -> Iterator[Sequence[Any]]:
    """All buckets of a composite aggregation, in pages as large as the cluster allows."""
    size = min(_PAGE, page)
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


@dataclass(frozen=True)
class _Range:
    """The groups of a range, and of how many groups of how many jobs in the cluster they were made."""

    table: pa.Table
    n_groups: int
    n_jobs: int


def _range_groups(
    at: PointInTime, asked: Grouping, clause: Clause, decoder: "msgspec.json.Decoder[Any]"
) -> _Range:
    """The groups of one range, page after page."""
    pages = []
    n_groups = n_jobs = 0
    for buckets in _pages(at, asked, clause, decoder):
        pages.append(_columns(asked, buckets))
        n_groups += len(buckets)
        n_jobs += sum(bucket.doc_count for bucket in buckets)
    rows = pa.concat_tables(pages) if pages else asked.schema().empty_table()
    if asked.coarser:
        rows = merged(rows, asked.keys)
    return _Range(rows, n_groups, n_jobs)


def _decoder(asked: Grouping) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(_answer_type(asked))


def _pages(
    at: PointInTime, asked: Grouping, clause: Clause, decoder: "msgspec.json.Decoder[Any]"
) -> Iterator[Sequence[Any]]:
    inner = asked.sums.body()
    if not asked.columns:
        body = {"size": 0, "query": clause, "aggs": inner, "track_total_hits": True}
        answer = at.decoded_search(body, decoder.decode)
        answer.require_whole(at)
        n_jobs = answer.hits.total.value
        if n_jobs:
            yield [msgspec.structs.replace(answer.aggregations, doc_count=n_jobs)]
        return
    sources = [
        {name: {"terms": {"field": column.path, "missing_bucket": True}}}
        for name, column in asked.columns.items()
    ]

    def ask(composite: dict[str, Any]) -> _Page:
        groups_of = {"composite": composite, **({"aggs": inner} if inner else {})}
        body = {"size": 0, "query": clause, "aggs": {"groups": groups_of}, "track_total_hits": False}
        answer = at.decoded_search(body, decoder.decode)
        answer.require_whole(at)
        groups = answer.aggregations.groups
        return groups.buckets, groups.after_key

    yield from _paged(ask, sources, _PAGE)


def _columns(asked: Grouping, buckets: Sequence[Any]) -> pa.Table:
    """A page as columns: keys translated, metrics worked out."""
    raw = {name: list(map(attrgetter(f"key.{name}"), buckets)) for name in asked.columns}
    named = (*_stored(asked), *asked.sums.constants)
    keys = {name: _values(asked, name, raw, len(buckets)) for name in named}
    constants = {name: _floats(keys[name]) for name in asked.sums.constants}
    atoms = {atom: _numbers(asked.sums, buckets, atom) for atom in asked.sums.atoms()}
    columns: list[pa.Array] = []
    schema = asked.schema()
    for key in asked.keys:
        match asked.query.field(key).derived:
            case CoreClassOf(source):
                cores = keys.get(source, [None] * len(buckets))
                values: Sequence[Any] = [
                    None if c is None or c < 1 else "single" if c == 1 else "multi" for c in cores
                ]
            case _:
                values = keys[key]
        known = pa.array(values, arrow_type(asked.query.field(key).type))
        columns.append(known.dictionary_encode() if pa.types.is_string(known.type) else known)
    for metric in asked.query.metrics:
        kind = schema.field(metric.name).type
        term = asked.sums.terms.get(metric.name)
        if term is None:
            # the index lacks a field: no job has it
            nothing = 0 if is_count(metric) else None
            columns.append(pa.array([nothing] * len(buckets), kind))
            continue
        numbers, null = asked.sums.values(term, constants, atoms)
        if not np.isfinite(numbers).all():
            raise NotExactError("a sum is beyond all numbers")
        if pa.types.is_integer(kind):
            columns.append(pa.array(numbers.astype(np.int64)))
        else:
            columns.append(pa.array(numbers, mask=null))
    return pa.Table.from_arrays(columns, schema=schema)


def _stored(asked: Grouping) -> list[str]:
    return [key for key in asked.keys if asked.query.field(key).derived is None]


def _values(asked: Grouping, name: str, raw: Mapping[str, Sequence[Any]], rows: int) -> Sequence[Any]:
    """The values of a key: the first path that has one, translated, each distinct value once."""
    live = asked.live[name]
    if not live.paths:
        return [live.source.constant] * rows
    filled: list[Any] | None = None
    for answered, column in asked.columns.items():
        if column.field != name:
            continue
        of_source = list(raw[answered])
        if live.field.type == "day":
            of_source = [None if value is None else moment_of(value).date() for value in of_source]
        elif not live.plain or (
            live.field.type != "number" and live.whole_numbers != (live.field.type == "integer")
        ):
            known = {value: translated(live, value) for value in set(of_source)}
            of_source = list(map(known.__getitem__, of_source))
        if filled is not None:
            of_source = [
                other if value is None else value for value, other in zip(filled, of_source, strict=True)
            ]
        filled = of_source
    return filled or []


def _numbers(sums: Sums, buckets: Sequence[Any], atom: Atom) -> Floats:
    path = "doc_count" if atom.kind == "count" else f"{sums.name(atom)}.value"
    if atom.of_some:
        path = f"{sums.filter_name(atom)}.{path}"
    return _floats(list(map(attrgetter(path), buckets)))


def _floats(values: Sequence[Any]) -> Floats:
    """Numbers, NaN where there is none. Raises :class:`NotExactError` for a sum beyond all numbers."""
    try:
        numbers = pa.array(values, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise NotExactError("a sum is beyond all numbers") from error
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)


class _Value(msgspec.Struct, gc=False):
    value: float | str | None = None
    """A text where a sum went beyond all numbers."""


class _Shards(msgspec.Struct):
    total: int = 0
    failed: int = 0


class _Total(msgspec.Struct):
    value: int = 0


class _Hits(msgspec.Struct):
    total: _Total = msgspec.field(default_factory=_Total)


class _Answer(msgspec.Struct):
    """What every answer has."""

    shards: _Shards = msgspec.field(name="_shards")
    timed_out: bool = False
    hits: _Hits = msgspec.field(default_factory=_Hits)

    def require_whole(self, at: PointInTime) -> None:
        """Refuse an answer that does not cover all shards, or whose search ran out of time."""
        at.require_whole(self.timed_out, self.shards.failed, self.shards.total)


def _answer_type(asked: Grouping) -> type[Any]:
    """The type of the answer to a grouping: fields by name, numbers as they are."""
    inner: list[tuple[str, Any]] = []
    filters: dict[str, list[tuple[str, Any]]] = {}
    for atom in asked.sums.atoms():
        target = filters.setdefault(asked.sums.filter_name(atom), []) if atom.of_some else inner
        if atom.kind != "count":
            target.append((asked.sums.name(atom), _Value))
    for name, sums in filters.items():
        kind = msgspec.defstruct("Filtered", [("doc_count", int), *sums], gc=False)
        inner.append((name, kind))
    if not asked.columns:
        optional = [(name, kind | None, None) for name, kind in inner]
        single = msgspec.defstruct("Bucket", [*optional, ("doc_count", int, 0)])
        sums_of_all: Any = ("aggregations", single, msgspec.field(default_factory=single))
        return msgspec.defstruct("Answer", [sums_of_all], bases=(_Answer,), kw_only=True)
    key = msgspec.defstruct(
        "Key",
        [(name, _key_type(asked.live[column.field])) for name, column in asked.columns.items()],
        gc=False,
        frozen=True,
    )
    bucket: Any = msgspec.defstruct("Bucket", [("key", key), ("doc_count", int), *inner], gc=False)
    after = ("after_key", dict[str, Any] | None, None)
    page = msgspec.defstruct("Groups", [("buckets", list[bucket]), after])
    aggregations = msgspec.defstruct("Aggregations", [("groups", page)])
    return msgspec.defstruct("Answer", [("aggregations", aggregations)], bases=(_Answer,), kw_only=True)


def _key_type(live: LiveField) -> Any:
    if live.field.type in ("boolean", "day"):
        return bool | None if live.field.type == "boolean" else int | None
    if live.field.type == "number":
        return float | None
    return int | float | None if live.field.type == "integer" or live.whole_numbers else str | None
