"""Jobs in the embedded store: loads, duplicates, undoing, fingerprints.

`versions` decides which version of a job is visible; the others wait in ``internal.replaced_jobs``.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import PUT_SCHEMA, schema_of
from esjobs.core.query import Select
from esjobs.core.window import Window
from esjobs.store.base import PutCounts, Span, Undone
from esjobs.store.batches import gathered
from esjobs.store.checks import FINGERPRINTS, LOAD_FINGERPRINTS, SUPERSEDED, not_undoable
from esjobs.store.duck import unchanged as duck_unchanged
from esjobs.store.duck import versions as duck_versions
from esjobs.store.duck.compile_sql import JOBS, compile_select, compile_window
from esjobs.store.duck.connection import DuckConnection
from esjobs.store.duck.schema import quote
from esjobs.store.row_hash import Hashes, identity_hash

# Load and first row of no rows; loads are numbered from 1
_NOTHING_COMES = (0, 0)


class _Load(NamedTuple):
    """Number of a load, and of its first row in this call."""

    number: int
    first_row: int


def put_jobs(connection: DuckConnection, batches: Iterable[pa.RecordBatch], load_id: str) -> PutCounts:
    """Write the rows of a load into ``jobs`` and settle the visible versions, in one transaction.

    Duplicates are found by the identity hash; natural keys are compared only for those.
    """
    with connection.transaction():
        load = _open_load(connection, load_id)
        identities = _append(connection, batches, load)
        rows = len(identities)
        connection.run(
            "UPDATE internal.load_numbers SET next_row = $1 WHERE number = $2",
            [load.first_row + rows, load.number],
        )
        # the usual load brings new jobs only: nothing to settle
        if not _find_several(connection, load, identities):
            return PutCounts(rows, 0, SUPERSEDED.empty_table())
        duck_versions.gather(connection, load.number, load.first_row)
        superseded, updated = duck_versions.superseded(connection), duck_versions.updated(connection)
        kept = duck_versions.kept(connection)
        unchanged = duck_unchanged.drop(connection, load.number)
        # before the versions settle: afterwards nobody knows what readers saw
        duck_versions.remember(connection)
        duck_versions.settle(connection)
        jobs_changed, changed = duck_versions.changed(connection)
        duck_versions.clear(connection)
    stored = rows - superseded.num_rows - updated
    return PutCounts(stored, updated, superseded, jobs_changed, changed, kept, unchanged)


def _open_load(connection: DuckConnection, load_id: str) -> _Load:
    existing = connection.rows(
        "SELECT number, next_row FROM internal.load_numbers WHERE load_id = $1", [load_id]
    )
    if existing:
        return _Load(*existing[0])
    # no sequence: an undone load gives its number back, if it was the last
    ((number,),) = connection.rows("SELECT coalesce(max(number), 0) + 1 FROM internal.load_numbers")
    connection.run(
        "INSERT INTO internal.load_numbers (load_id, number, next_row) VALUES ($1, $2, 0)", [load_id, number]
    )
    return _Load(number, 0)


def _append(connection: DuckConnection, batches: Iterable[pa.RecordBatch], load: _Load) -> Hashes:
    put = ", ".join(quote(name) for name in PUT_SCHEMA.names)
    rows = 0
    hashes = [np.empty(0, np.uint64)]
    for table in gathered(batches, PUT_SCHEMA, "jobs"):
        # rows of a load that is put again come after its earlier ones: the later of equals wins
        numbers = np.arange(load.first_row + rows, load.first_row + rows + table.num_rows)
        named = table.select(["source", "job_id"]).to_batches()
        identity = np.concatenate([identity_hash(*batch.columns) for batch in named])
        numbered = table.append_column("load_row", pa.array(numbers))
        numbered = numbered.append_column("row_identity", pa.array(identity))
        statement = (
            f"INSERT INTO jobs ({put}, load_number, load_row, row_identity, row_mark) "  # noqa: S608
            f"SELECT {put}, $1, load_row, row_identity, {duck_versions.ROW_MARK} FROM incoming"
        )
        connection.insert(statement, numbered, [load.number])
        hashes.append(identity)
        rows += table.num_rows
    return np.concatenate(hashes)


def _find_several(connection: DuckConnection, load: _Load, identities: Hashes) -> bool:
    """Store identity hashes with several versions in ``several``; return True if there are any.

    Sorting the hashes is several times faster than GROUP BY.
    """
    # in place: a second copy would double the memory of a large load
    identities.sort()
    repeated = np.unique(identities[1:][identities[1:] == identities[:-1]])
    ((stored,),) = connection.rows("SELECT count(*) FROM jobs")
    # a first load without repeats needs no look at stored rows
    if stored == len(identities) and not len(repeated):
        return False
    connection.run("CREATE TEMP TABLE several (row_identity UBIGINT)")
    connection.insert(
        "INSERT INTO several SELECT row_identity FROM incoming",
        pa.table({"row_identity": pa.array(repeated, pa.uint64())}),
    )
    connection.run(
        """
        INSERT INTO several SELECT row_identity FROM jobs
        WHERE NOT (load_number = $1 AND load_row >= $2) AND row_identity IN (
            SELECT row_identity FROM jobs WHERE load_number = $1 AND load_row >= $2
        )
        """,
        [load.number, load.first_row],
    )
    ((found,),) = connection.rows("SELECT count(*) FROM several")
    if not found:
        connection.run("DROP TABLE several")
    return bool(found)


def undo_load(connection: DuckConnection, load_id: str) -> Undone:
    """Delete the versions of a load and show what remains of its jobs."""
    with connection.transaction():
        existing = connection.rows(
            "SELECT number, coalesce(pruned, FALSE) FROM internal.load_numbers WHERE load_id = $1", [load_id]
        )
        if not existing:
            return Undone()
        number, pruned = existing[0]
        if pruned:
            raise not_undoable(load_id)
        load = [number]
        # a merged row is there beside the versions that it was made of
        ((versions,),) = connection.rows(
            """
            SELECT count(*) FROM (
                SELECT load_row FROM jobs WHERE load_number = $1
                UNION SELECT load_row FROM internal.replaced_jobs WHERE load_number = $1
            )
            """,
            load,
        )
        connection.run(
            """
            CREATE TEMP TABLE several AS
            SELECT row_identity FROM internal.replaced_jobs
            WHERE load_number <> $1
                AND row_identity IN (SELECT row_identity FROM jobs WHERE load_number = $1)
            UNION
            SELECT row_identity FROM internal.replaced_jobs
            WHERE load_number = $1 AND row_identity IN (
                SELECT row_identity FROM jobs SEMI JOIN internal.replaced_jobs USING (load_number, load_row)
            )
            """,
            load,
        )
        connection.run("DELETE FROM internal.replaced_jobs WHERE load_number = $1", load)
        connection.run("DELETE FROM jobs WHERE load_number = $1", load)
        duck_versions.gather(connection, *_NOTHING_COMES)
        duck_versions.settle(connection)
        duck_versions.clear(connection)
        unchanged = duck_unchanged.found_in(connection, number)
        connection.run("DELETE FROM internal.load_numbers WHERE number = $1", load)
    return Undone(int(versions), unchanged)


def select(connection: DuckConnection, requested: Select, jobs: str = JOBS) -> Iterator[pa.RecordBatch]:
    """Stream jobs in batches of at most 65 536 rows."""
    compiled = compile_select(requested, jobs)
    names = requested.fields or tuple(field.name for field in fields.JOB_FIELDS)
    return connection.stream(compiled.sql, schema_of(fields.field(name) for name in names), compiled.params)


_SPAN = pa.schema([(name, pa.int64()) for name in ("jobs", "first", "last")])


def span(connection: DuckConnection) -> Span:
    """Return number and span of the visible jobs."""
    answer = connection.lookup(
        "SELECT count(*) AS jobs, epoch_us(min(end_time)) AS first, epoch_us(max(end_time)) AS last "
        "FROM jobs",
        _SPAN,
    )
    ((jobs, first, last),) = ([column[0].as_py() for column in batch.columns] for batch in answer)
    return Span(jobs, _moment(first), _moment(last))


def _moment(microseconds: int | None) -> datetime | None:
    if microseconds is None:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def day_fingerprints(connection: DuckConnection, window: Window | None) -> pa.Table:
    """Return jobs per day with the sum of their row marks, which is independent of order."""
    where = compile_window(window)
    return connection.table(
        "SELECT CAST(end_time AS DATE) AS day, count(*) AS n_jobs, "  # noqa: S608
        f"CAST(sum(row_mark) AS VARCHAR) AS fingerprint FROM jobs{where.sql} GROUP BY 1 ORDER BY 1",
        FINGERPRINTS,
        where.params,
    )


def load_fingerprints(connection: DuckConnection, window: Window) -> pa.Table:
    """Return jobs per day and load, with the sum of the row marks up to the load."""
    where = compile_window(window)
    return connection.table(
        "SELECT CAST(end_time AS DATE) AS day, load_number AS load, count(*) AS n_jobs, "  # noqa: S608
        "CAST(sum(sum(row_mark)) OVER (PARTITION BY CAST(end_time AS DATE) ORDER BY load_number) AS VARCHAR) "
        f"AS fingerprint FROM jobs{where.sql} GROUP BY 1, 2 ORDER BY 1, 2",
        LOAD_FINGERPRINTS,
        where.params,
    )
