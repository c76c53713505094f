"""Rows to the formats that people and scripts read: a table, CSV, JSON, Parquet.

CSV has a header always, nothing for null, floats that read back exactly, ``true``/``false`` and ISO times
with ``Z``; maps and lists are JSON text, bytes are
base64 (in JSON, too). JSON is one array. Tables are rounded for people, the other formats
never are.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable
from datetime import date, datetime
from typing import IO, Any

import pyarrow as pa

from esjobs.core.frames import as_from_frame
from esjobs.core.numbers import amount, count
from esjobs.core.text import spreadsheet_cell, visible
from esjobs.core.window import format_time
from esjobs.store.files.destination import writing_binary, writing_text


def write_rows(
    rows: pa.Table,
    form: str,
    out: str,
    *,
    title: str = "",
    prose: Collection[str] = (),
    spreadsheet: bool = False,
) -> None:
    """Write rows as ``table``, ``csv``, ``json`` or ``parquet`` to a file, or to standard output for ``-``.

    ``prose``: columns that a table may wrap on words; ``spreadsheet``: in CSV, text that a spreadsheet would
    take for a formula is made text for it. Raises :class:`InputError` when the file cannot be
    written; a file of before is then as it was.
    """
    if form == "parquet":
        from pyarrow import parquet

        with writing_binary(out, form) as stream:
            parquet.write_table(as_from_frame(rows), stream)
        return
    with writing_text(out) as text:
        if form == "csv":
            csv_text(rows, text, spreadsheet=spreadsheet)
        elif form == "json":
            _write_json(rows, text)
        else:
            write_table(rows, text, title=title, prose=prose)


def write_batches(
    rows: pa.RecordBatchReader, form: str, out: str, *, title: str = "", spreadsheet: bool = False
) -> None:
    """Write a stream as ``csv``, ``json``, ``jsonl`` (an object a line) or ``parquet``, a batch at a time.

    A ``table`` is held in memory. The cells are those of :func:`write_rows`.
    """
    if form == "table":
        write_rows(rows.read_all(), form, out, title=title)
    elif form == "parquet":
        from pyarrow import parquet

        with writing_binary(out, form) as stream, parquet.ParquetWriter(stream, rows.schema) as writer:
            for batch in rows:
                writer.write_batch(batch)
    else:
        with writing_text(out) as text:
            if form == "csv":
                csv_text(rows, text, spreadsheet=spreadsheet)
            elif form == "jsonl":
                for record in _records(rows):
                    text.write(_json_object(record) + "\n")
            else:
                _write_json(rows, text)


def csv_text(rows: pa.Table | pa.RecordBatchReader, stream: IO[str], *, spreadsheet: bool) -> None:
    """Write rows as CSV to an open stream."""
    written = _cell if spreadsheet else _exact
    stream.write(_csv_line(map(written, rows.schema.names)))
    for row in _records(rows):
        stream.write(_csv_line(map(written, row.values())))


def _csv_line(cells: Iterable[object]) -> str:
    # Python's own writer leaves a cell with a carriage return without quotes
    line = ",".join(map(_quoted, map(str, cells)))
    # readers of CSV skip an empty line
    return (line or '""') + "\n"


def _quoted(text: str) -> str:
    if any(special in text for special in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _cell(value: object) -> object:
    """A value of which a spreadsheet makes no formula; numbers are numbers."""
    return spreadsheet_cell(value) if isinstance(value, str) else _exact(value)


def _exact(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else _plain(value)


def plain(value: Any) -> Any:
    """Return a value for :mod:`json`: finite numbers, times as files have them."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return _plain(_finite(value))


def _write_json(rows: pa.Table | pa.RecordBatchReader, stream: IO[str]) -> None:
    stream.write("[")
    number = -1
    for number, record in enumerate(_records(rows)):
        stream.write(",\n " if number else "\n ")
        stream.write(_json_object(record))
    stream.write("]\n" if number < 0 else "\n]\n")


def _json_object(record: dict[str, Any]) -> str:
    plain = {name: _plain(value) for name, value in record.items()}
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def _records(rows: pa.Table | pa.RecordBatchReader) -> Iterable[dict[str, Any]]:
    # as objects of Python a whole table takes many times its memory
    for batch in rows.to_batches(max_chunksize=10_000) if isinstance(rows, pa.Table) else rows:
        for record in batch.to_pylist(maps_as_pydicts="strict"):
            yield {name: _finite(value) for name, value in record.items()}


def _finite(value: object) -> object:
    """A value that JSON can write; what it cannot, NaN and the infinities, is null."""
    if isinstance(value, dict):
        return {name: _finite(number) for name, number in value.items()}
    if isinstance(value, list):
        return [_finite(number) for number in value]
    return None if isinstance(value, float) and not -1e308 < value < 1e308 else value


def _plain(value: object) -> object:
    """A value that is neither a map nor a list, as files have it."""
    return b64encode(value).decode() if isinstance(value, bytes) else _time_text(value)


def _time_text(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    # a day is its midnight, as it is in frames
    return f"{value.isoformat()}T00:00:00Z" if isinstance(value, date) else value


def write_table(rows: pa.Table, stream: IO[str], *, title: str = "", prose: Collection[str] = ()) -> None:
    """Write rows as a table for people; ``prose``: columns that a terminal may wrap on words."""
    from esjobs.render.text.table import write_text_table

    numbers = [
        visible(column.name)
        for column in rows.schema
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    ]
    headings = [visible(name) for name in rows.column_names]
    cells = [[_shown(name, value) for name, value in record.items()] for record in _records(rows)]
    write_text_table(headings, cells, stream, numbers=numbers, prose=prose, title=visible(title))


def _shown(name: str, value: object) -> str:
    # 2026, not 2,026
    return str(value) if name == "year" and value is not None else cell_text(value)


def cell_text(value: object) -> str:
    """A value as people read it: numbers of four digits, ``-`` for what is missing, no control characters."""
    if value is None:
        return "-"
    form = next((form for kind, form in _FORMS if isinstance(value, kind)), str)
    return visible(form(value))


# Types with a form of their own; a truth value is an int, too
_FORMS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: "yes" if value else "no"),
    (float, amount),
    (int, count),
    (datetime, lambda value: format_time(value.replace(microsecond=0))),
    (dict, lambda value: ", ".join(f"{name} {cell_text(number)}" for name, number in value.items())),
    (list, lambda value: f"{len(value):,} numbers"),
    (bytes, lambda value: f"{len(value):,} bytes"),
)
