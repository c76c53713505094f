"""Visible version of a job in the embedded store, and its changes.

Each load keeps one version per job: rows with its newest end time, latest known value by field. The visible
version merges the loads with the newest end time likewise, so undoing any load is exact.

Usually the latest version knows everything and the others wait in ``internal.replaced_jobs``. Otherwise the
visible row is merged: all versions wait, and its numbers equal those of the latest.
"""

from collections.abc import Iterable

import pyarrow as pa

from esjobs.core.arrow import JOB_SCHEMA
from esjobs.core.errors import StoreError
from esjobs.core.fields import JOB_FIELDS
from esjobs.store.checks import SUPERSEDED
from esjobs.store.duck.connection import DuckConnection
from esjobs.store.duck.schema import JOB_COLUMNS, quote

_COLUMNS = ", ".join(quote(name) for name in JOB_COLUMNS)
_JOB = ", ".join(quote(name) for name in JOB_SCHEMA.names)
FIELD_BITS = " | ".join(
    f"(CAST({quote(name)} IS NOT NULL AS HUGEINT) << {bit})" for bit, name in enumerate(JOB_SCHEMA.names)
)
"""The fields that a row knows, a bit each."""

_TABLES = ("several", "merged_rows", "contested", "poorer", "mixed", "folds", "versions", "shown", "before")

ROW_MARK = f"hash({', '.join(quote(item.name) for item in JOB_FIELDS)})"
"""SQL for the hash of all that the catalogue knows of a job."""


def gather(connection: DuckConnection, load: int, first_row: int) -> None:
    """Gather all versions of the jobs in ``several``, in order of merit.

    ``place`` 1 decides; ``place_in_load`` 1 is the best of its load; ``item``: stored before; ``unlike``:
    versions differ. A job is named by ``top_load``, ``top_row``.
    """
    connection.run(
        """
        CREATE TEMP TABLE merged_rows AS
        SELECT load_number, load_row FROM jobs
        WHERE row_identity IN (FROM several) AND (load_number, load_row) IN (
            SELECT (load_number, load_row) FROM internal.replaced_jobs WHERE row_identity IN (FROM several)
        )
        """
    )
    connection.run(
        """
        CREATE TEMP TABLE contested AS
        WITH versions AS (
            SELECT TRUE AS stored, load_number = $1 AND load_row >= $2 AS incoming,
                source, job_id, end_time, load_number, load_row, row_mark
            FROM jobs WHERE row_identity IN (FROM several)
                AND (load_number, load_row) NOT IN (SELECT (load_number, load_row) FROM merged_rows)
            UNION ALL
            SELECT FALSE, FALSE, source, job_id, end_time, load_number, load_row, row_mark
            FROM internal.replaced_jobs WHERE row_identity IN (FROM several)
        )
        SELECT stored, incoming, end_time, load_number, load_row,
            row_number() OVER merit AS place,
            row_number() OVER merit_in_load AS place_in_load,
            first_value(end_time) OVER merit AS newest,
            first_value(end_time) OVER merit_in_load AS newest_in_load,
            first_value(load_number) OVER merit AS top_load,
            first_value(load_row) OVER merit AS top_row,
            bool_or(NOT incoming) OVER job AS known,
            min(row_mark) OVER job <> max(row_mark) OVER job AS unlike
        FROM versions
        WINDOW job AS (PARTITION BY source, job_id),
            merit AS (PARTITION BY source, job_id ORDER BY end_time DESC, load_number DESC, load_row DESC),
            merit_in_load AS (
                PARTITION BY source, job_id, load_number ORDER BY end_time DESC, load_row DESC
            )
        """,
        [load, first_row],
    )
    _find_poorer(connection)


def _find_poorer(connection: DuckConnection) -> None:
    """Find jobs whose best version lacks known values: overall (``mixed``), in a load (``folds``)."""
    named = "SELECT (load_number, load_row) FROM contested WHERE unlike"
    connection.run(
        f"""
        CREATE TEMP TABLE poorer AS
        SELECT contested.*, fields FROM contested JOIN (
            SELECT load_number, load_row, {FIELD_BITS} AS fields FROM jobs
            WHERE (load_number, load_row) IN ({named} AND stored)
            UNION ALL
            SELECT load_number, load_row, {FIELD_BITS} FROM internal.replaced_jobs
            WHERE (load_number, load_row) IN ({named} AND NOT stored)
        ) USING (load_number, load_row)
        """  # noqa: S608  names of the catalogue
    )
    connection.run(
        """
        CREATE TEMP TABLE folds AS
        SELECT top_load, top_row, load_number FROM poorer WHERE end_time = newest_in_load
        GROUP BY ALL HAVING bit_or(fields) <> bit_or(fields) FILTER (place_in_load = 1)
        """
    )
    connection.run(
        """
        CREATE TEMP TABLE mixed AS
        SELECT top_load, top_row FROM poorer WHERE end_time = newest
        GROUP BY ALL HAVING bit_or(fields) <> bit_or(fields) FILTER (place = 1)
        UNION SELECT top_load, top_row FROM folds
        UNION SELECT top_load, top_row FROM contested
        WHERE (load_number, load_row) IN (SELECT (load_number, load_row) FROM merged_rows)
        """
    )


