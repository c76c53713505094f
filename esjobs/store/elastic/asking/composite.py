"""Groups of jobs by composite aggregation, in parts, several in flight.

A part with a full page is paged: a wrong cut costs time, never groups.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.core.arrow import arrow_type
from esjobs.core.fields import CoreClassOf, DayOf
from esjobs.core.query import Query, is_count
from esjobs.store.duck.compile_sql import metric_type
from esjobs.store.elastic.asking import partitions
from esjobs.store.elastic.asking.answers import answer_type
from esjobs.store.elastic.asking.clauses import EVERY, Clause, Clauses, all_of, translated
from esjobs.store.elastic.asking.days import moment_of
from esjobs.store.elastic.asking.partitions import Page, Part, cells, paged, ranges
from esjobs.store.elastic.asking.sums import Atom, Floats, Sums, plan_sums
from esjobs.store.elastic.fields.live_fields import LiveField
from esjobs.store.elastic.transport.parallel import in_parallel
from esjobs.store.elastic.transport.scan import PointInTime, only_aggregations
from esjobs.store.merge import ENCODED, merged

_IN_FLIGHT = 2
# Buckets of an answer, those inside of others too; the least default of ``search.max_buckets`` is 65 535
_MOST_BUCKETS = 60_000
# Groups per job from which on it is cheaper to have every number among the keys than to sum it
_NEARLY_ALL = 0.75


Span = Literal["day", "week", "month"]
"""Length of the time that one bucket covers."""


class NotExactError(Exception):
    """Values for which groups cannot be exact; the caller reads documents."""


@dataclass(frozen=True)
class Column:
    """Path of the index with the canonical field that it stands for."""

    field: str
    path: str


@dataclass(frozen=True)
class Binned:
    """Number with half-open bins; None: unbounded."""

    path: str
    bins: Sequence[tuple[float | None, float | None]]

    def body(self) -> dict[str, Any]:
        """Return the aggregation with one bucket per bin."""
        ends = [
            {name: end for name, end in zip(("from", "to"), ends, strict=True) if end is not None}
            for ends in self.bins
        ]
        return {"range": {"field": self.path, "ranges": ends}}


@dataclass(frozen=True)
class Grouping:
    """Request of each part; ``columns``: keys by short names used in answers.

    ``fixed``: columns with one value in the part, not requested. ``days``: path of the end time if days are
    keys, ``span`` their length. ``binned``: numbers counted by bin. ``value``: path of a number used as a
    further key.
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
        """True if there are keys."""
        return bool(self.columns or self.days or self.value)

    @property
    def page(self) -> int:
        """Page size, bounded by the buckets of all bins."""
        inside = sum(len(of.bins) for of in self.binned.values())
        return min(partitions.PAGE, max(_MOST_BUCKETS // (1 + inside), 1))

    @property
    def requested_columns(self) -> Mapping[str, "Column"]:
        """Columns that are not fixed."""
        return {name: column for name, column in self.columns.items() if name not in self.fixed}

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the answer; without ``days`` the day is known."""
        return tuple(key for key in self.query.keys if key in self.live or key != "day" or self.days)

    @property
    def coarser(self) -> bool:
        """True if several cluster groups can form one group of the answer."""
        requested = set(self.keys)
        # several foreign values may mean one of ours, and constants of sums split a group
        plain = all(self.live[key].plain for key in requested if self.query.field(key).derived is None)
        return not plain or set(self.sums.constants) != requested & set(self.sums.constants)

    def schema(self) -> pa.Schema:
        """Return the schema: keys, then metrics."""
        kinds = [(key, self.query.field(key).type) for key in self.keys]
        kinds += [(metric.name, metric_type(self.query, metric)) for metric in self.query.metrics]
        return pa.schema([(name, ENCODED if kind == "keyword" else arrow_type(kind)) for name, kind in kinds])


def grouping(
    query: Query, live: Mapping[str, LiveField], clauses: Clauses, *, by_value: bool = False
) -> Grouping | None:
    """Return the grouping of a query; None if the index cannot make it. For ``by_value`` see `sums`."""
    sums = plan_sums(query, live, clauses, by_value=by_value)
    if sums is None:
        return None
    columns: list[Column] = []
    stored = [key for key in query.keys if query.field(key).derived is None]
    for name in dict.fromkeys([*stored, *sums.constants]):
        item = live[name]
        kinds = ("keyword", "integer", "boolean", "day", *(("number",) if name in sums.constants else ()))
        if not item.askable or item.field.type not in kinds:
            return None
        columns += [Column(name, path) for path in item.paths]
    return Grouping(query, live, sums, {f"k{number}": column for number, column in enumerate(columns)})


def few_groups(at: PointInTime, requested: Grouping, clause: Clause) -> pa.Table:
    """Return the groups of a clause in one part. Raises :class:`NotExactError`."""
    return _of_part(at, requested, Part(clause, EVERY), decoder_of(requested)).table


def groups(
    at: PointInTime, requested: Grouping, clause: Clause, n_jobs: int, by_value: Grouping | None = None
) -> pa.Table:
    """Return the groups of the jobs of a clause: keys, then metrics.

    ``by_value``: alternative with every number among the keys, chosen by the first part. Raises
    :class:`NotExactError`. Memory: the groups, and a few parts.
    """
    cut = partitions.Cut()
    parts, tables = ranges(at, requested, clause, n_jobs, cut), []
    # the first part tells how many groups there are per job; the others are asked the cheaper way
    if n_jobs > partitions.SLICE:
        part = next(parts)
        first = _of_part(at, requested, part, decoder_of(requested))
        tables.append(first.table)
        if by_value is None or first.n_groups <= _NEARLY_ALL * first.n_jobs:
            cut.widen(first.n_groups, first.n_jobs, requested.page)
        else:
            requested = by_value
            others = all_of([clause], [part.cut])
            parts = cells(at, requested, others, n_jobs - first.n_jobs, first.table)

    @cache
    def decoder(fixed: frozenset[str]) -> "msgspec.json.Decoder[Any]":
        return decoder_of(replace(requested, fixed=dict.fromkeys(fixed)))

    def table_of(part: Part) -> pa.Table:
        return _of_part(at, requested, part, decoder(frozenset(part.fixed))).table

    tables += in_parallel(table_of, parts, _IN_FLIGHT, "esjobs-groups")
    filled = [table for table in tables if table.num_rows]
    return pa.concat_tables(filled).unify_dictionaries() if filled else requested.schema().empty_table()


@dataclass(frozen=True)
class _Groups:
    """Groups of a part, with the cluster's number of groups and jobs."""

    table: pa.Table
    n_groups: int
    n_jobs: int


def _of_part(
    at: PointInTime, requested: Grouping, part: Part, decoder: "msgspec.json.Decoder[Any]"
) -> _Groups:
    # what all jobs of a part share is not asked for, which shortens every bucket
    requested = replace(requested, fixed=part.fixed)
    pages = []
    n_groups = n_jobs = 0
    for buckets in pages_of(at, requested, part.clause, decoder):
        pages.append(columns_of(requested, buckets))
        n_groups += len(buckets)
        n_jobs += sum(bucket.doc_count for bucket in buckets)
    rows = rows_of(requested, pages)
    return _Groups(rows, n_groups, n_jobs)


def decoder_of(requested: Grouping) -> "msgspec.json.Decoder[Any]":
    """Return the decoder of the answers to a grouping."""
    return msgspec.json.Decoder(answer_type(requested))


def pages_of(
    at: PointInTime, requested: Grouping, clause: Clause, decoder: "msgspec.json.Decoder[Any]"
) -> Iterator[Sequence[Any]]:
    """Yield the buckets of the jobs of a clause, page after page."""
    inner = inside_of(requested)
    if not requested.has_keys:
        # at the top OpenSearch counts bins by its index of points, and fails for some edges
        groups: dict[str, Any] = {"all": {"filter": EVERY, "aggs": inner}}
        answer = at.decoded_search(only_aggregations(clause, groups), decoder.decode)
        answer.require_whole(at)
        # without keys there is one bucket, which may be empty
        if answer.aggregations.all.doc_count:
            yield [answer.aggregations.all]
        return

    def ask(composite: dict[str, Any]) -> Page:
        groups_of = {"composite": composite, **({"aggs": inner} if inner else {})}
        answer = at.decoded_search(only_aggregations(clause, {"groups": groups_of}), decoder.decode)
        answer.require_whole(at)
        page = answer.aggregations.groups
        return page.buckets, page.after_key

    yield from paged(ask, _sources(requested), requested.page)


def body_of(requested: Grouping) -> dict[str, Any]:
    """Return the aggregations by name; with keys, the first page of groups."""
    inner = inside_of(requested)
    if not requested.has_keys:
        return inner
    composite = {"size": requested.page, "sources": _sources(requested)}
    return {"groups": {"composite": composite, **({"aggs": inner} if inner else {})}}


def inside_of(requested: Grouping) -> dict[str, Any]:
    """Return the aggregations inside a group."""
    return requested.sums.body() | {name: of.body() for name, of in requested.binned.items()}


def _sources(requested: Grouping) -> list[dict[str, Any]]:
    sources: list[dict[str, Any]] = [
        {name: {"terms": {"field": column.path, "missing_bucket": True}}}
        for name, column in requested.requested_columns.items()
    ]
    if requested.days:
        # a calendar of UTC: days are all as long, weeks begin on Mondays
        span = {"field": requested.days, "calendar_interval": requested.span}
        sources.append({"day": {"date_histogram": span}})
    # without missing_bucket: jobs that lack the number are not listed
    if requested.value:
        sources.append({"value": {"terms": {"field": requested.value}}})
    return sources


def rows_of(requested: Grouping, pages: Sequence[pa.Table]) -> pa.Table:
    """Return pages as one table with unique keys."""
    rows = pa.concat_tables(pages) if pages else requested.schema().empty_table()
    return merged(rows, requested.keys) if requested.coarser else rows


def columns_of(requested: Grouping, buckets: Sequence[Any]) -> pa.Table:
    """Return a page as columns: keys translated, metrics computed."""
    stored = _stored(requested, buckets)
    schema = requested.schema()
    columns = [_key_column(requested, key, stored, buckets) for key in requested.keys]
    constants = {name: _floats(stored[name]) for name in requested.sums.constants}
    atoms = {atom: _numbers(requested.sums, buckets, atom) for atom in requested.sums.atoms()}
    for metric in requested.query.metrics:
        kind, term = schema.field(metric.name).type, requested.sums.terms.get(metric.name)
        if term is None:
            # the index lacks a field: no job has it
            columns.append(pa.repeat(pa.scalar(0 if is_count(metric) else None, kind), len(buckets)))
        else:
            columns.append(_metric_column(*requested.sums.values(term, constants, atoms), kind))
    return pa.Table.from_arrays(columns, schema=schema)


def _stored(requested: Grouping, buckets: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Return the values of stored keys and constants, one per bucket."""
    raw = {name: list(map(attrgetter(f"key.{name}"), buckets)) for name in requested.requested_columns}
    raw |= {name: [value] * len(buckets) for name, value in requested.fixed.items()}
    plain = (key for key in requested.keys if requested.query.field(key).derived is None)
    return {name: _values(requested, name, raw, len(buckets)) for name in (*plain, *requested.sums.constants)}


def _metric_column(numbers: Floats, null: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    if not np.isfinite(numbers).all():
        raise NotExactError("a sum is beyond all numbers")
    if pa.types.is_integer(kind):
        return pa.array(numbers.astype(np.int64))
    return pa.array(numbers, mask=null)


def _key_column(
    requested: Grouping, key: str, stored: Mapping[str, Sequence[Any]], buckets: Sequence[Any]
) -> pa.Array:
    """Return a key of each bucket; derived ones from the stored ones behind them."""
    field = requested.query.field(key)
    match field.derived:
        case CoreClassOf(source):
            values: Sequence[Any] = list(map(_core_class, stored.get(source, [None] * len(buckets))))
        case DayOf():
            values = [moment_of(bucket.key.day).date() for bucket in buckets]
        case _:
            values = stored[key]
    column = pa.array(values, arrow_type(field.type))
    return column.dictionary_encode() if pa.types.is_string(column.type) else column


def _core_class(cores: int | None) -> str | None:
    if cores is None or cores < 1:
        return None
    return "single" if cores == 1 else "multi"


def _values(requested: Grouping, name: str, raw: Mapping[str, Sequence[Any]], rows: int) -> Sequence[Any]:
    """Return the values of a key: the first path with a value, translated."""
    live = requested.live[name]
    if not live.paths:
        return [live.source.constant] * rows
    filled: list[Any] | None = None
    for answered, column in requested.columns.items():
        if column.field != name:
            continue
        of_path = _translated(live, raw[answered])
        if filled is None:
            filled = of_path
        else:
            # by preference: a later path counts only where the earlier ones are empty
            filled = [other if value is None else value for value, other in zip(filled, of_path, strict=True)]
    return filled or []


def _translated(live: LiveField, answered: Sequence[Any]) -> list[Any]:
    # an index answers a day in milliseconds
    if live.field.type == "day":
        return [None if value is None else moment_of(value).date() for value in answered]
    # an index of fractions answers 8.0 for a count, one of whole numbers 8 for a text
    other_kind = live.field.type != "number" and live.whole_numbers != (live.field.type == "integer")
    if live.plain and not other_kind:
        return list(answered)
    # once per distinct value: a page repeats few of them
    converted = {value: translated(live, value) for value in set(answered)}
    return list(map(converted.__getitem__, answered))


def _numbers(sums: Sums, buckets: Sequence[Any], atom: Atom) -> Floats:
    path = "doc_count" if atom.kind == "count" else f"{sums.name(atom)}.value"
    if atom.of_some:
        path = f"{sums.filter_name(atom)}.{path}"
    return _floats(list(map(attrgetter(path), buckets)))


def _floats(values: Sequence[Any]) -> Floats:
    """Return numbers with NaN for missing. Raises :class:`NotExactError` on overflow."""
    try:
        numbers = pa.array(values, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise NotExactError("a sum exceeds the range of numbers") from error
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
