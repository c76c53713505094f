"""Formats whose files are about one job each: a damaged file loses only itself.

Such a file is read at once, up to ``LARGEST`` bytes unpacked. An error in it becomes a rejected row.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.errors import InputError
from esjobs.core.fields import JOB_FIELDS, REQUIRED, Field
from esjobs.core.states import UNFINISHED
from esjobs.core.tables import Table
from esjobs.records.errors.primary import batch_error
from esjobs.records.ingest.base import EXCERPT, Parsed, Reject, RowError
from esjobs.records.ingest.reading import small_files
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.series.rows import Series, rows_of
from esjobs.schema.series import SERIES

LARGEST = 256 << 20
"""Bytes of a file, unpacked: the metrics of some thousand cores over a day."""

DAMAGED = "damaged file"
NOT_A_NUMBER = "not a number"
NO_JOB = "no job id"

JOB_ID = Field("job_id", "keyword", "", "job id of the files, if they do not contain it")
OF_ONE_JOB: tuple[Field, ...] = (*(each for each in JOB_FIELDS if each.name != "job_id"), JOB_ID)
"""Fields that ``--set`` may fill of a format with one job per file: its id, too."""

# At least three digits: fewer are versions, ranks or parts.
_ID = re.compile(r"(?:^|[-_.])(?:job|slurm)?[-_.]?(\d{3,}(?:_\d+)?)(?=[-_.]|$)", re.IGNORECASE)

STATES = {"completed": "finished", "canceled": "cancelled", "error": "failed"}
"""States of jobs as monitoring systems write them, where the catalogue has another word."""


def content(file: Input) -> bytes:
    """The bytes of a file, plain or gzip; :class:`InputError` for a damaged or too large one."""
    data = small_files.content(file, LARGEST, file.name, "; split it")
    if not data:
        raise InputError(f"{file.name} is empty; copy it again")
    return data


@dataclass(frozen=True)
class InFolders:
    """A file whose name says too little: messages and origins name its folders, too."""

    path: Path

    @property
    def name(self) -> str:
        """The name with the three folders that it is in."""
        return "/".join(part for part in self.path.parts[-4:] if part != "/")

    def open(self, mode: Literal["rb"], /) -> io.BufferedReader:
        """The bytes from the first one on."""
        return self.path.open(mode)


def text_of(data: bytes, file: Input) -> str:
    """Bytes as text; :class:`InputError` for what is not UTF-8."""
    return small_files.decoded(data, file.name)


def document(
    data: bytes | str,
    file: Input,
    decode: Callable[[bytes | str], Any] = json.loads,
    hint: str = "; copy it again",
) -> Any:
    """Return JSON decoded; :class:`InputError` for text that is not JSON, or is nested too deeply."""
    try:
        return decode(data)
    except RecursionError as error:
        raise InputError(f"{file.name} is nested too deeply; copy it again") from error
    except (ValueError, msgspec.MsgspecError) as error:
        raise InputError(f"{file.name} is not valid JSON ({error}){hint}") from error


def text_columns(data: bytes, file: Input, *, fold: bool = False) -> tuple[pa.Table, dict[str, int]]:
    """CSV as columns of text, and lines that were ignored by the reason; ``fold``: names in lower case.

    Raises :class:`InputError` for text that is not UTF-8 and for columns that appear twice.
    """
    # all of it: Arrow decodes a line of another length only to name it, and cannot say that it failed
    header = text_of(data, file).partition("\n")[0].strip().split(",")
    names = [name.strip().strip('"') for name in header]
    if fold:
        names = [name.lower() for name in names]
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise InputError(f"{file.name}: column {twice} appears {names.count(twice)} times; keep one")
    data, n_open = _without_open_quotes(data)
    other_length: list[int] = []

    def skip(row: pa_csv.InvalidRow) -> str:
        other_length.append(row.actual_columns)
        return "skip"

    table = pa_csv.read_csv(
        io.BytesIO(data),
        read_options=pa_csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False),
        parse_options=pa_csv.ParseOptions(invalid_row_handler=skip),
        convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )
    return table, {
        "lines with another number of cells, ignored": len(other_length),
        "lines with an unclosed quote, ignored": n_open,
    }


def _without_open_quotes(data: bytes) -> tuple[bytes, int]:
    # a quote that does not end would swallow other lines
    if b'"' not in data:
        return data, 0
    header, *lines = data.split(b"\n")
    closed = [line for line in lines if not line.count(b'"') % 2]
    return b"\n".join([header, *closed]), len(lines) - len(closed)


def id_in(name: str) -> str | None:
    """The id of a job in the name of a file: digits that stand alone; None where there are none.

    >>> id_in("perf-4032711.txt"), id_in("slurm_12345_7.csv"), id_in("timeseries.csv.gz")
    ('4032711', '12345_7', None)
    """
    match = _ID.search(Path(name).name)
    return match[1] if match else None


@dataclass
class Books:
    """The rows of one file that were refused, and what was repaired, how often."""

    file: str
    rejects: list[Reject] = field(default_factory=list)
    repaired: dict[str, int] = field(default_factory=dict)

    def refuse(self, reason: str, name: str, detail: str, excerpt: str = "", line: int = 1) -> None:
        """Refuse a row."""
        self.rejects.append(Reject(reason, self.file, line, name, detail, excerpt[:EXCERPT]))

    def repair(self, what: str, count: int = 1) -> None:
        """Count something that was repaired."""
        if count:
            self.repaired[what] = self.repaired.get(what, 0) + count


class NoJobIdError(InputError):
    """Nothing says which job a file is about."""


def job_id_of(file: Input, fill: Mapping[str, object]) -> str:
    """The id that ``--set`` gives, else that in the file's name; :class:`NoJobIdError` without either."""
    job_id = fill.get("job_id") or id_in(file.name)
    if job_id is None:
        raise NoJobIdError(
            f"{file.name} does not name its job; add --set job_id=ID, or put the id into the file name"
        )
    return str(job_id)


