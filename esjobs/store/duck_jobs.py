"""Jobs in the embedded store: loads, duplicates, undoing, fingerprints.

The state follows from the rows of each load alone. Of every job the version with the newest end time is
visible; among equal end times the one of the latest load (in the order in which loads were first put), then
the latest row. The best version that each other load has of it waits in ``internal.replaced_jobs``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from esjobs.core.arrow import JOB_SCHEMA, PUT_SCHEMA
from esjobs.core.errors import StoreError
from esjobs.core.window import Window
from esjobs.store.base import PutCounts, Span
from esjobs.store.batches import gathered
from esjobs.store.compile_sql import compile_window
from esjobs.store.promises import FINGERPRINTS, SUPERSEDED
from esjobs.store.row_hash import Hashes, identity_hash
from esjobs.store.schema import JOB_COLUMNS, quote
from esjobs.store.sql import SqlSession

_COLUMNS = ", ".join(quote(name) for name in JOB_COLUMNS)


@dataclass(frozen=True)
class _Load:
    """A load's number, and the number of its first row in this call."""

    number: int
    first_row: int


def put_jobs(session: SqlSession, batches: Iterable[pa.RecordBatch], load_id: str) -> PutCounts:
    """Write the rows of a load straight into ``jobs``, then settle which version of each job is visible.

    One transaction. Duplicates are looked for by the identity hash among all stored jobs; only the jobs
    that have several versions are compared by their natural keys.
    """
    with session.transaction():
        load = _open_load(session, load_id)
        identities = _append(session, batches, load)
        rows = len(identities)
        session.run(
            "UPDATE internal.load_numbers SET next_row = $1 WHERE number = $2",
            [load.first_row + rows, load.number],
        )
        if not _find_several(session, load, identities):
            return PutCounts(rows, 0, SUPERSEDED.empty_table())
        _gather_contested(session, load)
        superseded_rows, updated = _count(session)
        _settle(session)
        session.run("DROP TABLE contested")
        session.run("DROP TABLE several")
    return PutCounts(rows - superseded_rows.num_rows - updated, updated, superseded_rows)


def _open_load(session: SqlSession, load_id: str) -> _Load:
    known = session.rows("SELECT number, next_row FROM internal.load_numbers WHERE load_id = $1", [load_id])
    if known:
        return _Load(*known[0])
    ((number,),) = session.rows("SELECT coalesce(max(number), 0) + 1 FROM internal.load_numbers")
    session.run("INSERT INTO internal.load_numbers VALUES ($1, $2, 0)", [load_id, number])
    return _Load(number, 0)


def _append(session: SqlSession, batches: Iterable[pa.RecordBatch], load: _Load) -> Hashes:
    """Write the rows; their identity hashes, 8 bytes a row, are all that stays in memory."""
    job = ", ".join(quote(name) for name in JOB_SCHEMA.names)
    put = ", ".join(quote(name) for name in PUT_SCHEMA.names)
    statement = (
        f"INSERT INTO jobs ({put}, load_number, load_row, row_identity, row_mark) "  # noqa: S608
        f"SELECT {put}, $1, load_row, row_identity, hash({job}) FROM incoming"
    )
    rows = 0
    hashes = [np.empty(0, np.uint64)]
    for table in gathered(batches, PUT_SCHEMA, "jobs"):
        numbers = np.arange(load.first_row + rows, load.first_row + rows + table.num_rows)
        identity = np.concatenate(
            [
                identity_hash(batch.column("source"), batch.column("job_id"))
                for batch in table.select(["source", "job_id"]).to_batches()
            ]
        )
        numbered = table.append_column("load_row", pa.array(numbers)).append_column(
            "row_identity", pa.array(identity)
        )
        session.insert(statement, numbered, [load.number])
        hashes.append(identity)
        rows += table.num_rows
    return np.concatenate(hashes)


def _find_several(session: SqlSession, load: _Load, identities: Hashes) -> bool:
    """Keep the identity hashes that more than one version has in a table ``several``; whether there are any.

    Repeats inside the load are found by sorting its hashes in place, several times faster than a GROUP BY;
    the jobs stored before are probed only if there are any.
    """
    identities.sort()
    repeated = np.unique(identities[1:][identities[1:] == identities[:-1]])
    ((stored,),) = session.rows("SELECT count(*) FROM jobs")
    if stored == len(identities) and not len(repeated):
        return False
    session.run("CREATE TEMP TABLE several (row_identity UBIGINT)")
    session.insert(
        "INSERT INTO several SELECT row_identity FROM incoming",
        pa.table({"row_identity": pa.array(repeated, pa.uint64())}),
    )
    session.run(
        """
        INSERT INTO several SELECT row_identity FROM jobs
        WHERE NOT (load_number = $1 AND load_row >= $2) AND row_identity IN (
            SELECT row_identity FROM jobs WHERE load_number = $1 AND load_row >= $2
        )
        """,
        [load.number, load.first_row],
    )
    ((found,),) = session.rows("SELECT count(*) FROM several")
    if not found:
        session.run("DROP TABLE several")
    return bool(found)


