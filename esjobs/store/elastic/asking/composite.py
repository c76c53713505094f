"""Groups of jobs by composite aggregation: parts of few documents each, several in flight.

A range whose page is full goes on paging: a wrong cut costs time, never groups.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa

from esjobs.core.arrow import arrow_type
from esjobs.core.fields import CoreClassOf, DayOf
from esjobs.core.query import Query, is_count
from esjobs.store.duck.compile_sql import metric_type
from esjobs.store.elastic.asking import cuts
from esjobs.store.elastic.asking.answers import answer_type
from esjobs.store.elastic.asking.clauses import EVERY, Clause, all_of, translated
from esjobs.store.elastic.asking.cuts import Page, Part, cells, paged, ranges
from esjobs.store.elastic.asking.days import moment_of
from esjobs.store.elastic.asking.sums import Atom, Floats, Sums
from esjobs.store.elastic.fields.live_fields import LiveField
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.merge import ENCODED, merged

_IN_FLIGHT = 2
_MOST_BUCKETS = 60_000
"""Buckets of an answer, those inside of others too; the least default of ``search.max_buckets`` is 65 535."""
_NEARLY_ALL = 0.75
"""Groups per job from which on it is cheaper to have every number among the keys than to sum it."""


Span = Literal["day", "week", "month"]
"""Days that are asked for together."""


class NotExactError(Exception):
    """The index holds values with which groups cannot be exact; whoever asked reads the documents."""


@dataclass(frozen=True)
class Column:
    """A path of the index, and the field of the catalogue that it stands for."""

    field: str
    path: str


@dataclass(frozen=True)
class Binned:
    """A number and its bins, each with its lower end, without the upper one; None: it has no such end."""

    path: str
    bins: Sequence[tuple[float | None, float | None]]

    def body(self) -> dict[str, Any]:
        """The aggregation, with a bucket for each bin in their order."""
        ends = [
            {name: end for name, end in zip(("from", "to"), ends, strict=True) if end is not None}
            for ends in self.bins
        ]
        return {"range": {"field": self.path, "ranges": ends}}


@dataclass(frozen=True)
class Grouping:
    """What is asked of each part; ``columns``: what makes a group, by its brief name in answers.

    ``fixed``: the values of columns that all jobs of a part share, so that they are not asked for. ``days``:
    the path of the end time where groups are those of a day, too; else each day is asked for on its own.
    ``span``: how long such a day is; of a week or month it is the first.

    ``binned``: numbers of which the jobs of a group are counted bin by bin, by their names in answers.
    ``value``: the path of a number that makes groups, too, of the jobs that have it.
    """

    query: Query
    live: Mapping[str, LiveField]
    sums: Sums
    columns: Mapping[str, "Column"]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    days: str = ""
    span: Span = "day"
    binned: Mapping[str, "Binned"] = field(default_factory=dict)
    value: str = ""

    @property
    def has_keys(self) -> bool:
        """Whether there are several groups."""
        return bool(self.columns or self.days or self.value)

    @property
    def page(self) -> int:
        """Groups of a page, which has buckets for their bins, too."""
        inside = sum(len(of.bins) for of in self.binned.values())
        return min(cuts.PAGE, max(_MOST_BUCKETS // (1 + inside), 1))

    @property
    def asked_columns(self) -> Mapping[str, "Column"]:
        """The columns that are asked for."""
        return {name: column for name, column in self.columns.items() if name not in self.fixed}

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that a range yields; where days are asked for one by one, theirs is known."""
        return tuple(key for key in self.query.keys if key in self.live or key != "day" or self.days)

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


def few_groups(at: PointInTime, asked: Grouping, clause: Clause) -> pa.Table:
    """The groups of the jobs of a clause in one go: where a page or two have them all, parts cost more.

    Raises :class:`NotExactError`.
    """
    return _of_part(at, asked, Part(clause, EVERY), decoder_of(asked)).table


def groups(
    at: PointInTime, asked: Grouping, clause: Clause, n_jobs: int, by_value: Grouping | None = None
) -> pa.Table:
    """The groups of the jobs of a clause, their number known: keys, then metrics.

    ``by_value``: another way to the same answer, with every number among the keys. The first part tells in
    which of the two the others are asked for. Raises :class:`NotExactError`. Memory: the groups, and a few
    parts with their answers.
    """
    parts, tables = ranges(at, asked, clause, n_jobs), []
    if by_value is not None and n_jobs > cuts.SLICE:
        part = next(parts)
        first = _of_part(at, asked, part, decoder_of(asked))
        tables.append(first.table)
        if first.n_groups > _NEARLY_ALL * first.n_jobs:
            asked = by_value
            others = all_of([clause], [part.cut])
            parts = cells(at, asked, others, n_jobs - first.n_jobs, first.table)

    @cache
    def decoder(fixed: frozenset[str]) -> "msgspec.json.Decoder[Any]":
        return decoder_of(replace(asked, fixed=dict.fromkeys(fixed)))

    def table_of(part: Part) -> pa.Table:
        return _of_part(at, asked, part, decoder(frozenset(part.fixed))).table

    with ThreadPoolExecutor(_IN_FLIGHT, "esjobs-groups") as pool:
        try:
            tables += pool.map(table_of, parts)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    filled = [table for table in tables if table.num_rows]
    return pa.concat_tables(filled).unify_dictionaries() if filled else asked.schema().empty_table()


