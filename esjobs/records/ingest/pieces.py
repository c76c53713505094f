"""The pieces that a source gives, checked to be pieces: sources are written by others, too."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.core.tables import Table
from esjobs.core.text import kind_of
from esjobs.records.ingest.base import Parsed, Reject, Source
from esjobs.records.ingest.reading.inputs import Input

_TEXTS, _NUMBERS = ("reason", "file", "field", "detail", "excerpt"), ("line", "n_rows")


def pieces(source: Source, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
    """What the source makes of a file; :class:`UsageError` that names the source for what is no piece."""
    given: object = source.parse(file, fill)
    if not isinstance(given, Iterable):
        raise UsageError(
            f"parse of the source {source.name} gave {_kind(given)}; "
            "expected pieces of esjobs.records.ingest.base.Parsed, one after the other"
        )
    for parsed in given:
        if not isinstance(parsed, Parsed):
            raise UsageError(
                f"the source {source.name} gave {_kind(parsed)}; expected pieces of "
                f"esjobs.records.ingest.base.Parsed"
            )
        if wrong := _wrong(parsed):
            raise UsageError(f"the source {source.name} gave a piece with {wrong}")
        yield parsed


def _kind(given: object) -> str:
    return "None" if given is None else kind_of(given)


def _wrong(parsed: Parsed) -> str:
    """What a piece has that it should not have; empty when it is as promised."""
    batch: object = parsed.batch
    table: object = parsed.table
    rejects: object = parsed.rejects
    repaired: object = parsed.repaired
    notes: object = parsed.notes
    if not isinstance(batch, pa.RecordBatch):
        return f"{_kind(batch)} for its batch; expected a pyarrow.RecordBatch"
    if table is not None and not isinstance(table, Table):
        return f"{_kind(table)} for its table; expected an esjobs.core.tables.Table, or None for jobs"
    if not _is_count(parsed.rows_in):
        return f"{_kind(parsed.rows_in)} for rows_in; expected how many rows were read"
    if not isinstance(notes, tuple | list) or not all(isinstance(note, str) for note in notes):
        return f"{_kind(notes)} for its notes; expected a tuple of texts"
    if not isinstance(repaired, Mapping) or not all(
        isinstance(what, str) and _is_count(count) for what, count in repaired.items()
    ):
        return f"{_kind(repaired)} for repaired; expected a mapping of texts to counts"
    if not isinstance(rejects, tuple | list):
        return f"{_kind(rejects)} for its rejects; expected a tuple of esjobs.records.ingest.base.Reject"
    for reject in rejects:
        if not isinstance(reject, Reject):
            return f"{_kind(reject)} among its rejects; expected esjobs.records.ingest.base.Reject"
        values = {name: getattr(reject, name) for name in (*_TEXTS, *_NUMBERS)}
        for name, value in values.items():
            if not (isinstance(value, str) if name in _TEXTS else _is_count(value)):
                wanted = "a text" if name in _TEXTS else "a number from 0"
                return f"{_kind(value)} for {name} of a reject; expected {wanted}"
    return ""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
