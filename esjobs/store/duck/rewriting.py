"""Rewriting of texts in all versions of stored jobs."""

from collections.abc import Iterator

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.store.base import Rewrite
from esjobs.store.batches import TEXTS, texts_of
from esjobs.store.duck import versions as duck_versions
from esjobs.store.duck.connection import DuckConnection
from esjobs.store.duck.schema import JOB_COLUMNS, quote
from esjobs.store.row_hash import identity_hash

_NUMBERED = pa.schema([*PUT_SCHEMA, pa.field("load_number", pa.int64()), pa.field("load_row", pa.int64())])
_PLACES = ("jobs", "internal.replaced_jobs")
_BATCH_ROWS = 65_536


def rewrite_jobs(connection: DuckConnection, containing: str, rewrite: Rewrite) -> int:
    """Rewrite rows that contain a text, in one transaction; return the number changed."""
    with connection.transaction():
        return sum(_rewrite(connection, table, containing, rewrite) for table in _PLACES)


def _rewrite(connection: DuckConnection, table: str, containing: str, rewrite: Rewrite) -> int:
    texts = ", ".join(map(quote, TEXTS))
    listed = ", ".join(map(quote, _NUMBERED.names))
    found = connection.table(
        f"SELECT {listed} FROM {table} "  # noqa: S608  names of the layout
        f"WHERE contains(lower(concat_ws(chr(10), {texts})), lower($1))",
        _NUMBERED,
        [containing],
    )
    changed = list(_changed(found, rewrite))
    if not changed:
        return 0
    connection.insert("CREATE TEMP TABLE rewritten AS SELECT * FROM incoming", pa.Table.from_batches(changed))
    renewed = ", ".join(f"n.{quote(name)} AS {quote(name)}" for name in (*TEXTS, "row_identity"))
    connection.run(
        f"CREATE TEMP TABLE renewed AS SELECT j.* REPLACE ({renewed}) "  # noqa: S608  names of the layout
        f"FROM {table} j JOIN rewritten n USING (load_number, load_row)"
    )
    connection.run(
        f"DELETE FROM {table} "  # noqa: S608  names of the layout
        "WHERE (load_number, load_row) IN (SELECT (load_number, load_row) FROM rewritten)"
    )
    columns = ", ".join(map(quote, JOB_COLUMNS))
    connection.run(
        f"INSERT INTO {table} ({columns}) SELECT {columns} FROM "  # noqa: S608  names of the layout
        f"(SELECT * REPLACE ({duck_versions.ROW_MARK} AS row_mark) FROM renewed)"
    )
    for made in ("renewed", "rewritten"):
        connection.run(f"DROP TABLE {made}")
    return sum(batch.num_rows for batch in changed)


def _changed(found: pa.Table, rewrite: Rewrite) -> Iterator[pa.RecordBatch]:
    for batch in found.to_batches(_BATCH_ROWS):
        before = batch.select(PUT_SCHEMA.names)
        after = rewrite(before)
        pairs = zip(texts_of(before), texts_of(after), strict=True)
        differ = [row for row, (old, new) in enumerate(pairs) if old != new]
        if differ:
            identity = identity_hash(after.column("source"), after.column("job_id"))
            numbers = {name: batch.column(name) for name in ("load_number", "load_row")}
            columns = {name: after.column(name) for name in TEXTS}
            rows = pa.RecordBatch.from_pydict({**columns, "row_identity": pa.array(identity), **numbers})
            yield rows.take(pa.array(differ, pa.int64()))
