"""Removal of versions of jobs that can never be visible again.

A version is covered if one of the other versions in question has a newer end time, or better ones of its end
time know all its fields. Undoing any other load then gives the same result.
"""

from collections.abc import Collection

from esjobs.store.duck.connection import DuckConnection
from esjobs.store.duck.versions import FIELD_BITS, delete

_COVERED = "SELECT load_number, load_row FROM ranked WHERE covered"


def prune_versions(connection: DuckConnection, loads: Collection[str], *, dry_run: bool) -> int:
    """Remove covered versions and mark the loads that replaced them; return their number."""
    with connection.transaction():
        connection.run(
            f"""
            CREATE TEMP TABLE ranked AS
            WITH old AS (
                SELECT number AS load_number FROM internal.load_numbers
                WHERE load_id IN (SELECT unnest($1::VARCHAR[]))
            ), waiting AS (
                SELECT source, job_id, end_time, load_number, load_row, {FIELD_BITS} AS fields
                FROM internal.replaced_jobs SEMI JOIN old USING (load_number)
            ), versions AS (
                FROM waiting
                UNION ALL
                SELECT source, job_id, end_time, load_number, load_row, {FIELD_BITS}
                FROM jobs SEMI JOIN old USING (load_number)
                WHERE row_identity IN (SELECT row_identity FROM internal.replaced_jobs)
                    AND (load_number, load_row) NOT IN (
                        SELECT (load_number, load_row) FROM internal.replaced_jobs
                    )
            ), compared AS (
                SELECT *,
                    first_value(end_time) OVER merit AS newest,
                    coalesce(bit_or(fields) OVER (
                        merit ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                    ), 0) AS better
                FROM versions
                WINDOW merit AS (
                    PARTITION BY source, job_id ORDER BY end_time DESC, load_number DESC, load_row DESC
                )
            )
            SELECT *, end_time < newest OR (fields & ~better) = 0 AS covered FROM compared
            """,  # noqa: S608  names of the catalogue
            [list(loads)],
        )
        ((removed,),) = connection.rows("SELECT count(*) FROM ranked WHERE covered")
        if removed and not dry_run:
            connection.run(
                """
                UPDATE internal.load_numbers SET pruned = TRUE WHERE number IN (
                    SELECT better.load_number FROM ranked AS better JOIN ranked AS gone
                    ON better.source IS NOT DISTINCT FROM gone.source AND better.job_id = gone.job_id
                    WHERE gone.covered AND (better.end_time, better.load_number, better.load_row)
                        > (gone.end_time, gone.load_number, gone.load_row)
                )
                """
            )
            delete(connection, "internal.replaced_jobs", _COVERED)
        # temporary tables live as long as the connection, not as the transaction
        connection.run("DROP TABLE ranked")
    return int(removed)