def superseded(connection: DuckConnection) -> pa.Table:
    """Return incoming rows that lost against a newer end time, in order."""
    return connection.table(
        "SELECT j.source, j.job_id, j.origin_file, j.origin_line FROM contested c "
        "JOIN jobs j ON j.load_number = c.load_number AND j.load_row = c.load_row "
        "WHERE c.incoming AND c.end_time < c.newest "
        "ORDER BY c.load_row",
        SUPERSEDED,
    )


def updated(connection: DuckConnection) -> int:
    """Return the number of other incoming rows that are not the first of their job."""
    ((rows,),) = connection.rows(
        "SELECT count(*) FROM contested WHERE incoming AND end_time = newest AND (known OR place > 1)"
    )
    return int(rows)


def kept(connection: DuckConnection) -> dict[str, int]:
    """Return by field the jobs whose incoming rows lack a value of another version."""
    counts = ", ".join(f"sum((lacking >> {bit}) & 1)" for bit in range(len(JOB_SCHEMA)))
    ((*jobs,),) = connection.rows(
        f"""
        SELECT {counts} FROM (
            SELECT xor(bit_or(fields), bit_or(fields) FILTER (incoming)) AS lacking
            FROM poorer WHERE end_time = newest GROUP BY top_load, top_row
        )
        """  # noqa: S608  whole numbers
    )
    return _by_field(jobs)


def remember(connection: DuckConnection) -> None:
    """Save what readers see of jobs that may change; of new jobs their first row."""
    connection.run(
        f"""
        CREATE TEMP TABLE before AS
        WITH seen AS (
            SELECT load_number, load_row, top_load, top_row FROM contested
            WHERE unlike AND known AND NOT incoming
            UNION ALL
            SELECT load_number, min(load_row), top_load, top_row FROM contested
            WHERE unlike AND NOT known AND end_time = newest GROUP BY load_number, top_load, top_row
        )
        SELECT top_load, top_row, {_JOB} FROM jobs JOIN seen USING (load_number, load_row)
        """  # noqa: S608  names of the catalogue
    )


def changed(connection: DuckConnection) -> tuple[int, dict[str, int]]:
    """Return the number of saved jobs that changed, and by field."""
    differing = [f"b.{quote(name)} IS DISTINCT FROM j.{quote(name)}" for name in JOB_SCHEMA.names]
    counts = ", ".join(f"count(*) FILTER ({test})" for test in differing)
    ((jobs, *fields),) = connection.rows(
        f"SELECT count(*) FILTER ({' OR '.join(differing)}), {counts} FROM before b "  # noqa: S608
        "JOIN jobs j ON j.load_number = b.top_load AND j.load_row = b.top_row"
    )
    return int(jobs), _by_field(fields)


def _by_field(counts: Iterable[int | None]) -> dict[str, int]:
    return {name: int(jobs) for name, jobs in zip(JOB_SCHEMA.names, counts, strict=True) if jobs}


def together(claims: str) -> str:
    """Return SQL for the merged mark of each job from rows of ``contested``."""
    # one number orders rows of all loads: arg_max compares a single value
    columns = "top_load, top_row, (load_number::HUGEINT << 64) + load_row AS merit"
    return f"""
        SELECT top_load, top_row, {ROW_MARK} AS row_mark FROM (
            SELECT top_load, top_row, {_latest("merit")} FROM (
                SELECT jobs.*, {columns} FROM {claims} AS claimed JOIN jobs USING (load_number, load_row)
                WHERE claimed.stored
                UNION ALL BY NAME
                SELECT waiting.*, {columns} FROM {claims} AS claimed
                JOIN internal.replaced_jobs AS waiting USING (load_number, load_row) WHERE NOT claimed.stored
            ) GROUP BY top_load, top_row
        )
    """  # noqa: S608  names of the catalogue


