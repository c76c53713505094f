"""Interface between the ingest step and formats: a file in; batches of rows and rejected rows out.

Nothing here reads bytes. ``Source`` is the seam between the ingest step and a format, ``Parsed`` what crosses
it: rows in = rows of the batch + rows refused, for every piece of every file.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA, given_schema
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

LARGEST: Mapping[str, float] = {
    **dict.fromkeys(("cores", "requested_cores", "nodes", "gpus", "requested_gpus"), 1e7),
    "wall_s": 1e9,
}
"""Largest values of fields that sums of all jobs rest on: more cores than any machine has, 30 years."""

FIRST_YEAR, LAST_YEAR = 1990, 2100
"""Years a time may lie in, both included."""

TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
"""Spellings of truth values, in any case."""

RESERVED = {"processing_type": (ALL_TYPES,)}
"""Values with a meaning of their own: ``all`` stands for every processing type together."""


_SHOWN = 60


def shortened(text: str) -> str:
    """Return the beginning of a cell as messages quote it.

    >>> shortened("7" * 100) == "7" * 60 + "…"
    True
    """
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


@dataclass(frozen=True)
class Reject:
    """A rejected row. ``line`` counts from 1 (header = line 1; rows of a Parquet file from 1).

    ``field``: the first wrong field, empty if the row itself is wrong. ``n_rows`` above 1: an entry for more
    rows than are listed, ``line`` is the first of them.
    """

    reason: str
    file: str
    line: int
    field: str
    detail: str
    excerpt: str
    n_rows: int = 1


class RowError(Exception):
    """A row that cannot be used, with reason, field and detail of its :class:`Reject`."""

    def __init__(self, reason: str, field: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.field, self.detail = reason, field, detail


@dataclass(frozen=True)
class Parsed:
    """A piece of a file: good rows of one table (None: jobs) and the rejected ones, in file order.

    ``batch`` has ``PUT_SCHEMA``, or the columns of the table without those that name the load. ``rows_in`` =
    rows of the batch + ``n_rows`` of the rejects. ``notes``: ``FILE: TEXT``. ``repaired``: counts of repairs,
    added up over the load.
    """

    batch: pa.RecordBatch
    rejects: tuple[Reject, ...]
    rows_in: int
    notes: tuple[str, ...] = ()
    table: Table | None = None
    repaired: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rows: Iterable[Mapping[str, Any]],
        rejects: Iterable[Reject] = (),
        notes: Iterable[str] = (),
        table: Table | None = None,
        repaired: Mapping[str, int] | None = None,
    ) -> "Parsed":
        """Return the piece of rows that are mappings; columns without a value are missing."""
        schema = PUT_SCHEMA if table is None else given_schema(table)
        batch = pa.RecordBatch.from_pylist(list(rows), schema=schema)
        rejects = tuple(rejects)
        # an entry may stand for many rows
        rows_in = batch.num_rows + sum(reject.n_rows for reject in rejects)
        return cls(batch, rejects, rows_in, tuple(notes), table, repaired or {})


class Source(Protocol):
    """A format that records come in: of jobs, of rows of a result table, or of both.

    Three members are required; a source may also have

    - ``settable``: the fields that ``--set`` may fill; without it, those of a job, and a load that brings no
      jobs takes none;
    - ``with_events = False``: its jobs carry no events, so a load does not mention what only fits need; None:
      if no row has a task or events;
    - ``mapped(path)``: the format with a map of columns and names (``--map``);
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
        """Stream one file in bounded memory; :class:`InputError` if it cannot be read to its end.

        ``fill``: typed values (see :func:`parse_fill`) for fields that a record lacks.
        """


def require_source(candidate_source: object) -> Source:
    """The object as a source, or :class:`UsageError` that says what it lacks of one."""
    texts = {name: getattr(candidate_source, name, None) for name in ("name", "default_source")}
    lacking = [f"{name}, a text" for name, text in texts.items() if not (isinstance(text, str) and text)]
    if isinstance(candidate_source, type) or not callable(getattr(candidate_source, "parse", None)):
        lacking.append("parse(file, fill), a method")
    if lacking:
        raise UsageError(
            f"{kind_of(candidate_source)} is not a source: {' and '.join(lacking)} missing; see "
            "esjobs.records.ingest.base.Source"
        )
    return cast("Source", candidate_source)


