"""The catalogue as DuckDB tables: pure text, no connection.

Content of a file, for anyone who opens it with another program:

- ``jobs``: one row per job, the catalogue's stored fields and where the row came from. ``row_identity`` is
  a hash of (source, job_id), ``row_mark`` one of everything the catalogue knows about the job.
- one view per result table (``buckets``, ``factors``, ...) with the published rows; the rows themselves,
  visible or not, in schema ``results`` under the number of the generation they belong to.
- views ``latest_factors``, ``latest_flags``, ... with the rows of the latest run alone, and
  ``latest_factors_30d``, ... for each length of windows in use.
- schema ``internal``: ``layout``, ``load_numbers`` (order of the loads; ``pruned``: versions that the load
  had replaced are removed; ``unchanged``: by number of another load, the rows found unchanged in it),
  ``replaced_jobs`` (versions of a job that lost against another load's, or that the visible one was merged
  from; they come back when that load is undone), ``generations``, ``published``, ``latest``,
  ``named_values``.

Times are stored as UTC without a zone, so that no time-zone library is needed to read them.
"""

from collections.abc import Collection, Iterable, Mapping

from esjobs.core.errors import SchemaError
from esjobs.core.fields import JOB_FIELDS, FieldType
from esjobs.core.tables import Table
from esjobs.store.checks import LENGTH

LAYOUT = "3"
"""Number of the layout; files of another one are refused. New tables, and new columns at the end, keep it."""

_TYPES: dict[FieldType, str] = {
    "keyword": "VARCHAR",
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "time": "TIMESTAMP",
    "day": "DATE",
    "map": "MAP(VARCHAR, DOUBLE)",
    "list": "DOUBLE[]",
    "bytes": "BLOB",
}

JOB_COLUMNS: dict[str, str] = {
    **{field.name: _TYPES[field.type] for field in JOB_FIELDS},
    "origin_file": "VARCHAR",
    "origin_line": "BIGINT",
    "load_number": "INTEGER",
    "load_row": "BIGINT",
    "row_identity": "UBIGINT",
    "row_mark": "UBIGINT",
}
"""Columns of ``jobs`` and ``internal.replaced_jobs`` with their DuckDB types."""

_REQUIRED = {field.name for field in JOB_FIELDS if field.required} | {"load_number", "load_row"}

_INTERNAL: dict[str, dict[str, str]] = {
    "internal.layout": {"key": "VARCHAR", "value": "VARCHAR"},
    "internal.load_numbers": {
        "load_id": "VARCHAR",
        "number": "INTEGER",
        "next_row": "BIGINT",
        "pruned": "BOOLEAN",
        "unchanged": "MAP(INTEGER, BIGINT)",
    },
    "internal.generations": {"number": "BIGINT", "table_name": "VARCHAR", "partition_name": "VARCHAR"},
    "internal.published": {"table_name": "VARCHAR", "partition_name": "VARCHAR", "number": "BIGINT"},
    "internal.latest": {"table_name": "VARCHAR", "length": "VARCHAR", "partition_name": "VARCHAR"},
    "internal.named_values": {"key": "VARCHAR", "value": "VARCHAR"},
}

Layout = dict[str, dict[str, str]]
"""Qualified table name -> column -> DuckDB type."""


