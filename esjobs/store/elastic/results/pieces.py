"""Rows of a generation packed as columns, beside its documents or in their place.

A document per row is what dashboards and filters need; to read months of them takes a page per 10 000 rows. A
piece is a document with many rows as a compressed Arrow stream. It belongs to its generation: written,
published and deleted with it. Beside documents it has no partition, so that no reader of an alias sees it;
alone it has one, and counts as the row of its generation. A generation without pieces, as earlier versions
wrote it, is read row by row.
"""

from base64 import b64encode
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import table_schema
from esjobs.core.errors import PartialAnswerError
from esjobs.core.query import Days
from esjobs.core.tables import Table
from esjobs.store.elastic.asking.clauses import Clause
from esjobs.store.elastic.transport.scan import PointInTime

PIECE: Clause = {"exists": {"field": "piece"}}
"""Documents that are pieces."""

# Rows of a piece: half a megabyte as text, so that a page holds several
_ROWS = 16_384
_PAGE = 16

_SCHEMA = pa.schema(
    [("generation", pa.string()), ("piece", pa.int64()), ("pieces", pa.int64()), ("packed", pa.binary())]
)
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_MARK = ".p"


def is_piece(name: str) -> bool:
    """True if a document of a generation is a piece, by its id."""
    return _MARK in name


class Packer:
    """Packs the rows of a generation while they are written.

    ``common``: members of every piece; with a partition, the pieces take the place of documents.
    """

    def __init__(self, number: str, common: Mapping[str, str]) -> None:
        self._number = number
        self._common = common
        self._waiting: list[pa.RecordBatch] = []
        self._packed: list[bytes] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows. Memory: those of a piece, and the bytes of all."""
        self._waiting.append(rows)
        if sum(batch.num_rows for batch in self._waiting) >= _ROWS:
            self._pack()

    def _pack(self) -> None:
        if self._waiting:
            # kept until the end: each piece says how many there are
            self._packed.append(_packed(pa.concat_batches(self._waiting)))
            self._waiting = []

    def __len__(self) -> int:
        return len(self._packed)

    def lines(self) -> Iterator[bytes]:
        """Yield the creating lines of all pieces, after the last row."""
        self._pack()
        mark = "." if "partition" in self._common else _MARK
        for piece, packed in enumerate(self._packed, 1):
            name = f"{self._number}{mark}{piece}"
            body = {
                **self._common,
                "piece": piece,
                "pieces": len(self._packed),
                "packed": b64encode(packed).decode(),
            }
            yield b"\n".join((orjson.dumps({"create": {"_id": name}}), orjson.dumps(body), b""))


def _packed(rows: pa.RecordBatch) -> bytes:
    # a text that repeats is written once
    columns = [
        column.dictionary_encode() if pa.types.is_string(column.type) else column for column in rows.columns
    ]
    encoded = pa.RecordBatch.from_arrays(columns, rows.schema.names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, encoded.schema, options=_COMPRESSED) as stream:
        stream.write_batch(encoded)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def packed_rows(
    at: PointInTime,
    table: Table,
    generations: Sequence[str],
    where: Sequence[Days],
    names: Sequence[str],
    left: set[str],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of generations that have all of their pieces; others are added to ``left``.

    Raises :class:`PartialAnswerError` if pieces are missing that have no documents beside them.
    """
    schema = table_schema(table)
    requested = pa.schema([schema.field(name) for name in names]) if names else schema
    found: dict[str, dict[int, bytes]] = defaultdict(dict)
    left |= {*generations}
    query = {"bool": {"filter": [{"terms": {"generation": list(generations)}}, PIECE]}}
    for batch in at.batches(query, _SCHEMA, page=_PAGE):
        for row in batch.to_pylist():
            # pieces of a generation may come in any order, and on several pages
            pieces = found[row["generation"]]
            pieces[row["piece"]] = row["packed"]
            if len(pieces) == row["pieces"]:
                left.discard(row["generation"])
                for packed in found.pop(row["generation"]).values():
                    yield from _rows(packed, requested, where)
    if found and table.packed == "alone":
        raise PartialAnswerError(
            f"rows of '{table.name}' are incomplete, because another program deleted some; make them again"
        )


def _rows(packed: bytes, schema: pa.Schema, where: Sequence[Days]) -> Iterator[pa.RecordBatch]:
    for batch in _opened(packed, {*schema.names, *(item.field for item in where)}):
        rows = _of_days(batch, where)
        columns = [_column(rows, item) for item in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _opened(packed: bytes, names: Collection[str]) -> pa.RecordBatchStreamReader:
    """Return a stream in which other columns are not unpacked."""
    present = pa.ipc.open_stream(packed).schema.names
    fields = [number for number, name in enumerate(present) if name in names]
    return pa.ipc.open_stream(packed, options=pa.ipc.IpcReadOptions(included_fields=fields))


def _of_days(rows: pa.RecordBatch, where: Sequence[Days]) -> pa.RecordBatch:
    for item in where:
        day = rows.column(item.field)
        inside = pc.and_(pc.greater_equal(day, item.first), pc.less_equal(day, item.last))
        rows = rows.filter(inside)
    return rows


def _column(rows: pa.RecordBatch, item: pa.Field) -> pa.Array:
    # what an earlier version packed may lack a column
    if item.name not in rows.schema.names:
        return pa.nulls(rows.num_rows, item.type)
    return rows.column(item.name).cast(item.type)
