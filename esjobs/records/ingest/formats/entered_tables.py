"""Formats of small tables that people import: each row is typed, stored, or refused with a reason."""

import csv
import io
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from esjobs.core.arrow import given_schema
from esjobs.core.errors import InputError, UsageError, WindowError
from esjobs.core.fields import Field
from esjobs.core.tables import Table
from esjobs.core.window import parse_time
from esjobs.records.ingest.base import FIRST_YEAR, LAST_YEAR, Parsed, RowError
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.small_files import LARGEST, text_of
from esjobs.records.ingest.refusals import Refusals

MISSING, REPEATED, CONTRADICTS = "missing value", "repeated", "contradicts an earlier row"
NO_NUMBER, OUT_OF_RANGE, BAD_TEXT = "not a number", "out of range", "bad text"
_NO_AMOUNT = frozenset({"", "-", "null", "na", "not_available"})
_LONGEST, _SHOWN = 200, 60  # Characters of a name; of a value in a message


@dataclass(frozen=True)
class EnteredRow:
    """A row of a file: its number, table, text for the list of refused rows, and its values.

    ``typed`` raises :class:`RowError` for a row that cannot be used.
    """

    number: int
    table: Table
    text: str
    typed: Callable[[], dict[str, Any]]


Rows = Callable[[str, Path, Mapping[str, Any]], Iterator[EnteredRow]]
"""Text, file for messages, and options to rows; raises :class:`InputError` for another format."""