def quote(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def result_columns(table: Table) -> dict[str, str]:
    """Return the columns of a stored result table, including the generation."""
    return {**{column.name: _TYPES[column.type] for column in table.columns}, "generation": "BIGINT"}


def results_name(table: Table) -> str:
    """Return the name of the table with the rows of all generations."""
    return f"results.{table.name}"


def latest_name(table: Table, length: str = "") -> str:
    """Return the view of the latest run, or of the latest of a window length."""
    return "_".join(("latest", table.name, *filter(None, [length])))


def expected_layout(tables: Iterable[Table]) -> Layout:
    """Return every table of a store file."""
    return {
        "main.jobs": dict(JOB_COLUMNS),
        "internal.replaced_jobs": dict(JOB_COLUMNS),
        **{results_name(table): result_columns(table) for table in tables},
        **_INTERNAL,
    }


def create_statements(tables: Iterable[Table]) -> list[str]:
    """Return the statements that lay out an empty file."""
    statements = ["CREATE SCHEMA results", "CREATE SCHEMA internal"]
    for name, columns in expected_layout(tables).items():
        required = _REQUIRED if name == "main.jobs" else set()
        statements.append(f"CREATE TABLE {_qualified(name)} ({_column_list(columns, required)})")
    statements.append(f"INSERT INTO internal.layout VALUES ('layout', '{LAYOUT}')")  # noqa: S608
    return [*statements, *view_statements(tables)]


def view_statements(tables: Iterable[Table]) -> list[str]:
    """Return the views of published and latest rows."""
    statements = []
    for table in tables:
        statements.append(_view(table.name, table, f"internal.published WHERE table_name = '{table.name}'"))
        if table.has_latest:
            statements.append(latest_statement(table))
    return statements


def latest_statement(table: Table, length: str = "") -> str:
    """Return the view of the latest rows, which follows ``internal.latest``."""
    generations = (
        "internal.published JOIN internal.latest USING (table_name, partition_name) "
        f"WHERE table_name = '{table.name}' AND length = '{length}'"
    )
    return _view(latest_name(table, length), table, generations)


def _view(name: str, table: Table, generations: str) -> str:
    return (
        f"CREATE OR REPLACE VIEW {quote(name)} AS "  # noqa: S608  names come from the catalogue
        f"SELECT {', '.join(quote(column) for column in table.column_names)} "
        f"FROM {_qualified(results_name(table))} WHERE generation IN (SELECT number FROM {generations})"
    )


def adding_statements(layout: Layout, tables: Collection[Table]) -> list[str]:
    """Return statements that add missing tables and columns.

    Raises :class:`SchemaError` for unknown columns (a later version) and other types.
    """
    _refuse_unknown(layout, tables)
    statements: list[str] = []
    for name, columns in expected_layout(tables).items():
        if name not in layout:
            statements.append(f"CREATE TABLE {_qualified(name)} ({_column_list(columns, set())})")
            continue
        statements += [
            f"ALTER TABLE {_qualified(name)} ADD COLUMN {quote(column)} {kind}"
            for column, kind in columns.items()
            if column not in layout[name]
        ]
    return [*statements, *view_statements(tables), *_lengths(layout, tables)] if statements else []


def reading_statements(layout: Layout, tables: Collection[Table], database: str) -> list[str]:
    """Return temporary views for a reader, in which missing tables are empty and missing columns null.

    ``database``: DuckDB's name of the file. Raises as :func:`adding_statements`, and for a missing internal
    table.
    """
    _refuse_unknown(layout, tables)
    absent = [name for name in _INTERNAL if name not in layout]
    if absent:
        raise SchemaError(f"the store has no {absent[0]}; add it: esjobs setup")
    wanted = {"jobs": JOB_COLUMNS}
    for table in tables:
        columns = {column.name: _TYPES[column.type] for column in table.columns}
        wanted[table.name] = columns
        if table.has_latest:
            wanted[latest_name(table)] = columns
    views = (_temp_view(name, columns, layout, database) for name, columns in wanted.items())
    return [view for view in views if view]


def _temp_view(name: str, columns: Mapping[str, str], layout: Layout, database: str) -> str:
    """Return the view that stands before a table of the file; empty if the file lacks nothing."""
    stored = layout.get(f"main.{name}")
    missing = [
        f"NULL::{kind} AS {quote(column)}" for column, kind in columns.items() if column not in (stored or ())
    ]
    if not missing:
        return ""
    # named in full: the view has the name of the table that it reads
    source = f"FROM {quote(database)}.main.{quote(name)} SELECT *, " if stored else "SELECT "
    rows = "" if stored else " WHERE FALSE"
    return f"CREATE TEMP VIEW {quote(name)} AS {source}{', '.join(missing)}{rows}"


def _lengths(layout: Layout, tables: Iterable[Table]) -> list[str]:
    return [
        latest_statement(table, length)
        for table in tables
        if table.has_latest
        for name in layout
        # views of lengths exist only while they show a run: those that are there follow the new columns
        if LENGTH.fullmatch(length := name.removeprefix(f"main.{latest_name(table)}_"))
    ]


def _refuse_unknown(layout: Layout, tables: Iterable[Table]) -> None:
    for table, columns in expected_layout(tables).items():
        for column, stored in layout.get(table, {}).items():
            kind = columns.get(column)
            if kind is None:
                raise SchemaError(
                    f"table {table} has the unknown column '{column}': a later version of esjobs wrote the "
                    "store; use that version or a later one"
                )
            if stored != kind:
                raise SchemaError(
                    f"column '{column}' of table {table} is {stored}, expected {kind}; load the records "
                    "again into a new file"
                )


def _column_list(columns: Mapping[str, str], required: set[str]) -> str:
    return ", ".join(
        f"{quote(name)} {kind}{' NOT NULL' if name in required else ''}" for name, kind in columns.items()
    )


def _qualified(name: str) -> str:
    return ".".join(quote(part) for part in name.split("."))