def damaged(file: Input, error: Exception, table: Table | None) -> Parsed:
    """A file that cannot be read, or that no job is known of, as one refused row."""
    if isinstance(error, NoJobIdError):
        reject = Reject(NO_JOB, file.name, 1, "job_id", str(error), "")
    else:
        reject = Reject(DAMAGED, file.name, 1, "", _said(error, file), "")
    return Parsed.of((), (reject,), table=table)


def moment(seconds: float, what: str = "a time") -> datetime:
    """Seconds since 1970 as a moment; :class:`InputError` for one that no calendar has."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(f"{what} of {seconds:g} s since 1970 is outside the years 1 to 9999") from error


# What is said in place of Python's own words.
_WORDS: tuple[tuple[type[Exception], str], ...] = (
    (RecursionError, "is nested too deeply"),
    (OverflowError, "contains a number or time that is too large"),
    (KeyError, "lacks a required member"),
    (TypeError, "contains a value of a wrong type"),
    (AttributeError, "contains a value of a wrong type"),
)


def _said(error: Exception, file: Input) -> str:
    if not isinstance(error, InputError):
        for kind, words in _WORDS:
            if isinstance(error, kind):
                return f"{file.name} {words}; copy it again"
    return str(error)


def series_piece(source: str, job_id: str, series: Sequence[Series], books: Books, end: Any = None) -> Parsed:
    """The series of a job, those refused beside them."""
    batch = rows_of(source, job_id, series, end)
    rejects = tuple(books.rejects)
    return Parsed(batch, rejects, batch.num_rows + len(rejects), (), SERIES, books.repaired)


def job_piece(
    job: Mapping[str, Any], file: Input, fill: Mapping[str, object], default_source: str, books: Books
) -> Parsed:
    """A job record, or its refusal when it lacks what every job needs. ``fill`` fills what it lacks."""
    row: dict[str, Any] = {name: value for name, value in fill.items() if name in PUT_SCHEMA.names}
    # what the file says wins over what is filled in
    row |= {name: value for name, value in job.items() if value is not None}
    row.setdefault("source", default_source)
    row |= {"origin_file": file.name, "origin_line": 1}
    if row.get("state") in UNFINISHED:
        codes = {"exit": job["exit_code"]} if "exit_code" in job else {}
        row.setdefault("error", batch_error(row["state"], codes))
    if row.get("counters") is not None:
        # equal maps are equal bytes
        row["counters"] = sorted(row["counters"].items())
    rows = [row]
    if error := _job_error(row):
        books.refuse(error.reason, error.field, error.detail, str(row.get("job_id") or ""))
        rows = []
    return Parsed.of(rows, books.rejects, repaired=books.repaired)


def _job_error(row: Mapping[str, Any]) -> RowError | None:
    for name in REQUIRED:
        if row.get(name) is None:
            detail = f"{name} is missing; add --set {name}=VALUE"
            return RowError(f"missing {name}", name, detail)
    if row.get("state") in ("running", "pending"):
        return RowError("has not ended", "state", f"the job is {row['state']}; load it when it has ended")
    start, end = row.get("start_time"), row["end_time"]
    if start is not None and end < start:
        return RowError("end before start", "end_time", f"the end {end} is before the start {start}")
    return None


def state_of(value: object) -> str | None:
    """Return the end of a job in the words of the catalogue; a number is a text of digits.

    >>> state_of("COMPLETED"), state_of("timeout"), state_of("CANCELLED by 1000")
    ('finished', 'timeout', 'cancelled')
    """
    words = "" if value is None else str(value).split()
    if not words:
        return None
    word = words[0].lower().rstrip("+")
    # Slurm's "CANCELLED by 1000", and its + for a cut word
    return STATES.get(word, word)


def files_below(paths: Sequence[Path], wanted: re.Pattern[str]) -> Iterator[Path]:
    """The paths, folders replaced by the files below them whose names match, in the order of their names."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        # by name: the same folder is the same load, on every file system
        found = sorted(each for each in path.rglob("*") if wanted.fullmatch(each.name) and each.is_file())
        if not found:
            raise InputError(
                f"{path} contains no file of this format; use a different folder, or list the files"
            )
        yield from found


class InFolder:
    """Base of formats that find their files below a folder, by their names."""

    settable: ClassVar[tuple[Field, ...]] = OF_ONE_JOB
    wanted: ClassVar[re.Pattern[str]]

    def files(self, paths: Sequence[Path]) -> list[Path]:
        """Return the files to read, folders searched."""
        return list(files_below(paths, self.wanted))
