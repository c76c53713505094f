"""Incoming rows that change nothing: removed before the load is settled, and counted.

A job is unchanged if its stored versions of the incoming end time say the same without the incoming rows.
Equal ``row_mark`` means equal; the others are compared by field.
"""

from esjobs.store.duck import versions as duck_versions
from esjobs.store.duck.connection import DuckConnection

_OF_UNCHANGED = "SELECT load_number, load_row FROM contested SEMI JOIN unchanged USING (top_load, top_row)"
_TABLES = ("unchanged", "brought", "claims")


def drop(connection: DuckConnection, load: int) -> int:
    """Remove incoming rows of unchanged jobs; return the number with the newest end time.

    Counts go to ``internal.load_numbers``. Requires :func:`versions.gather`.
    """
    _find(connection)
    ((rows,),) = connection.rows(
        "SELECT count(*) FROM contested SEMI JOIN unchanged USING (top_load, top_row) "
        "WHERE incoming AND end_time = newest"
    )
    _count(connection, load)
    connection.run(f"DELETE FROM merged_rows WHERE (load_number, load_row) IN ({_OF_UNCHANGED})")  # noqa: S608
    duck_versions.delete(connection, "jobs", f"{_OF_UNCHANGED} WHERE incoming")
    for table in ("contested", "mixed", "folds"):
        connection.run(
            f"DELETE FROM {table} WHERE (top_load, top_row) IN (FROM unchanged)"  # noqa: S608  our own names
        )
    for table in _TABLES:
        connection.run(f"DROP TABLE {table}")
    return int(rows)


def _find(connection: DuckConnection) -> None:
    """Create ``unchanged``: jobs whose incoming rows change nothing."""
    connection.run(
        """
        CREATE TEMP TABLE brought AS
        SELECT top_load, top_row, max(end_time) AS end_brought, any_value(unlike) AS unlike
        FROM contested WHERE known AND incoming GROUP BY top_load, top_row
        """
    )
    connection.run(
        """
        CREATE TEMP TABLE claims AS
        SELECT contested.* FROM contested JOIN brought USING (top_load, top_row)
        WHERE contested.unlike AND end_time = end_brought AND end_time = newest_in_load
        """
    )
    # merged with and without the incoming rows: equal marks say that nothing changes
    before, after = map(duck_versions.together, ("(FROM claims WHERE NOT incoming)", "claims"))
    connection.run(
        f"""
        CREATE TEMP TABLE unchanged AS
        SELECT top_load, top_row FROM brought WHERE NOT unlike
        UNION ALL
        SELECT top_load, top_row FROM ({before} INTERSECT {after})
        """  # noqa: S608  our own text
    )


def _count(connection: DuckConnection, load: int) -> None:
    connection.run(
        """
        UPDATE internal.load_numbers SET unchanged = (
            WITH rows_of_jobs AS (
                SELECT top_load, top_row, count(*) AS n_rows
                FROM contested SEMI JOIN unchanged USING (top_load, top_row)
                WHERE incoming AND end_time = newest GROUP BY ALL
            ), sources AS (
                SELECT top_load, top_row, load_number FROM contested WHERE NOT incoming AND NOT unlike
                QUALIFY place = min(place) OVER (PARTITION BY top_load, top_row)
                UNION ALL
                SELECT top_load, top_row, load_number FROM (
                    SELECT poorer.*, bit_or(fields) OVER (
                        PARTITION BY top_load, top_row ORDER BY place
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                    ) AS better FROM poorer WHERE NOT incoming AND end_time = newest
                ) WHERE (fields & ~coalesce(better, 0)) <> 0
            ), of_loads AS (
                SELECT load_number, sum(n_rows)::BIGINT AS n_rows
                FROM rows_of_jobs JOIN sources USING (top_load, top_row)
                WHERE load_number <> $1 GROUP BY load_number
            )
            SELECT map(list(load_number), list(n_rows)) FROM of_loads
        ) WHERE number = $1
        """,
        [load],
    )


def found_in(connection: DuckConnection, load: int) -> dict[str, int]:
    """Return by load id the rows found unchanged in a load, and clear them."""
    found = connection.rows(
        "SELECT load_id, unchanged[$1] FROM internal.load_numbers WHERE map_contains(unchanged, $1) "
        "ORDER BY number",
        [load],
    )
    connection.run(
        "UPDATE internal.load_numbers SET unchanged = map_from_entries("
        "list_filter(map_entries(unchanged), lambda entry: entry.key <> $1)) "
        "WHERE map_contains(unchanged, $1)",
        [load],
    )
    return {load_id: int(rows) for load_id, rows in found}
