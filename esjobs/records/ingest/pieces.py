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
    """Yield the pieces of a file; :class:`UsageError` that names the source for a wrong one."""
    produced: object = source.parse(file, fill)
    if not isinstance(produced, Iterable):
        raise UsageError(
            f"parse of source {source.name} returned {_kind(produced)}; expected an iterable of "
            "esjobs.records.ingest.base.Parsed"
        )
    for parsed in produced:
        if not isinstance(parsed, Parsed):
            raise UsageError(
                f"source {source.name} yielded {_kind(parsed)}; expected esjobs.records.ingest.base.Parsed"
            )
        if wrong := _wrong(parsed):
            raise UsageError(f"source {source.name} yielded a piece with {wrong}")
        yield parsed


def _kind(produced: object) -> str:
    return "None" if produced is None else kind_of(produced)


def _wrong(parsed: Parsed) -> str:
    facts: tuple[tuple[str, object, bool, str], ...] = (
        ("its batch", parsed.batch, isinstance(parsed.batch, pa.RecordBatch), "a pyarrow.RecordBatch"),
        (
            "its table",
            parsed.table,
            parsed.table is None or isinstance(parsed.table, Table),
            "an esjobs.core.tables.Table, or None for jobs",
        ),
        ("rows_in", parsed.rows_in, _is_count(parsed.rows_in), "number of rows read"),
        ("its notes", parsed.notes, _are_texts(parsed.notes), "a tuple of texts"),
        ("repaired", parsed.repaired, _are_counts(parsed.repaired), "a mapping of texts to counts"),
        (
            "its rejects",
            parsed.rejects,
            isinstance(parsed.rejects, tuple | list),
            "a tuple of esjobs.records.ingest.base.Reject",
        ),
    )
    for name, value, right, expected in facts:
        if not right:
            return f"{_kind(value)} for {name}; expected {expected}"
    return next(filter(None, map(_wrong_reject, parsed.rejects)), "")


def _wrong_reject(reject: object) -> str:
    if not isinstance(reject, Reject):
        return f"{_kind(reject)} among its rejects; expected esjobs.records.ingest.base.Reject"
    for name in (*_TEXTS, *_NUMBERS):
        value = getattr(reject, name)
        if name in _TEXTS and not isinstance(value, str):
            return f"{_kind(value)} for {name} of a reject; expected a text"
        if name in _NUMBERS and not _is_count(value):
            return f"{_kind(value)} for {name} of a reject; expected a number from 0"
    return ""


def _are_texts(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(note, str) for note in value)


def _are_counts(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(what, str) and _is_count(count) for what, count in value.items()
    )


def _is_count(value: object) -> bool:
    # True is an int in Python; a count must fit Arrow's int64
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
