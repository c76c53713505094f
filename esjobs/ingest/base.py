"""What every input format promises: a file in, batches of jobs and refused rows out.

Nothing here reads bytes. ``Source`` is the seam between the ingest step and a format, ``Parsed`` what crosses
it: rows in = rows of the batch + rows refused, for every piece of every file.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from esjobs.core.errors import UsageError, WindowError
from esjobs.core.fields import Field, field
from esjobs.core.window import parse_time
from esjobs.core.words import ALL_TYPES
from esjobs.ingest.reading.inputs import Input

EXCERPT = 200
"""Characters of a refused row that are kept."""

MAX_LINE = 1 << 20
"""Bytes of the longest line (or record with quoted line ends) that is read; longer ones are refused."""

MAX_NUMBER = 1e18
"""Largest magnitude of a number; sums of squares over any number of jobs stay finite below it."""

MAX_INTEGER = 2**53 - 1
"""Largest integer: beyond it neighbouring integers share one double."""

FIRST_YEAR, LAST_YEAR = 1990, 2100
"""Years a time may lie in, both included."""

RESERVED = {"processing_type": (ALL_TYPES,)}
"""Values with a meaning of their own: ``all`` stands for every processing type together."""


@dataclass(frozen=True)
class Reject:
    """A row that was refused. ``line`` counts from 1 (header = line 1; rows of a Parquet file from 1).

    ``field``: the first field that offends, empty when the row as a whole does. ``excerpt``: the start of
    the row, at most ``EXCERPT`` characters. ``n_rows``: how many rows the entry stands for; above 1 when rows
    are not listed one by one any more, ``line`` is the first of them then and there is no excerpt.
    """

    reason: str
    file: str
    line: int
    field: str
    detail: str
    excerpt: str
    n_rows: int = 1


@dataclass(frozen=True)
class Parsed:
    """A piece of a file: the good rows (schema ``PUT_SCHEMA``) and the refused ones, in file order each.

    ``rows_in`` = rows of the batch + the sum of ``n_rows`` over the rejects; rows that are not listed one by
    one come in the last piece. ``notes``: what a reader should know about the file, each said once per file.
    """

    batch: pa.RecordBatch
    rejects: tuple[Reject, ...]
    rows_in: int
    notes: tuple[str, ...] = ()


class Source(Protocol):
    """A format that job records come in."""

    @property
    def name(self) -> str:
        """The format's name on the command line."""

    @property
    def default_source(self) -> str:
        """Value of the field ``source`` where neither record nor fill has one."""

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Stream one file; memory stays bounded by a few blocks, whatever the size of the file.

        ``fill``: canonical values (see :func:`parse_fill`) for fields that a record lacks.
        Raises :class:`InputError` when the file cannot be read to its end: then nothing of it counts.
        """


def parse_fill(pairs: Sequence[str]) -> dict[str, object]:
    """Read ``FIELD=VALUE`` pairs into typed canonical values.

    Raises :class:`UsageError` for an unknown, computed or repeated field and for a value its type refuses.

    >>> parse_fill(["processing_type=simul", "cores=8"])
    {'processing_type': 'simul', 'cores': 8}
    """
    filled: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name, text = name.strip(), text.strip()
        if not equals or not name:
            raise UsageError(f"'{pair}' is not FIELD=VALUE; write for example processing_type=simul")
        known = field(name)
        if known.derived is not None:
            raise UsageError(f"{name} is computed from other fields and cannot be set; set those instead")
        if name == "job_id":
            raise UsageError("job_id cannot be set: it would be the same for every row")
        if name in filled:
            raise UsageError(f"{name} is set twice; set it once")
        filled[name] = _typed(known, text)
    return filled


def _typed(known: Field, text: str) -> object:
    if not text:
        raise UsageError(f"{known.name}= has no value; leave it out to keep the field missing")
    if text in RESERVED.get(known.name, ()):
        raise UsageError(
            f"{known.name}={text}: '{text}' is reserved for all values together; name a real one"
        )
    match known.type:
        case "integer" | "number":
            return _number(known, text)
        case "time":
            return _time(known, text)
        case _:
            if "\0" in text:
                raise UsageError(f"{known.name} holds the character NUL; accepted: text without it")
            return text


def _number(known: Field, text: str) -> int | float:
    accepted = f"expected a {'whole ' if known.type == 'integer' else ''}number" + (
        ", 0 or more" if known.bounded else ""
    )
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{known.name}={text} is not a number; {accepted}") from None
    limit = MAX_INTEGER if known.type == "integer" else MAX_NUMBER
    if not math.isfinite(value) or abs(value) > limit or (known.bounded and value < 0):
        raise UsageError(f"{known.name}={text} is out of range; {accepted}, at most {limit:g}")
    if known.type == "number":
        return value
    if value != int(value):
        raise UsageError(f"{known.name}={text} is not whole; {accepted}")
    return int(value)


def _time(known: Field, text: str) -> datetime:
    try:
        moment = parse_time(text)
    except WindowError:
        raise UsageError(
            f"{known.name}={text} is not a time; expected ISO 8601 in UTC, such as 2018-08-15T12:00:00Z"
        ) from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise UsageError(f"{known.name}={text} is out of range; expected {FIRST_YEAR} to {LAST_YEAR}")
    return moment