def load_facts(
    form: str, contents: Sequence[tuple[str, str]], fill: Mapping[str, object], **more: object
) -> dict[str, object]:
    """Return what a load is named by unless its source says otherwise; see :class:`Source`."""
    filled = {name: str(value) for name, value in fill.items()}
    return {"format": form, "files": contents, "fill": filled, **more}


def with_map(source: Source, path: Path) -> Source:
    """The source with a map of columns and names; :class:`UsageError` where the format has none."""
    mapped = getattr(source, "mapped", None)
    if mapped is None:
        raise UsageError(f"format {source.name} accepts no map; omit --map")
    return cast("Source", mapped(path))


def settable(source: Source) -> tuple[Field, ...]:
    """The fields that a fill may name for a source."""
    return getattr(source, "settable", JOB_FIELDS)


def parse_fill(pairs: Sequence[str], fillable: Sequence[Field] = JOB_FIELDS) -> dict[str, object]:
    """Read ``FIELD=VALUE`` pairs into typed values; :class:`UsageError` for one that cannot be set.

    >>> parse_fill(["processing_type=simul", "cores=8"])
    {'processing_type': 'simul', 'cores': 8}
    """
    filled: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name, text = name.strip(), text.strip()
        if not equals or not name:
            raise UsageError(f"'{pair}' is not FIELD=VALUE; write for example processing_type=simul")
        wanted = _wanted(name, fillable)
        # formats with one job per file have a fillable job_id of their own, see job_files.OF_ONE_JOB
        if name == "job_id" and fillable is JOB_FIELDS:
            raise UsageError("job_id cannot be set, because all rows would have the same one")
        if name in filled:
            raise UsageError(f"{name} is set twice; set it once")
        filled[name] = _typed(wanted, text)
    return filled


def _wanted(name: str, fillable: Sequence[Field]) -> Field:
    for candidate in fillable:
        if candidate.name == name:
            return candidate
    # a format with fields of its own lists them
    if fillable is not JOB_FIELDS:
        raise UsageError(f"{name} cannot be set; use one of: {', '.join(item.name for item in fillable)}")
    # names the nearest one, or says that it is computed
    if field(name).derived is not None:
        raise UsageError(f"{name} is computed from other fields and cannot be set; set those fields")
    return field(name)


def _typed(fillable: Field, text: str) -> object:
    if not text:
        raise UsageError(f"{fillable.name}= has no value; omit it to leave the field missing")
    if text in RESERVED.get(fillable.name, ()):
        raise UsageError(
            f"{fillable.name}={text}: '{text}' is reserved for all values together; use a different name"
        )
    match fillable.type:
        case "integer" | "number":
            return _number(fillable, text)
        case "time":
            return _time(fillable, text)
        case "boolean":
            return _truth(fillable, text)
        case "map" | "list":
            raise UsageError(
                f"{fillable.name} cannot be set because it is a list of numbers; put it into the records"
            )
        case _:
            if "\0" in text:
                raise UsageError(f"{fillable.name} contains the character NUL; accepted: text without it")
            return text


def _truth(fillable: Field, text: str) -> bool:
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise UsageError(f"{fillable.name}={text} is neither true nor false; expected true or false")


def _number(fillable: Field, text: str) -> int | float:
    kind, limit = ("whole ", MAX_INTEGER) if fillable.type == "integer" else ("", MAX_NUMBER)
    accepted = f"expected a {kind}number" + (", 0 or more" if fillable.bounded else "")
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{fillable.name}={text} is not a number; {accepted}") from None
    # float() accepts inf, nan and 1e400
    if not math.isfinite(value) or abs(value) > limit or (fillable.bounded and value < 0):
        raise UsageError(f"{fillable.name}={text} is out of range; {accepted}, at most {limit:g}")
    if fillable.type == "number":
        return value
    if value != int(value):
        raise UsageError(f"{fillable.name}={text} is not a whole number; {accepted}")
    return int(value)


def _time(fillable: Field, text: str) -> datetime:
    try:
        moment = parse_time(text)
    except WindowError:
        raise UsageError(
            f"{fillable.name}={text} is not a time; expected ISO 8601 in UTC, such as 2018-08-15T12:00:00Z"
        ) from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise UsageError(f"{fillable.name}={text} is out of range; expected {FIRST_YEAR} to {LAST_YEAR}")
    return moment