@dataclass(frozen=True)
class _Groups:
    """The groups of a part, and of how many groups of how many jobs in the cluster they were made."""

    table: pa.Table
    n_groups: int
    n_jobs: int


def _of_part(at: PointInTime, asked: Grouping, part: Part, decoder: "msgspec.json.Decoder[Any]") -> _Groups:
    """The groups of one part, page after page."""
    asked = replace(asked, fixed=part.fixed)
    pages = []
    n_groups = n_jobs = 0
    for buckets in pages_of(at, asked, part.clause, decoder):
        pages.append(columns_of(asked, buckets))
        n_groups += len(buckets)
        n_jobs += sum(bucket.doc_count for bucket in buckets)
    rows = rows_of(asked, pages)
    return _Groups(rows, n_groups, n_jobs)


def decoder_of(asked: Grouping) -> "msgspec.json.Decoder[Any]":
    """Reads the answers to a grouping."""
    return msgspec.json.Decoder(answer_type(asked))


def pages_of(
    at: PointInTime, asked: Grouping, clause: Clause, decoder: "msgspec.json.Decoder[Any]"
) -> Iterator[Sequence[Any]]:
    """The buckets of the jobs of a clause, page after page."""
    inner = inside_of(asked)
    if not asked.has_keys:
        # at the top OpenSearch counts bins by its index of points, and fails for some edges
        groups: dict[str, Any] = {"all": {"filter": EVERY, "aggs": inner}}
        answer = at.decoded_search(
            {"size": 0, "query": clause, "aggs": groups, "track_total_hits": False}, decoder.decode
        )
        answer.require_whole(at)
        if answer.aggregations.all.doc_count:
            yield [answer.aggregations.all]
        return

    def ask(composite: dict[str, Any]) -> Page:
        groups_of = {"composite": composite, **({"aggs": inner} if inner else {})}
        body = {"size": 0, "query": clause, "aggs": {"groups": groups_of}, "track_total_hits": False}
        answer = at.decoded_search(body, decoder.decode)
        answer.require_whole(at)
        page = answer.aggregations.groups
        return page.buckets, page.after_key

    yield from paged(ask, _sources(asked), asked.page)


def body_of(asked: Grouping) -> dict[str, Any]:
    """The aggregations of a grouping by name, of which the groups are the first page, if it has keys."""
    inner = inside_of(asked)
    if not asked.has_keys:
        return inner
    composite = {"size": asked.page, "sources": _sources(asked)}
    return {"groups": {"composite": composite, **({"aggs": inner} if inner else {})}}


def inside_of(asked: Grouping) -> dict[str, Any]:
    """The aggregations inside a group."""
    return asked.sums.body() | {name: of.body() for name, of in asked.binned.items()}


def _sources(asked: Grouping) -> list[dict[str, Any]]:
    sources: list[dict[str, Any]] = [
        {name: {"terms": {"field": column.path, "missing_bucket": True}}}
        for name, column in asked.asked_columns.items()
    ]
    if asked.days:
        # a calendar of UTC: days are all as long, weeks begin on Mondays
        span = {"field": asked.days, "calendar_interval": asked.span}
        sources.append({"day": {"date_histogram": span}})
    if asked.value:
        sources.append({"value": {"terms": {"field": asked.value}}})
    return sources


def rows_of(asked: Grouping, pages: Sequence[pa.Table]) -> pa.Table:
    """Pages as one table: keys, each once, then metrics."""
    rows = pa.concat_tables(pages) if pages else asked.schema().empty_table()
    return merged(rows, asked.keys) if asked.coarser else rows


def columns_of(asked: Grouping, buckets: Sequence[Any]) -> pa.Table:
    """A page as columns: keys translated, metrics worked out."""
    raw = {name: list(map(attrgetter(f"key.{name}"), buckets)) for name in asked.asked_columns}
    raw |= {name: [value] * len(buckets) for name, value in asked.fixed.items()}
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
            case DayOf():
                values = [moment_of(bucket.key.day).date() for bucket in buckets]
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
