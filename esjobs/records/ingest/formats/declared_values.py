"""Formats of declared corepower: a small file, its rows checked and typed.

A file is rejected as a whole: half a table would say of the other half that nothing is declared.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from esjobs.core.arrow import given_schema
from esjobs.core.errors import InputError, UsageError, WindowError
from esjobs.core.fields import Field
from esjobs.core.tables import column
from esjobs.core.window import parse_time
from esjobs.core.words import LEVELS
from esjobs.records.ingest.base import Parsed, Reject
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.small_files import LARGEST, text_of
from esjobs.records.names.cpu_models import canonical
from esjobs.schema.declared import COREPOWER, QUEUES, RECORDS

BENCHMARKS = ("HS06", "HS23")
ACCEPTED = (
    "columns name (or queue, cpu_model), corepower, and optionally benchmark, level, valid_from, "
    "site, parent_corepower, source, country"
)
REPEATED = "repeated"
# Characters of a cell that a message quotes.
_SHOWN = 60
# No core delivers more HS06 or HS23 than this (the best of HEPiX's tables 40); larger ones are servers.
_LARGEST = 100.0


@dataclass(frozen=True)
class Options:
    """Values that the caller fills in; ``written``: how a caller gives one, for messages."""

    benchmark: str | None = None
    level: str | None = None
    valid_from: str | None = None
    written: str = "--set {}={}"

    def hint(self, name: str, value: str) -> str:
        """Return an option as the caller writes it.

        >>> Options(written="--{} {}").hint("level", "cpu_model")
        '--level cpu_model'
        """
        return self.written.format(name, value)

    def require_known(self) -> None:
        """Raise :class:`UsageError` for a benchmark or level that there is not."""
        for name, value, values in (("benchmark", self.benchmark, BENCHMARKS), ("level", self.level, LEVELS)):
            if value is not None and value not in values:
                raise UsageError(f"{name} '{value}' is unknown; there are {', '.join(values)}")


Rows = Callable[[str, Path, Options], Iterator[dict[str, Any]]]
"""Text, the file for messages, and what is filled in, to rows made by :func:`declared_row`."""


@dataclass(frozen=True)
class DeclaredValues:
    """A source of declared corepower; ``form`` names its imports, ``rows`` reads its text."""

    name: str
    form: str
    rows: Rows
    default_source: str = "declared"
    written: str = Options.written
    most: ClassVar[int] = LARGEST
    settable: ClassVar[tuple[Field, ...]] = (
        column("benchmark", "text", "HS06 or HS23, if the file does not specify it"),
        column("level", "text", "queue, site or cpu_model, if the file does not specify it"),
        column("valid_from", "text", "start of validity; overrides the date of CRIC"),
    )

    def load_facts(
        self, contents: Sequence[tuple[str, str]], fill: Mapping[str, object]
    ) -> dict[str, object]:
        """Return what names an import: the bytes, whatever the file is called, and the filled-in values."""
        if len(contents) > 1:
            raise UsageError("declared values are imported one file at a time")
        # not the file's name: a renamed copy replaces its own import
        return {"content": contents[0][1], "form": self.form, **_filled(fill)}

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """Yield the declarations of a table at once: a file with two values of one name is refused whole."""
        path = file if isinstance(file, Path) else Path(file.name)
        options = Options(**_filled(fill), written=self.written)
        options.require_known()
        read = list(self.rows(text_of(file, path, "declared values"), path, options))
        if not read:
            raise InputError(f"{path} has no rows, so it declares nothing; {ACCEPTED}")
        # counted before the default is filled in
        assumed = sum(not row["level"] for row in read)
        rows, skipped = _of_export([{**row, "level": row["level"] or "queue"} for row in read])
        rows, skipped[REPEATED] = _each_once(rows)
        _require_one_value(rows, path)
        rejects = tuple(
            Reject(reason, file.name, 1, "", "is not a declaration of its own", "", n_rows)
            for reason, n_rows in skipped.items()
            if n_rows
        )
        given_level = options.hint("level", "cpu_model")
        note = f"{assumed} names were read as queues; for CPU models add {given_level}"
        yield Parsed.of(rows, rejects, (note,) if assumed else (), COREPOWER)


def _require_one_value(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    seen: dict[tuple[object, ...], object] = {}
    for row in rows:
        if seen.setdefault(_key(row), row["corepower"]) != row["corepower"]:
            raise InputError(f"{path} declares {row['name']} twice with different values; keep one")


def _filled(fill: Mapping[str, object]) -> dict[str, str | None]:
    # the same import however its benchmark and level are spelled
    spelled: dict[str, Callable[[str], str]] = {"benchmark": _benchmark, "level": _level, "valid_from": str}
    supplied = {item.name: fill.get(item.name) for item in DeclaredValues.settable}
    return {name: None if value is None else spelled[name](str(value)) for name, value in supplied.items()}


def _of_export(read: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], Counter[str]]:
    # An export of ``show corepower`` holds values that nobody imported, and replaced imports.
    skipped: Counter[str] = Counter()
    newest: dict[tuple[object, ...], datetime] = {}
    for row in read:
        if row.get("imported_at") is not None:
            key = _key(row)
            newest[key] = max(row["imported_at"], newest.get(key, row["imported_at"]))
    rows = []
    for row in read:
        if row.get("import_id") == "" and row["source"] in (RECORDS, QUEUES):
            skipped[f"follows from the {row['source']}"] += 1
        elif row.get("imported_at") is not None and row["imported_at"] < newest[_key(row)]:
            skipped["replaced by a later import"] += 1
        else:
            rows.append(row)
    return rows, skipped


def _each_once(rows: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], int]:
    # reversed twice: of equal rows the first stays, in the order of the file
    kept = {tuple(row[name] for name in given_schema(COREPOWER).names): row for row in reversed(rows)}
    return list(reversed(kept.values())), len(rows) - len(kept)


def _key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["level"], canonical(row), row["benchmark"], row["valid_from"]


def _benchmark(text: str) -> str:
    return text.strip().upper()


def _level(text: str) -> str:
    return text.strip().lower()


def declared_row(where: str, row: Mapping[str, str], options: Options, source: str) -> dict[str, Any]:
    """A row typed, or :class:`InputError` that begins with ``where``; ``level``: empty where nothing says."""
    if not row["name"]:
        raise InputError(f"{where}: the name is empty; each row requires a queue, site or CPU model")
    for name in ("name", "site", "source", "country"):
        require_no_nul(where, name, row.get(name) or "")
    level = _level(row["level"])
    if level not in (*LEVELS, ""):
        raise InputError(f"{where}, unknown level '{row['level']}'; use one of: {', '.join(LEVELS)}")
    return {
        "level": level,
        "name": row["name"],
        "corepower": score(where, "corepower", row["corepower"]),
        "benchmark": _named_benchmark(where, row, options),
        "valid_from": moment(where, "valid_from", row.get("valid_from") or options.valid_from),
        "site": row.get("site") or None,
        "parent_corepower": score(where, "parent_corepower", row.get("parent_corepower", "")),
        "served_corepower": score(where, "served_corepower", row.get("served_corepower", "")),
        "source": row.get("source") or source,
        "import_id": row.get("import_id"),
        "imported_at": moment(where, "imported_at", row["imported_at"]) if row.get("imported_at") else None,
        "country": row.get("country") or None,
    }


def _named_benchmark(where: str, row: Mapping[str, str], options: Options) -> str:
    benchmark = _benchmark(row.get("benchmark") or options.benchmark or "")
    if benchmark not in BENCHMARKS:
        named = f"'{benchmark}'" if benchmark else "none"
        raise InputError(
            f"{where}: the benchmark must be named, HS06 or HS23; found {named}; "
            f"add a column benchmark or use {options.hint('benchmark', 'HS06')}"
        )
    return benchmark


def require_no_nul(where: str, name: str, text: str) -> None:
    """Raise :class:`InputError` for a text with NUL: two names would read as one where texts end there."""
    if "\0" in text:
        raise InputError(f"{where}, column {name}: contains the character NUL; accepted: text without it")


def moment(where: str, name: str, text: str | None) -> datetime:
    """Parse a time in UTC; nothing is 1970. Raises :class:`InputError` with the place."""
    try:
        return parse_time(text or "1970-01-01")
    except WindowError as error:
        raise InputError(
            f"{where}, column {name}: '{(text or '')[:_SHOWN]}' is not an ISO date or time of the years 1 to "
            "9999 in UTC, such as 2018-08-01"
        ) from error


def score(where: str, name: str, text: str) -> float | None:
    """A declared score per core, None where nothing or 0 stands."""
    if text in ("", "-", "\\N") or text.lower() in ("null", "none"):
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value == 0:
        return None
    if not 0 < value < _LARGEST:
        raise InputError(
            f"{where}, column {name}: '{text[:_SHOWN]}' is not a corepower; expected a score per core above "
            f"0 and below {_LARGEST:g}, or an empty cell"
        )
    return value
