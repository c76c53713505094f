"""Results in the embedded store: partitions written aside, then switched to.

Rows carry the number of their generation; ``internal.published`` holds the visible one of each partition.
Small partitions stay in memory until they are published: a transaction would cost more.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import pyarrow as pa

from esjobs.core.arrow import schema_of
from esjobs.core.errors import StoreError
from esjobs.core.query import Filter
from esjobs.core.tables import Table
from esjobs.store.base import PART, Change, Generation, Hide, PointLatest
from esjobs.store.checks import of_days
from esjobs.store.duck.compile_sql import compile_read
from esjobs.store.duck.connection import DuckConnection
from esjobs.store.duck.pending_rows import PendingRows
from esjobs.store.duck.schema import latest_name, latest_statement, quote, results_name


def write(connection: DuckConnection, table: Table, partition: str, pieces: Iterable[pa.Table]) -> Generation:
    """Write rows under a new generation number, all of them or none."""
    with connection.transaction():
        number = _next_number(connection)
        _announce(connection, {number: (table, partition)})
        for rows in pieces:
            _insert(connection, results_name(table), _numbered(rows, number))
    return Generation(table, partition, str(number))


def publish(connection: DuckConnection, changes: Sequence[Change], cached: PendingRows) -> None:
    """Switch readers in one transaction, which also writes cached generations.

    Raises :class:`StoreError` if a generation is missing; nothing is switched then.
    """
    with connection.transaction():
        # a partition named twice: the last change holds, as if they came one by one
        switched = {
            (change.table.name, change.partition): change
            for change in changes
            if not isinstance(change, PointLatest)
        }
        _switch(connection, switched, _landed(connection, switched.values(), cached))
        for change in changes:
            if isinstance(change, PointLatest):
                _point(connection, change)


def _landed(
    connection: DuckConnection, changes: Iterable[Generation | Hide], cached: PendingRows
) -> list[tuple[Generation, int]]:
    """Return generations with their numbers, cached ones now written."""
    generations = [change for change in changes if isinstance(change, Generation)]
    # checked before anything is written: a missing generation must not cost an insert
    written = [each for each in generations if each not in cached]
    _require_written(connection, written)
    new = [each for each in generations if each in cached]
    return [(each, int(each.number)) for each in written] + _write_cached(connection, new, cached)


def _write_cached(
    connection: DuckConnection, new: Sequence[Generation], cached: PendingRows
) -> list[tuple[Generation, int]]:
    if not new:
        return []
    numbered = list(enumerate(new, _next_number(connection)))
    _announce(connection, {number: (each.table, each.partition) for number, each in numbered})
    # one statement per table, not per partition: each costs as much as thousands of rows
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    for number, each in numbered:
        parts[results_name(each.table)] += [_numbered(rows, number) for rows in cached.pieces(each)]
    for name, rows in parts.items():
        if rows:
            _insert(connection, name, pa.concat_tables(rows))
    return [(each, number) for number, each in numbered]


def _next_number(connection: DuckConnection) -> int:
    ((number,),) = connection.rows(
        "SELECT 1 + greatest((SELECT coalesce(max(number), 0) FROM internal.generations), "
        "(SELECT coalesce(max(number), 0) FROM internal.published))"
    )
    return int(number)


def _announce(connection: DuckConnection, generations: Mapping[int, tuple[Table, str]]) -> None:
    connection.run(
        "INSERT INTO internal.generations SELECT unnest($1), unnest($2), unnest($3)",
        _columns((number, table.name, partition) for number, (table, partition) in generations.items()),
    )


def _columns(rows: Iterable[tuple[object, ...]]) -> list[list[object]]:
    """Return rows, one at least, as lists to be unnested side by side."""
    return [list(column) for column in zip(*rows, strict=True)]


def _numbered(rows: pa.Table, number: int) -> pa.Table:
    return rows.append_column("generation", pa.repeat(number, rows.num_rows))


def _insert(connection: DuckConnection, name: str, rows: pa.Table) -> None:
    columns = ", ".join(quote(column) for column in rows.schema.names)
    connection.insert(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM incoming", rows)  # noqa: S608


def _switch(
    connection: DuckConnection,
    changes: Mapping[tuple[str, str], Generation | Hide],
    landed: Sequence[tuple[Generation, int]],
) -> None:
    if changes:
        connection.run(
            "DELETE FROM internal.published "
            "WHERE (table_name, partition_name) IN (SELECT (unnest($1), unnest($2)))",
            _columns(changes),
        )
    days = [(name, day) for (name, day), change in changes.items() if of_days(change.table)]
    if days:
        # what was added to a day later goes with it
        connection.run(
            "DELETE FROM internal.published WHERE contains(partition_name, $1) "
            "AND (table_name, split_part(partition_name, $1, 1)) IN (SELECT (unnest($2), unnest($3)))",
            [PART, *_columns(days)],
        )
    if landed:
        connection.run(
            "INSERT INTO internal.published SELECT unnest($1), unnest($2), unnest($3)",
            _columns((each.table.name, each.partition, number) for each, number in landed),
        )


def _point(connection: DuckConnection, change: PointLatest) -> None:
    key = [change.table.name, change.length]
    # no primary keys in the file, so an update is a delete and an insert
    connection.run("DELETE FROM internal.latest WHERE table_name = $1 AND length = $2", key)
    if change.partition is not None:
        connection.run("INSERT INTO internal.latest VALUES ($1, $2, $3)", [*key, change.partition])
    if change.length:
        connection.run(
            f"DROP VIEW IF EXISTS {quote(latest_name(change.table, change.length))}"
            if change.partition is None
            else latest_statement(change.table, change.length)
        )


def _require_written(connection: DuckConnection, generations: Sequence[Generation]) -> None:
    if not generations:
        return
    written = set(
        connection.rows(
            "SELECT CAST(number AS VARCHAR), table_name, partition_name FROM internal.generations "
            "WHERE CAST(number AS VARCHAR) IN (SELECT unnest($1))",
            [[each.number for each in generations]],
        )
    )
    for each in generations:
        if (each.number, each.table.name, each.partition) not in written:
            raise StoreError(
                f"generation {each.number} of '{each.table.name}' {each.partition} is not in the store "
                "(removed, or of another store); run the step again"
            )


def sweep(connection: DuckConnection, tables: Iterable[Table], pending: Set[str]) -> int:
    """Delete rows of generations that are neither visible nor pending."""
    with connection.transaction():
        # numbers in memory are pending, whether or not the file knows them
        unreachable = [
            (number, name)
            for number, name in connection.rows(
                "SELECT number, table_name FROM internal.generations "
                "WHERE number NOT IN (SELECT number FROM internal.published)"
            )
            if str(number) not in pending
        ]
        deleted = 0
        for table in tables:
            numbers = [number for number, name in unreachable if name == table.name]
            if not numbers:
                continue
            # a DELETE answers with the number of its rows
            ((count,),) = connection.rows(
                f"DELETE FROM {results_name(table)} WHERE generation IN (SELECT unnest($1))",  # noqa: S608
                [numbers],
            )
            deleted += count
        if unreachable:
            connection.run(
                "DELETE FROM internal.generations WHERE number IN (SELECT unnest($1))",
                [[number for number, _ in unreachable]],
            )
    return deleted


def read(
    connection: DuckConnection,
    table: Table,
    where: Sequence[Filter],
    columns: Sequence[str],
    order: Sequence[str] = (),
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Stream the published rows as of the call."""
    # through lookup: small tables are read again and again by pages
    compiled = compile_read(table, where, columns, order, limit)
    by_name = {column.name: column for column in table.columns}
    schema = schema_of(by_name[name] for name in columns or table.column_names)
    return connection.lookup(compiled.sql, schema, compiled.params)


def value(connection: DuckConnection, key: str) -> str | None:
    """Return a named value; None if absent."""
    values = connection.rows("SELECT value FROM internal.named_values WHERE key = $1", [key])
    return values[0][0] if values else None


def compare_and_set(connection: DuckConnection, key: str, old: str | None, new: str | None) -> bool:
    """Set a named value if it still equals ``old``; None: absent."""
    with connection.transaction():
        if value(connection, key) != old:
            return False
        connection.run("DELETE FROM internal.named_values WHERE key = $1", [key])
        if new is not None:
            connection.run("INSERT INTO internal.named_values VALUES ($1, $2)", [key, new])
    return True