@dataclass(frozen=True)
class EnteredTables:
    """A source of entered tables.

    ``what``: its contents in messages; ``notes``: sentences about the rows of a table; ``finished``: adds
    columns that rest on several rows.
    """

    name: str
    what: str
    tables: tuple[Table, ...]
    rows: Rows
    settable: tuple[Field, ...] = ()
    notes: Callable[[Sequence[Mapping[str, Any]]], Iterator[str]] = lambda _: iter(())
    finished: Callable[[Sequence[dict[str, Any]]], None] = lambda _: None
    default_source: str = "entered"
    most: ClassVar[int] = LARGEST

    def load_facts(
        self, contents: Sequence[tuple[str, str]], fill: Mapping[str, object]
    ) -> dict[str, object]:
        """Return what names an import: the bytes and the options, whatever the file is called."""
        if len(contents) > 1:
            raise UsageError(f"{self.what} are imported one file at a time")
        return {"content": contents[0][1], "form": self.name, **{k: str(v) for k, v in fill.items()}}

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield the rows by table, equal ones once; one that contradicts an earlier row is rejected."""
        path = file if isinstance(file, Path) else Path(file.name)
        # the file is small: every refused row is listed
        refusals = Refusals(file.name, listed=sys.maxsize)
        rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        seen: dict[tuple[object, ...], Mapping[str, Any]] = {}
        for row in self.rows(text_of(file, path, self.what), path, fill):
            try:
                typed = {"source": path.name} | row.typed()
                _require_new(typed, row.table, seen)
            except RowError as error:
                refusals.refuse(error, row.number, row.text)
                continue
            rows[row.table.name].append(typed)
        rejects = refusals.take()
        if not rows and not rejects:
            raise InputError(f"{path} has no rows; expected {self.what}")
        for table in self.tables:
            if found := rows[table.name]:
                self.finished(found)
                notes = (f"{path.name}: {note}" for note in self.notes(found))
                yield Parsed.of(found, rejects, notes, table)
                rejects = ()
        if rejects:
            yield Parsed.of((), rejects, (), self.tables[0])


def _require_new(
    row: Mapping[str, Any], table: Table, seen: dict[tuple[object, ...], Mapping[str, Any]]
) -> None:
    names = given_schema(table).names
    # a table without a key holds each row once
    earlier = seen.setdefault((table.name, *(row.get(name) for name in table.key or names)), row)
    if all(row.get(name) == earlier.get(name) for name in names):
        if earlier is not row:
            raise RowError(REPEATED, "", "repeats an earlier row")
        return
    detail = f"an earlier row has the same {', '.join(table.key)}; accepted: one row of each"
    raise RowError(CONTRADICTS, "", detail)


def document(text: str, path: Path, expected: str) -> Any:
    """Return the content of a JSON file; :class:`InputError` if it is not JSON."""
    try:
        content = json.loads(text)
        # json accepts half of a surrogate pair, which no store can write as UTF-8
        if "\\ud" in text.lower():
            json.dumps(content, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {error.lineno}: not JSON ({error.msg}); expected {expected}"
        ) from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"{path}: half of a surrogate pair in a text; accepted: complete characters"
        ) from error
    except RecursionError as error:
        raise InputError(f"{path}: nested too deeply; expected {expected}") from error
    except ValueError as error:
        raise InputError(f"{path}: invalid JSON ({error}); expected {expected}") from error
    return content


def table_rows(
    text: str, path: Path, *, fold: bool = True
) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Return the column names and the rows of a table: line and cells, empty rows omitted.

    ``fold``: names in lower case. Separators are commas, semicolons or tabs; what a short row lacks is empty.
    Raises :class:`InputError` for a repeated column.
    """
    # the separator that the header has most of
    head = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count), strict=True)
    try:
        header = [name.strip().lower() if fold else name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise InputError(f"{path}, line 1: {error}; expected a text table with a header") from error
    repeated = next((name for name in header if header.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"{path}, line 1: the column name '{repeated[:_SHOWN]}' is repeated; keep one")
    return header, _cells(reader, header, path)


def _cells(reader: Any, header: Sequence[str], path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                row = dict.fromkeys(header, "") | dict(zip(header, map(str.strip, cells), strict=False))
                # the typed row refuses it: a decimal comma splits a number in two
                yield reader.line_num, row if len(cells) <= len(header) else {**row, _EXTRA: "1"}
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; expected a text table") from error


_EXTRA = "\0cells"  # no column can be called this: NUL is refused in texts


def require_columns(header: Sequence[str], wanted: Sequence[str], path: Path, what: str) -> None:
    """Raise :class:`InputError` unless a header has some columns."""
    missing = [name for name in wanted if name not in header]
    if missing:
        found = ", ".join(header)[:_LONGEST] or "nothing"
        raise InputError(f"{path}, line 1: no column {', '.join(missing)} of {what}; found {found}")


def text_rows(
    rows: Iterable[tuple[int, Mapping[str, str]]], table: Table, typed: Callable[[Any], dict[str, Any]]
) -> Iterator[EnteredRow]:
    """Yield the rows of a table in text, typed by a function of their cells.

    One with more cells than the header has columns is refused.
    """
    for number, row in rows:
        yield EnteredRow(number, table, ",".join(row.values()), partial(_typed, typed, row))


def _typed(typed: Callable[[Any], dict[str, Any]], row: Mapping[str, str]) -> dict[str, Any]:
    require_cells(row)
    return typed(row)


def require_cells(row: Mapping[str, str]) -> None:
    """Raise :class:`RowError` for a row with more cells than the header has columns."""
    if _EXTRA in row:
        raise RowError("wrong number of columns", "", "more cells than columns; quote text with separators")


def refused(number: int, table: Table, text: object, error: RowError) -> EnteredRow:
    """Return a row of a file that cannot be used."""

    def refuse() -> dict[str, Any]:
        raise error

    return EnteredRow(number, table, str(text), refuse)


def name_in(row: Mapping[str, Any], name: str, *, required: bool = False) -> str | None:
    """Return a name without surrounding blanks, None if it is empty; :class:`RowError` if unusable."""
    value = row.get(name)
    text = value.strip() if isinstance(value, str) else "" if value is None else "\0"
    if "\0" in text or len(text) > _LONGEST:
        raise RowError(BAD_TEXT, name, f"{name} is {str(value)[:_SHOWN]!r}; accepted: a short text")
    if required and not text:
        raise RowError(MISSING, name, f"{name} is empty; accepted: a name")
    return text or None


def amount_in(row: Mapping[str, Any], name: str, most: float, least: float = 0.0) -> float | None:
    """Return a number within bounds, None if it is empty; :class:`RowError` for anything else."""
    return amount(row.get(name), name, most, least)


def amount(value: Any, name: str, most: float, least: float = 0.0) -> float | None:
    """Return a value as :func:`amount_in` does, ``name`` for its error."""
    if value is None or (isinstance(value, str) and value.strip().lower() in _NO_AMOUNT):
        return None
    try:
        # True is 1.0 for float()
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise RowError(NO_NUMBER, name, f"{name} is {str(value)[:_SHOWN]!r}; accepted: a number")
    if not least <= number <= most:
        raise RowError(OUT_OF_RANGE, name, f"{name} is {number:g}; accepted: {least:g} to {most:g}")
    return number


def whole_in(row: Mapping[str, Any], name: str, least: int, most: int) -> int | None:
    """Return a whole number within bounds, None if it is empty; :class:`RowError` for anything else."""
    number = amount_in(row, name, most, least)
    if number is not None and number != int(number):
        raise RowError(NO_NUMBER, name, f"{name} is {number:g}; accepted: a whole number")
    return None if number is None else int(number)


def year_in(row: Mapping[str, Any]) -> int:
    """Return the year; :class:`RowError` without one."""
    year = whole_in(row, "year", FIRST_YEAR, LAST_YEAR)
    if year is None:
        raise RowError(MISSING, "year", "year is empty; accepted: a year")
    return year


def time_in(row: Mapping[str, Any], name: str) -> datetime | None:
    """Return a UTC time, None if it is empty; :class:`RowError` if it is not one."""
    text = name_in(row, name)
    try:
        return None if text is None else parse_time(text)
    except WindowError:
        raise RowError("bad time", name, f"{name} is {text!r:.60}; accepted: 2026-04-01") from None
