"""Parquet in batches of rows; rows are numbered from 1."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from esjobs.core.errors import InputError
from esjobs.records.ingest.base import EXCERPT, RowError
from esjobs.records.ingest.convert import acceptable, decode
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.layout import Binding, Layout, bind, require
from esjobs.records.ingest.refusals import Refusals
from esjobs.records.ingest.validate import Block

ROWS = 1 << 17
"""Rows read at a time."""

_USUAL_COLUMNS = 64

# Bytes of each column that are fetched at a time; without a limit a whole row group is.
_READ_AHEAD = 1 << 20


def open_parquet(
    file: Input, layout: Layout, filled: tuple[str, ...]
) -> tuple[pyarrow.parquet.ParquetFile, Binding]:
    """Open a file and match its columns; types that cannot be read are refused before a row is."""
    try:
        parquet = pyarrow.parquet.ParquetFile(
            file if isinstance(file, Path) else file.open("rb"),
            page_checksum_verification=True,  # damage is an error, not another number
            buffer_size=_READ_AHEAD,
            pre_buffer=False,
        )
    except MemoryError:  # an ArrowException, too
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file.name}: invalid Parquet ({_one_line(error)}); write the file again"
        ) from error
    schema = parquet.schema_arrow
    binding = bind(layout, schema.names, file.name)
    require(binding, filled, file.name, schema.names)
    for column in layout.columns:
        for name in binding.sources.get(column.target, ()):
            kind = schema.field(name).type
            # a column that holds one member of a map is one of numbers
            if not acceptable(kind, replace(column, type=binding.types[name])):
                raise InputError(
                    f"{file.name}: column {name} has type {kind}, which does not fit {column.target}; "
                    f"accepted: {_accepted(binding.types[name])}"
                )
    return parquet, binding


def read_parquet(
    parquet: pyarrow.parquet.ParquetFile, binding: Binding, refusals: Refusals
) -> Iterator[Block]:
    """Yield the rows of an opened file in bounded memory; malformed ones go to ``refusals``."""
    row = 1
    batches = _batches(parquet, list(binding.used))
    while True:
        try:
            batch = next(batches, None)
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{refusals.file}, after row {row - 1}: invalid Parquet ({_one_line(error)}); write the file "
                "again"
            ) from error
        if batch is None:
            return
        yield _block(batch, row, refusals)
        row += batch.num_rows


def _batches(file: pyarrow.parquet.ParquetFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
    # One reader over all row groups would fetch the whole file before its first batch.
    # Of a file with a column per counter the rows at a time shrink, so that the cells stay as many.
    rows = max(1, ROWS * _USUAL_COLUMNS // max(len(columns), _USUAL_COLUMNS))
    for group in range(file.num_row_groups):
        yield from file.iter_batches(rows, row_groups=[group], columns=columns)


def _block(batch: pa.RecordBatch, first: int, refusals: Refusals) -> Block:
    cells = {}
    numbers = np.arange(first, first + batch.num_rows, dtype=np.int64)
    broken: dict[int, str] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        cells[name], bad = decode(column)
        for row in np.flatnonzero(bad) if bad is not None else ():
            broken.setdefault(int(row), name)
    for number, name in sorted(broken.items()):
        detail = f"column {name} contains bytes that are not UTF-8; accepted: UTF-8"
        refusals.refuse(RowError("not UTF-8", "", detail), first + number, _excerpt(cells, number))
    if broken:
        keep = np.ones(batch.num_rows, dtype=bool)
        keep[list(broken)] = False
        cells = {name: column.filter(pa.array(keep)) for name, column in cells.items()}
        numbers = numbers[keep]
    return Block(
        cells,
        len(numbers),
        numbers,
        lambda row, name: str(_shown(cells[name][row])),
        lambda row: _excerpt(cells, row),
    )


def _excerpt(cells: Mapping[str, pa.Array], row: int) -> str:
    values = {name: _shown(array[row]) for name, array in cells.items() if array[row].is_valid}
    return json.dumps(values, default=str, ensure_ascii=False)[:EXCERPT]


def _shown(cell: pa.Scalar) -> object:
    # a time that Python cannot hold is shown as its number
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        return f"{cell.value} ({cell.type})"


def _accepted(kind: str) -> str:
    if kind == "time":
        return "timestamp, date, text or epoch numbers"
    if kind == "map":
        return "a map or struct of numbers"
    if kind == "boolean":
        return "booleans, text, or 0 and 1"
    return "numbers or text" if kind in ("number", "integer") else "text, or whole numbers"


def _one_line(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "the name of a column is not UTF-8"
    return " ".join(str(error).split())[:EXCERPT]
