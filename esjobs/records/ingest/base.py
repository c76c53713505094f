"""What every source promises: a file in, batches of jobs or of rows of a result table, and refused rows, out.

Nothing here reads bytes. ``Source`` is the seam between the ingest step and a format, ``Parsed`` what crosses
it: rows in = rows of the batch + rows refused, for every piece of every file.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, cast

import pyarrow as pa

from esjobs.core.errors import UsageError, WindowError
from esjobs.core.fields import JOB_FIELDS, Field, field
from esjobs.core.tables import Table
from esjobs.core.text import kind_of
from esjobs.core.window import parse_time
from esjobs.core.words import ALL_TYPES
from esjobs.records.ingest.reading.inputs import Input

EXCERPT = 200
"""Characters of a refused row that are kept."""

MAX_LINE = 1 << 20
"""Bytes of the longest line (or record with quoted line ends) that is read; longer ones are refused."""

MAX_NUMBER = 1e18
"""Largest magnitude of a number; sums of squares over any number of jobs stay finite below it."""

MAX_COUNT = 1e30
"""Largest number inside a map: events counted on all cores of a large job pass ``MAX_NUMBER``."""

MAX_INTEGER = 2**53 - 1
"""Largest integer: beyond it neighbouring integers share one double."""

FIRST_YEAR, LAST_YEAR = 1990, 2100
"""Years a time may lie in, both included."""

TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
"""How a truth value may be written, in any case."""

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
    """A piece of a file: good rows of one table and the refused ones, in file order each.

    ``table``: whose rows they are; None: jobs. The schema of ``batch`` is ``PUT_SCHEMA`` for jobs, and for
    other tables their columns without those that name the load (:func:`esjobs.core.arrow.given_schema`).
    ``rows_in`` = rows of the batch + the sum of ``n_rows`` over the rejects; rows that are not listed one by
    one come in the last piece. ``notes``: what a reader should know, ``FILE: TEXT``, each said once per file.
    ``repaired``: what was put right, and how often; added up over all files of the load.
    """

    batch: pa.RecordBatch
    rejects: tuple[Reject, ...]
    rows_in: int
    notes: tuple[str, ...] = ()
    table: Table | None = None
    repaired: Mapping[str, int] = dataclasses.field(default_factory=dict)


class Source(Protocol):
    """A format that records come in: of jobs, of rows of a result table, or of both.

    Three members are required; a source may also have

    - ``settable``: the fields that ``--set`` may fill; without it, those of a job, and a load that brings no
      jobs takes none;
    - ``accept(file)``: raises :class:`InputError` when the first bytes of a long stream show that the rest
      need not be read;
    - ``most``: bytes after which a stream is not read on;
    - ``files(paths)``: the files to read, where paths may be folders;
    - ``load_facts(contents, fill)``: what a load is named by, a mapping that can be written as JSON;
      ``contents`` are pairs of a file's name and the digest of its bytes. Without it: the format, the names,
      the bytes and the fill.
    """

    @property
    def name(self) -> str:
        """The format's name on the command line."""

    @property
    def default_source(self) -> str:
        """Value of the field ``source`` where neither record nor fill has one."""

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Stream one file; memory stays bounded by a few blocks, whatever the size of the file.

        ``fill``: typed values (see :func:`parse_fill`) for fields that a record lacks.
        Raises :class:`InputError` when the file cannot be read to its end: then nothing of it counts.
        """


def require_source(given: object) -> Source:
    """The object as a source, or :class:`UsageError` that says what it lacks of one."""
    wanted = {"name": str, "default_source": str}
    lacking = [f"{name}, a text" for name, kind in wanted.items() if not _has(given, name, kind)]
    if isinstance(given, type) or not callable(getattr(given, "parse", None)):
        lacking.append("parse(file, fill), a method")
    if lacking:
        raise UsageError(
            f"{kind_of(given)} is no source; it lacks {' and '.join(lacking)}: see "
            f"esjobs.records.ingest.base.Source"
        )
    return cast("Source", given)


def _has(given: object, name: str, kind: type) -> bool:
    value = getattr(given, name, None)
    return isinstance(value, kind) and bool(value)


def settable(source: Source) -> tuple[Field, ...]:
    """The fields that a fill may name for a source."""
    return getattr(source, "settable", JOB_FIELDS)


def parse_fill(pairs: Sequence[str], known: Sequence[Field] = JOB_FIELDS) -> dict[str, object]:
    """Read ``FIELD=VALUE`` pairs into typed values; ``known``: the fields that may be named.

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
        wanted = _wanted(name, known)
        if name == "job_id" and known is JOB_FIELDS:
            raise UsageError("job_id cannot be set: it would be the same for every row")
        if name in filled:
            raise UsageError(f"{name} is set twice; set it once")
        filled[name] = _typed(wanted, text)
    return filled


def _wanted(name: str, known: Sequence[Field]) -> Field:
    for candidate in known:
        if candidate.name == name:
            return candidate
    if known is not JOB_FIELDS:
        raise UsageError(f"{name} cannot be set; there are {', '.join(item.name for item in known)}")
    # names the nearest one, or says that it is computed
    if field(name).derived is not None:
        raise UsageError(f"{name} is computed from other fields and cannot be set; set those instead")
    return field(name)


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
        case "boolean":
            return _truth(known, text)
        case "map" | "list":
            raise UsageError(f"{known.name} cannot be set: it holds many numbers; give it in the records")
        case _:
            if "\0" in text:
                raise UsageError(f"{known.name} holds the character NUL; accepted: text without it")
            return text


def _truth(known: Field, text: str) -> bool:
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise UsageError(f"{known.name}={text} is neither true nor false; expected true or false")


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