def _gather_contested(session: SqlSession, load: _Load) -> None:
    """All versions of the jobs that have several, in order of merit.

    ``place`` 1 becomes visible; ``place_in_load`` 1 is the best that its load has; ``known``: the job was
    stored before.
    """
    session.run(
        """
        CREATE TEMP TABLE contested AS
        WITH versions AS (
            SELECT TRUE AS stored, load_number = $1 AND load_row >= $2 AS incoming,
                source, job_id, end_time, load_number, load_row
            FROM jobs WHERE row_identity IN (FROM several)
            UNION ALL
            SELECT FALSE, FALSE, source, job_id, end_time, load_number, load_row
            FROM internal.replaced_jobs WHERE row_identity IN (FROM several)
        )
        SELECT *,
            row_number() OVER (
                PARTITION BY source, job_id ORDER BY end_time DESC, load_number DESC, load_row DESC
            ) AS place,
            row_number() OVER (
                PARTITION BY source, job_id, load_number ORDER BY end_time DESC, load_row DESC
            ) AS place_in_load,
            max(end_time) OVER (PARTITION BY source, job_id) AS newest,
            bool_or(NOT incoming) OVER (PARTITION BY source, job_id) AS known
        FROM versions
        """,
        [load.number, load.first_row],
    )


def _count(session: SqlSession) -> tuple[pa.Table, int]:
    """The incoming rows that lost against a newer end time, and how many of the others were updates."""
    superseded = session.table(
        "SELECT j.source, j.job_id, j.origin_file, j.origin_line FROM contested c "
        "JOIN jobs j ON j.load_number = c.load_number AND j.load_row = c.load_row "
        "WHERE c.incoming AND c.end_time < c.newest "
        "ORDER BY c.load_row",
        SUPERSEDED,
    )
    ((updated,),) = session.rows(
        "SELECT count(*) FROM contested WHERE incoming AND end_time = newest AND (known OR place > 1)"
    )
    return superseded, updated


def _settle(session: SqlSession) -> None:
    """Move what lost against another load aside, delete what lost against its own."""
    lost = "SELECT load_number, load_row FROM contested WHERE stored AND place > 1"
    outdone = "SELECT load_number, load_row FROM contested WHERE NOT stored AND place_in_load > 1"
    _delete(session, "internal.replaced_jobs", outdone)
    session.run(
        f"INSERT INTO internal.replaced_jobs ({_COLUMNS}) SELECT {_COLUMNS} FROM jobs "  # noqa: S608
        f"WHERE (load_number, load_row) IN ({lost} AND place_in_load = 1)"
    )
    _delete(session, "jobs", lost)


def _delete(session: SqlSession, table: str, places: str) -> None:
    """Delete the rows that a query names by load and row, and make sure that these are gone.

    Rows are never named by DuckDB's rowid: on a busy machine such a deletion was once seen to leave a row of
    the same transaction behind, and a job was there twice.
    """
    ((named,),) = session.rows(f"SELECT count(*) FROM ({places})")  # noqa: S608
    ((deleted,),) = session.rows(
        f"DELETE FROM {table} WHERE (load_number, load_row) IN ({places})"  # noqa: S608
    )
    if deleted != named:
        raise StoreError(
            f"the store deleted {deleted} of {named} rows that had lost; nothing was stored, run it again"
        )


def undo_load(session: SqlSession, load_id: str) -> int:
    """Delete the versions of a load and make the best remaining one of each of its jobs visible."""
    with session.transaction():
        known = session.rows("SELECT number FROM internal.load_numbers WHERE load_id = $1", [load_id])
        if not known:
            return 0
        number = known[0][0]
        ((visible, waiting),) = session.rows(
            "SELECT (SELECT count(*) FROM jobs WHERE load_number = $1), "
            "(SELECT count(*) FROM internal.replaced_jobs WHERE load_number = $1)",
            [number],
        )
        session.run("DELETE FROM internal.replaced_jobs WHERE load_number = $1", [number])
        session.run(
            """
            CREATE TEMP TABLE revived AS
            SELECT r.load_number, r.load_row FROM internal.replaced_jobs r
            SEMI JOIN (SELECT source, job_id, row_identity FROM jobs WHERE load_number = $1) gone
            ON r.row_identity = gone.row_identity AND r.job_id = gone.job_id
                AND r.source IS NOT DISTINCT FROM gone.source
            QUALIFY row_number() OVER (
                PARTITION BY r.source, r.job_id ORDER BY r.end_time DESC, r.load_number DESC
            ) = 1
            """,
            [number],
        )
        session.run("DELETE FROM jobs WHERE load_number = $1", [number])
        session.run(
            f"INSERT INTO jobs ({_COLUMNS}) SELECT {_COLUMNS} FROM internal.replaced_jobs "  # noqa: S608
            "WHERE (load_number, load_row) IN (FROM revived)"
        )
        _delete(session, "internal.replaced_jobs", "SELECT load_number, load_row FROM revived")
        session.run("DELETE FROM internal.load_numbers WHERE number = $1", [number])
        session.run("DROP TABLE revived")
    return int(visible + waiting)


def span(session: SqlSession) -> Span:
    """Count the visible jobs and find the earliest and latest end time."""
    ((jobs, first, last),) = session.rows(
        "SELECT count(*), epoch_us(min(end_time)), epoch_us(max(end_time)) FROM jobs"
    )
    return Span(jobs, _moment(first), _moment(last))


def _moment(microseconds: int | None) -> datetime | None:
    if microseconds is None:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def day_fingerprints(session: SqlSession, window: Window | None) -> pa.Table:
    """Jobs per day and the sum of their row marks: independent of order, moved by any change."""
    where = compile_window(window)
    return session.table(
        "SELECT CAST(end_time AS DATE) AS day, count(*) AS n_jobs, "  # noqa: S608
        f"CAST(sum(row_mark) AS VARCHAR) AS mark FROM jobs{where.sql} GROUP BY 1 ORDER BY 1",
        FINGERPRINTS,
        where.params,
    )
