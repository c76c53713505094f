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

LAYOUT = "2"
"""Number of the layout; changed only when a file of the old one cannot be brought up to date by adding."""

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
    return '"' + name.replace('"', '""') + '"'


def result_columns(table: Table) -> dict[str, str]:
    """Return the columns of a stored result table, including the generation."""
    return {**{column.name: _TYPES[column.type] for column in table.columns}, "generation": "BIGINT"}


def results_name(table: Table) -> str:
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


def migration_statements(layout: Layout, tables: Collection[Table]) -> list[str]:
    """Return statements that add missing tables and columns.

    Raises :class:`SchemaError` for unknown columns (a later version) and other types.
    """
    statements: list[str] = []
    for name, columns in expected_layout(tables).items():
        if name not in layout:
            statements.append(f"CREATE TABLE {_qualified(name)} ({_column_list(columns, set())})")
            continue
        _refuse_unknown(name, layout[name], columns)
        statements += [
            f"ALTER TABLE {_qualified(name)} ADD COLUMN {quote(column)} {kind}"
            for column, kind in columns.items()
            if column not in layout[name]
        ]
    return [*statements, *view_statements(tables), *_lengths(layout, tables)] if statements else []


def reading_statements(layout: Layout, tables: Collection[Table], database: str) -> list[str]:
    """Return temporary views that show an older file in the present layout, read-only.

    Missing columns are null. ``database``: DuckDB's name of the file. Raises :class:`SchemaError` if a write
    is required, and as :func:`migration_statements`.
    """
    statements: list[str] = []
    stored = {name: f"{quote(database)}.{_qualified(name)}" for name in layout}
    for name, columns in expected_layout(tables).items():
        if name in layout:
            _refuse_unknown(name, layout[name], columns)
        elif name.startswith("internal."):
            raise SchemaError(
                f"the store was laid out by an earlier version and lacks {name}; bring it up to date once, "
                "with a command that writes: esjobs setup"
            )
    jobs = _missing(layout.get("main.jobs", {}), JOB_COLUMNS)
    if jobs:
        statements.append(_filled("jobs", stored["main.jobs"], jobs))
    for table in tables:
        columns = result_columns(table)
        del columns["generation"]
        for name in [table.name, *([latest_name(table)] if table.has_latest else [])]:
            if f"main.{name}" not in layout:
                listed = ", ".join(f"NULL::{kind} AS {quote(column)}" for column, kind in columns.items())
                statements.append(f"CREATE TEMP VIEW {quote(name)} AS SELECT {listed} WHERE FALSE")
                continue
            missing = _missing(layout[f"main.{name}"], columns)
            if missing:
                statements.append(_filled(name, stored[f"main.{name}"], missing))
    return statements


def _missing(stored: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, str]:
    return {column: kind for column, kind in columns.items() if column not in stored}


def _filled(name: str, source: str, missing: Mapping[str, str]) -> str:
    listed = ", ".join(f"NULL::{kind} AS {quote(column)}" for column, kind in missing.items())
    return f"CREATE TEMP VIEW {quote(name)} AS SELECT *, {listed} FROM {source}"  # noqa: S608  the catalogue's


def _lengths(layout: Layout, tables: Iterable[Table]) -> list[str]:
    return [
        latest_statement(table, length)
        for table in tables
        if table.has_latest
        for name in layout
        if LENGTH.fullmatch(length := name.removeprefix(f"main.{latest_name(table)}_"))
    ]


def _refuse_unknown(table: str, stored: Mapping[str, str], columns: Mapping[str, str]) -> None:
    unknown = [column for column in stored if column not in columns]
    if unknown:
        raise SchemaError(
            f"table {table} has a column '{unknown[0]}' that this version of esjobs does not know: "
            "a later version wrote the store; use that version or a later one"
        )
    for column, kind in columns.items():
        if stored.get(column, kind) != kind:
            raise SchemaError(
                f"column '{column}' of table {table} is {stored[column]}, this version of esjobs has {kind}; "
                "export the jobs with the version that wrote the store and ingest them into a new file"
            )


def _column_list(columns: Mapping[str, str], required: set[str]) -> str:
    return ", ".join(
        f"{quote(name)} {kind}{' NOT NULL' if name in required else ''}" for name, kind in columns.items()
    )


def _qualified(name: str) -> str:
    return ".".join(quote(part) for part in name.split("."))
