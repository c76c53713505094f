"""Declared corepower as a table in text: a row a queue or CPU model; commas, semicolons or tabs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError
from esjobs.records.ingest.base import RowError
from esjobs.records.ingest.formats.declared_values import ACCEPTED, DeclaredValues, Options, declared_row
from esjobs.records.ingest.formats.entered_tables import require_cells, table_rows

_NAME_COLUMNS = {"name": None, "queue": "queue", "cpu_model": "cpu_model", "cpu": "cpu_model"}


def _csv(text: str, path: Path, options: Options) -> Iterator[dict[str, Any]]:
    header, rows = table_rows(text, path)
    name_column = _name_column(header, path)
    for number, row in rows:
        where = f"{path}, line {number}"
        try:
            require_cells(row)
        except RowError as error:
            raise InputError(f"{where}: {error.detail}; write decimals with a point") from error
        level = next(filter(None, (row.get("level"), _NAME_COLUMNS[name_column], options.level)), "")
        yield declared_row(where, {**row, "name": row[name_column], "level": level}, options, path.name)


def _name_column(header: Sequence[str], path: Path) -> str:
    names = [name for name in _NAME_COLUMNS if name in header]
    if len(names) > 1:
        raise InputError(
            f"{path}, line 1: columns {' and '.join(names)} both name the queue or CPU model; keep one of "
            "them (column site names the site of a queue)"
        )
    if not names or "corepower" not in header:
        raise InputError(f"{path}, line 1: expected {ACCEPTED}; found {', '.join(header) or 'nothing'}")
    return names[0]


COREPOWER_TABLE = DeclaredValues("corepower", "csv", _csv)
"""The format ``corepower``."""