def settle(connection: DuckConnection) -> None:
    """Move replaced versions aside, delete superseded ones of the same load, show the best."""
    plain = "SELECT load_number, load_row FROM contested ANTI JOIN mixed USING (top_load, top_row)"
    lost = f"{plain} WHERE stored AND place > 1"
    waiting = f"{plain} WHERE NOT stored"
    delete(connection, "internal.replaced_jobs", f"{waiting} AND place_in_load > 1")
    _copy(connection, "jobs", "internal.replaced_jobs", f"{lost} AND place_in_load = 1")
    delete(connection, "jobs", lost)
    _copy(connection, "internal.replaced_jobs", "jobs", f"{waiting} AND place = 1")
    delete(connection, "internal.replaced_jobs", f"{waiting} AND place = 1")
    # rare: merging writes all versions of a job anew
    if connection.rows("SELECT 1 FROM mixed LIMIT 1"):
        _merge(connection)


def _merge(connection: DuckConnection) -> None:
    """Write the versions of mixed jobs anew, and the merged row."""
    mixed = "contested SEMI JOIN mixed USING (top_load, top_row)"
    stored = f"SELECT load_number, load_row FROM {mixed} WHERE stored"  # noqa: S608
    waiting = f"SELECT load_number, load_row FROM {mixed} WHERE NOT stored"  # noqa: S608
    connection.run(
        f"""
        CREATE TEMP TABLE versions AS
        WITH claims AS (SELECT * FROM {mixed}), rows_of_jobs AS (
            SELECT jobs.*, top_load, top_row, newest, newest_in_load, place_in_load
            FROM claims JOIN jobs USING (load_number, load_row) WHERE claims.stored
            UNION ALL BY NAME
            SELECT waiting.*, top_load, top_row, newest, newest_in_load, place_in_load
            FROM claims JOIN internal.replaced_jobs AS waiting USING (load_number, load_row)
            WHERE NOT claims.stored
        )
        SELECT top_load, top_row, newest, {_COLUMNS}
        FROM rows_of_jobs ANTI JOIN folds USING (top_load, top_row, load_number) WHERE place_in_load = 1
        UNION ALL BY NAME
        SELECT *, {ROW_MARK} AS row_mark FROM (
            SELECT top_load, top_row, newest, load_number, max(load_row) AS load_row, {_latest("load_row")}
            FROM rows_of_jobs SEMI JOIN folds USING (top_load, top_row, load_number)
            WHERE end_time = newest_in_load GROUP BY top_load, top_row, newest, load_number
        )
        """  # noqa: S608  names of the catalogue
    )
    connection.run(
        f"""
        CREATE TEMP TABLE shown AS
        SELECT *, {ROW_MARK} AS row_mark FROM (
            SELECT top_load AS load_number, top_row AS load_row, {_latest("load_number")}
            FROM versions WHERE end_time = newest GROUP BY top_load, top_row
        )
        """  # noqa: S608  names of the catalogue
    )
    delete(connection, "jobs", f"{stored} UNION ALL FROM merged_rows")
    delete(connection, "internal.replaced_jobs", waiting)
    connection.run(f"INSERT INTO jobs ({_COLUMNS}) SELECT {_COLUMNS} FROM shown")  # noqa: S608
    connection.run(
        f"INSERT INTO internal.replaced_jobs ({_COLUMNS}) SELECT {_COLUMNS} FROM versions "  # noqa: S608
        "ANTI JOIN shown USING (load_number, load_row, row_mark)"
    )


def _latest(order: str) -> str:
    columns = (quote(name) for name in JOB_COLUMNS if name not in ("load_number", "load_row", "row_mark"))
    return ", ".join(f"arg_max({column}, {order}) AS {column}" for column in columns)


def _copy(connection: DuckConnection, table: str, to: str, places: str) -> None:
    connection.run(
        f"INSERT INTO {to} ({_COLUMNS}) SELECT {_COLUMNS} FROM {table} "  # noqa: S608
        f"WHERE (load_number, load_row) IN ({places})"
    )


def delete(connection: DuckConnection, table: str, places: str) -> None:
    """Delete rows by load and row number, and verify the count.

    Not by rowid: a busy machine once left such a row behind, so that a job was stored twice.
    """
    # counted before and compared: a row that is left behind would be a job twice
    ((named,),) = connection.rows(f"SELECT count(*) FROM ({places})")  # noqa: S608
    ((deleted,),) = connection.rows(
        f"DELETE FROM {table} WHERE (load_number, load_row) IN ({places})"  # noqa: S608
    )
    if deleted != named:
        raise StoreError(
            f"only {deleted} of {named} superseded rows were deleted; the load was rolled back. Run it again"
        )


def clear(connection: DuckConnection) -> None:
    """Drop the temporary tables."""
    for name in _TABLES:
        connection.run(f"DROP TABLE IF EXISTS {name}")
