"""Fields that no store knows: resolved above it from a stored field, alike in every engine.

The catalogue says which field a resolved one comes from (:class:`~esjobs.core.fields.Resolved`); here is how.
A filter on a resolved field becomes the stored values that resolve to it; a grouping by it groups by the
stored field, and adds up the groups that turn out to be one; a reader gets it beside what is stored.
Steps ask for any field of the catalogue here (:func:`aggregate`, :func:`select`, :func:`stored_values`), and
need not know which of them stores have.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import reader_of, schema_of
from esjobs.core.errors import UsageError
from esjobs.core.query import DropRule, Filter, Metric, Query, Select
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.records.declared.values import imported_countries, known_sites
from esjobs.records.errors.categories import ERROR_TABLES
from esjobs.records.names.cpu_models import resolve_names
from esjobs.store.base import Aggregate, JobStore
from esjobs.store.merge import merged

Resolver = Callable[[Sequence[str | None]], Sequence[str | None]]
"""Stored values to resolved ones, each for each; None where the stored one is missing or tells nothing."""


def aggregate(
    store: JobStore,
    keys: Sequence[str],
    metrics: Sequence[Metric],
    window: Window | None = None,
    *,
    where: Sequence[Filter] = (),
    drops: Sequence[DropRule] = (),
    books: bool = True,
) -> Aggregate:
    """Group and sum jobs by any groupable fields; ``where``: on stored fields.

    Resolved keys come dictionary-encoded. One query, two with ``books``, and a read of imported tables where
    sites are resolved.
    """
    query = Query(store_keys(keys), tuple(metrics), window, tuple(where), tuple(drops), books=books)
    answer = store.aggregate(query)
    return Aggregate(resolve_keys(answer.table, keys, resolvers(store, keys, window)), answer.books)


def select(
    store: JobStore,
    names: Sequence[str],
    window: Window | None = None,
    *,
    where: Sequence[Filter] = (),
    drops: Sequence[DropRule] = (),
    order: str = "",
    limit: int | None = None,
) -> pa.RecordBatchReader:
    """Stream jobs in any fields of the catalogue; ``where``: on stored fields, others as in ``Select``."""
    resolving = resolvers(store, names, window)
    schema = fields_schema(names)
    batches = store.select(Select(store_keys(names), window, tuple(where), tuple(drops), order, limit))

    def completed() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [
                _texts(batch.column(source_of(name)), resolving[name])
                if name in resolving
                else batch.column(name)
                for name in names
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return reader_of(schema, completed())


def require_one_source(job_id: str, sources: Collection[str]) -> None:
    """Raise :class:`UsageError` if jobs of several sources have an id."""
    if len(sources) > 1:
        names = ", ".join(sources)
        raise UsageError(f"several sources have a job '{job_id}': {names}; specify one: --source")


def fields_schema(names: Iterable[str]) -> pa.Schema:
    """The Arrow schema of some fields of jobs."""
    return schema_of(fields.field(name) for name in names)


def _texts(column: pa.Array, resolve: Resolver) -> pa.Array:
    return _resolved(pa.chunked_array([column]), resolve)[0].cast(pa.string())


def stored_values(
    store: JobStore,
    name: str,
    wanted: Callable[[str | None], bool],
    window: Window | None = None,
    over: Table | None = None,
) -> tuple[str, list[str | None]]:
    """Return the stored field of a resolved one, and its values that resolve to what is wanted. One query.

    ``over``: values in the rows of a table that has the stored field, not in jobs.
    """
    source = source_of(name)
    if source is None:
        raise UsageError(f"'{name}' is stored as it is and is not resolved")
    resolve = _RESOLVERS[name](store, window)
    question = Query((source,), (), window, over=over, books=False)
    values = store.aggregate(question).table.column(source).to_pylist()
    return source, [value for value, item in zip(values, resolve(values), strict=True) if wanted(item)]


def source_of(name: str) -> str | None:
    """The stored field that a field is resolved from; None for a field that stores know.

    >>> source_of("cpu_model"), source_of("queue")
    ('cpu_raw', None)
    """
    derived = fields.field(name).derived
    return derived.field if isinstance(derived, fields.Resolved) else None


def resolvers(store: JobStore, names: Iterable[str], window: Window | None) -> dict[str, Resolver]:
    """Return the resolvers of the resolved fields among the names, in a window (None: all data)."""
    return {name: _RESOLVERS[name](store, window) for name in names if source_of(name) is not None}


def store_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """The keys by which a store groups, so that :func:`resolve_keys` can give those that are wanted.

    >>> store_keys(["queue", "site", "cpu_model"])
    ('queue', 'cpu_raw')
    """
    return tuple(dict.fromkeys(source_of(key) or key for key in keys))


def resolve_keys(table: pa.Table, keys: Collection[str], resolving: Mapping[str, Resolver]) -> pa.Table:
    """Return groups by stored fields as groups by ``keys``: resolved ones added, unwanted ones merged away.

    ``table``: one row per group of ``store_keys(keys)``, the other columns sums, which are added exactly.
    """
    names: list[str] = []
    columns: list[pa.ChunkedArray | pa.Array] = []
    merges = False
    for stored in table.column_names:
        resolved = [key for key in keys if key in resolving and source_of(key) == stored]
        kept = not resolved or stored in keys
        if kept:
            names.append(stored)
            columns.append(table.column(stored))
        for name in resolved:
            column, fewer = _resolved(table.column(stored), resolving[name])
            names.append(name)
            columns.append(column)
            # beside the stored field equal names stay apart: they are no duplicates
            merges |= fewer and not kept
    answer = pa.Table.from_arrays(columns, names=names)
    return merged(answer, list(keys)) if merges else answer


def _resolved(column: pa.ChunkedArray, resolve: Resolver) -> tuple[pa.Array, bool]:
    # each text is resolved once
    encoded = column.combine_chunks().dictionary_encode()
    stored = encoded.dictionary.to_pylist()
    values = resolve(stored)
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    code: dict[str | None, int] = {value: number for number, value in enumerate(distinct)}
    codes = pa.array([code.get(value) for value in values], pa.int32())
    texts = pa.array(distinct, pa.string())
    resolved = pa.DictionaryArray.from_arrays(codes.take(encoded.indices), texts)
    return resolved, len(distinct) < len(stored)


def _sites(store: JobStore, window: Window | None) -> Resolver:
    sites = known_sites(store, window)
    return lambda queues: [None if queue is None else sites.of(queue).name for queue in queues]


def _countries(store: JobStore, window: Window | None) -> Resolver:
    imported = imported_countries(store, window)
    return lambda queues: [None if queue is None else imported.get(queue) for queue in queues]


def _categories(store: JobStore, _window: Window | None) -> Resolver:
    category = ERROR_TABLES.of(store).category
    return lambda errors: [None if (found := category(error)) is None else found.name for error in errors]


_RESOLVERS: Mapping[str, Callable[[JobStore, Window | None], Resolver]] = {
    "cpu_model": lambda _store, _window: resolve_names,
    "site": _sites,
    "country": _countries,
    "error_category": _categories,
}
