"""Search answers as columns, decoded into typed rows.

Counterpart of `lines`: times and days are text, bytes base64; NaN and infinities are text in a hidden object,
or in place inside maps and lists.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa

from esjobs.store.elastic.layout import NOT_FINITE


class _Shards(msgspec.Struct):
    total: int
    failed: int


class Answer(msgspec.Struct):
    """Page of rows; ``after``: start of the next page."""

    rows: list[Any]
    after: Any
    total: int | None
    timed_out: bool
    shards: _Shards
    pit_id: str | None


class Reader:
    """Decoder of documents into the columns of a schema; other members are skipped."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        members: list[tuple[str, Any, Any]] = [("hidden", dict[str, str] | None, None)]
        members += [(f"c{n}", _decoded(item.type) | None, None) for n, item in enumerate(schema)]
        # names of fields may be no identifiers, or those of Python
        names = {f"c{n}": item.name for n, item in enumerate(schema)} | {"hidden": NOT_FINITE}
        source = msgspec.defstruct("Source", members, gc=False, rename=names)
        hit = msgspec.defstruct(
            "Hit",
            [("source", source), ("sort", msgspec.Raw, msgspec.Raw(b"null"))],
            gc=False,
            rename={"source": "_source"},
        )
        total = msgspec.defstruct("Total", [("value", int)])
        hits = msgspec.defstruct("Hits", [("hits", list[hit]), ("total", total | None, None)])  # type: ignore[valid-type]
        answer = msgspec.defstruct(
            "Found",
            [("hits", hits), ("timed_out", bool), ("shards", _Shards), ("pit_id", str | None, None)],
            rename={"shards": "_shards"},
        )
        self._decoder = msgspec.json.Decoder(answer)

    def decode(self, raw: bytes | str) -> Answer:
        """Decode an answer. Raises :class:`msgspec.MsgspecError` for anything else."""
        answer: Any = self._decoder.decode(raw)
        hits = answer.hits.hits
        return Answer(
            [hit.source for hit in hits],
            msgspec.json.decode(hits[-1].sort) if hits else None,
            answer.hits.total.value if answer.hits.total else None,
            answer.timed_out,
            answer.shards,
            answer.pit_id,
        )

    def batch(self, rows: Sequence[Any]) -> pa.RecordBatch:
        """Return rows as columns; missing members are null."""
        hidden_rows = [(row, hit.hidden) for row, hit in enumerate(rows) if hit.hidden]
        arrays = []
        for number, item in enumerate(self.schema):
            values = list(map(attrgetter(f"c{number}"), rows))
            # few documents have any: all others are decoded without a look at them
            for row, strange in hidden_rows:
                if item.name in strange:
                    values[row] = float(strange[item.name])
            arrays.append(_array(values, item.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_nested(kind):
        return pa.array([_members(value) for value in values], kind)
    # msgspec reads base64 of values that it decodes into bytes
    if pa.types.is_binary(kind) or _decoded(kind) is not str:
        return pa.array(values, kind)
    # times and days: Arrow reads their text, a column at a time
    return pa.array(values, pa.string()).cast(kind)


def _decoded(kind: pa.DataType) -> Any:
    if pa.types.is_map(kind):
        return dict[str, float | str | None]
    if pa.types.is_list(kind):
        return list[float | str | None]
    if pa.types.is_binary(kind):
        return bytes
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_integer(kind):
        return int
    return float if pa.types.is_floating(kind) else str


def _members(value: Any) -> Any:
    """Return a map or list with its numbers, those spelled as text included."""
    if isinstance(value, dict):
        return [(name, _number(number)) for name, number in value.items()]
    return value if value is None else [_number(number) for number in value]


def _number(value: float | str | None) -> float | None:
    return float(value) if isinstance(value, str) else value
