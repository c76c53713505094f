"""Declared corepower as a table in text: a row a queue or CPU model; commas, semicolons or tabs."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError
from esjobs.records.ingest.formats.declared_values import ACCEPTED, DeclaredValues, Options, declared_row

_NAME_COLUMNS = {"name": None, "queue": "queue", "cpu_model": "cpu_model", "cpu": "cpu_model"}


def _csv(text: str, path: Path, options: Options) -> Iterator[dict[str, Any]]:
    head = text[: text.find("\n")] if "\n" in text else text
    # spreadsheets with a decimal comma export semicolons
    delimiter = max(",;\t", key=head.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = reader.fieldnames or ()
    except csv.Error as error:
        raise InputError(f"{path}, line 1: {error}; expected {ACCEPTED}") from error
    columns = _columns(header, path)
    name_column = next(name for name in _NAME_COLUMNS if name in columns)
    try:
        for raw in reader:
            where = f"{path}, line {reader.line_num}"
            row = _row(raw, columns, where)
            if any(row.values()):
                level = next(filter(None, (row.get("level"), _NAME_COLUMNS[name_column], options.level)), "")
                named = {**row, "name": row[name_column], "level": level}
                yield declared_row(where, named, options, path.name)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; expected comma-separated text") from error


def _row(raw: Mapping[Any, Any], columns: Mapping[str, str], where: str) -> dict[str, str]:
    row = {key: (raw.get(column) or "").strip() for key, column in columns.items()}
    # the reader keeps cells beyond the header under None: a decimal comma splits a number in two
    if any(row.values()) and None in raw:
        raise InputError(
            f"{where}: more cells than the header has columns; "
            "write decimals with a point, and text that holds the separator in quotes"
        )
    return row


def _columns(header: Sequence[str], path: Path) -> dict[str, str]:
    columns = {name.strip().lower(): name for name in header}
    if len(columns) < len(header):
        raise InputError(f"{path}, line 1: a column name is repeated; expected {ACCEPTED}")
    names = [name for name in _NAME_COLUMNS if name in columns]
    if len(names) > 1:
        raise InputError(
            f"{path}, line 1: columns {' and '.join(names)} both name the queue or CPU model; keep one of "
            "them (column site names the site of a queue)"
        )
    if not names or "corepower" not in columns:
        raise InputError(f"{path}, line 1: expected {ACCEPTED}; found {', '.join(columns) or 'nothing'}")
    return columns


COREPOWER_TABLE = DeclaredValues("corepower", "csv", _csv)
"""The format ``corepower``."""
