"""Imports declared corepower: a table by queue or CPU model, or CRIC's description of queues."""

import csv
import io
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError, NoResultError, UsageError, WindowError
from esjobs.core.identity import content_id
from esjobs.core.query import Count, In, Query
from esjobs.core.report import RunReport
from esjobs.core.window import format_time, parse_time
from esjobs.declared.origin import RECORDS
from esjobs.declared.tables import COREPOWER
from esjobs.ingest.reading.inputs import inputs
from esjobs.names.cpu_models import resolve_names
from esjobs.runs.publication import read_table, rows_table, tidy
from esjobs.store.base import JobStore, Retired

BENCHMARKS = ("HS06", "HS23")
_NAME_COLUMNS = {"name": None, "queue": "site", "site": "site", "cpu_model": "cpu_model", "cpu": "cpu_model"}
_ACCEPTED = (
    "columns name (or queue, site, cpu_model), corepower, and optionally benchmark, level, valid_from, "
    "rc_site, parent_corepower, source"
)
_NAMES_SHOWN = 5
_SHOWN = 60
"""Characters of a cell that a message quotes."""
_LARGEST_FILE = 64 << 20
"""Bytes; CRIC describes all queues of ATLAS in a tenth of it."""
_LARGEST = 100.0
"""No core delivers more HS06 or HS23 than this (the best of HEPiX's tables 40); larger ones are servers."""


def import_corepower(
    open_store: Callable[[], JobStore],
    path: Path,
    *,
    form: str,
    benchmark: str | None,
    level: str | None,
    valid_from: str | None,
    now: datetime,
) -> RunReport:
    """Read a file of declared values and store it; importing it again replaces its own rows only.

    ``benchmark``, ``level`` and ``valid_from`` fill in what the file does not say. A value without a named
    benchmark is refused. The store is opened when the file has been read. Raises :class:`InputError` naming
    file, line and column; nothing is stored then.
    """
    began = time.perf_counter()
    content, path = _content(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text at byte {error.start}; convert it first") from error
    if benchmark is not None:
        benchmark = _benchmark(benchmark)
        if benchmark not in BENCHMARKS:
            raise UsageError(f"benchmark '{benchmark}' is unknown; there are {', '.join(BENCHMARKS)}")
    defaults = {"benchmark": benchmark, "level": level, "valid_from": valid_from}
    reader = _cric if form == "cric" else _csv
    digest = blake2b(content, digest_size=16).hexdigest()
    import_id = content_id({"content": digest, "form": form, **defaults})
    said = list(reader(text, path, defaults))
    read = [{**row, "level": row["level"] or "site"} for row in said]
    found, skipped = _of_export(read)
    rows: list[dict[str, Any]] = [{**row, "import_id": import_id, "imported_at": now} for row in found]
    if not read:
        raise InputError(f"{path} declares nothing: it has no rows; {_ACCEPTED}")
    seen: dict[tuple[object, ...], object] = {}
    for row in rows:
        if seen.setdefault(_key(row), row["corepower"]) != row["corepower"]:
            raise InputError(f"{path} declares {row['name']} twice with different values; keep one")
    store = open_store()
    if rows:
        rows_of_file = rows_table(COREPOWER, rows)
        store.publish([store.replace(COREPOWER, import_id, rows_of_file.to_batches())])
    declared = sum(row["corepower"] is not None for row in rows)
    return RunReport(
        "corepower import",
        import_id,
        len(read),
        declared,
        time.perf_counter() - began,
        rows_become="declared values",
        dropped=dict(skipped),
        counts={"rows without a value": len(rows) - declared},
        notes=(*_assumptions(said), *_notes(store, rows)),
    )


def _content(path: Path) -> tuple[bytes, Path]:
    """What a file or a stream holds, and the name by which messages call it."""
    try:
        with inputs([path], most=_LARGEST_FILE) as (file,), file.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give an existing file") from error
    if len(content) > _LARGEST_FILE:
        raise InputError(
            f"{path} is larger than {_LARGEST_FILE >> 20} MiB; it holds no table of declared values"
        )
    return content, path if isinstance(file, Path) else Path(file.name)


def _of_export(read: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], Counter[str]]:
    """The rows to store, and how many are left out, by reason.

    What ``show corepower`` exports holds values that follow from the records, which no one has imported,
    and every import that a later one corrected; of those the last one counts, as it did in the store.
    """
    skipped: Counter[str] = Counter()
    newest: dict[tuple[object, ...], datetime] = {}
    for row in read:
        if row.get("imported_at") is not None:
            key = _key(row)
            newest[key] = max(row["imported_at"], newest.get(key, row["imported_at"]))
    rows = []
    for row in read:
        if row.get("import_id") == "" and row["source"] == RECORDS:
            skipped["follows from the records"] += 1
        elif row.get("imported_at") is not None and row["imported_at"] < newest[_key(row)]:
            skipped["replaced by a later import"] += 1
        else:
            rows.append(row)
    return rows, skipped


def _key(row: Mapping[str, Any]) -> tuple[object, ...]:
    """What a name declares one value for."""
    return row["level"], _canonical(row), row["benchmark"], row["valid_from"]


def _assumptions(said: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    assumed = sum(not row["level"] for row in said)
    if assumed:
        yield f"{assumed} names were taken for queues; if they are CPU models, give --level cpu_model"


def _notes(store: JobStore, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Since when the values hold, and which names no stored job has."""
    if not rows:
        return
    dates = sorted({format_time(row["valid_from"]) for row in rows})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    yield f"valid from {span}: a window that ends before takes no value from here"
    if not store.span().jobs:
        return
    for level, what in (("site", "queues"), ("cpu_model", "CPU models")):
        names = {_canonical(row) for row in rows if row["level"] == level}
        missing = sorted(names - _names_of_jobs(store, level)) if names else []
        if missing:
            shown = ", ".join(missing[:_NAMES_SHOWN]) + (", ..." if len(missing) > _NAMES_SHOWN else "")
            yield f"{len(missing)} of {len(names)} {what} have no jobs in the store: {shown}"


def _names_of_jobs(store: JobStore, level: str) -> set[str]:
    """The queues or CPU models of all stored jobs; one query."""
    key = "cpu_raw" if level == "cpu_model" else level
    values = store.aggregate(Query((key,), (Count(),))).table.column(key).to_pylist()
    names = resolve_names(values) if level == "cpu_model" else values
    return {name for name in names if name}


def remove_corepower(store: JobStore, import_id: str) -> RunReport:
    """Take an import back; :class:`NoResultError` when there is no such import."""
    began = time.perf_counter()
    rows = read_table(store, COREPOWER, [In("import_id", (import_id,))]).num_rows
    if not rows:
        raise NoResultError(f"no import '{import_id}'; see: esjobs show corepower --format csv")
    store.publish([Retired(COREPOWER, import_id)])
    tidy(store)
    return RunReport("corepower remove", import_id, rows, 0, time.perf_counter() - began, rows_become="left")


def _benchmark(text: str) -> str:
    return text.strip().upper()


def _canonical(row: Mapping[str, object]) -> str:
    """The name that a row is found under: a CPU model may be written in many ways."""
    name = str(row["name"])
    return (resolve_names([name])[0] or name) if row["level"] == "cpu_model" else name


def _csv(text: str, path: Path, defaults: Mapping[str, str | None]) -> Iterator[dict[str, object]]:
    head = text[: text.find("\n")] if "\n" in text else text
    delimiter = max(",;\t", key=head.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = {name.strip().lower(): name for name in reader.fieldnames or ()}
    except csv.Error as error:
        raise InputError(f"{path}, line 1: {error}; expected {_ACCEPTED}") from error
    if len(columns) < len(reader.fieldnames or ()):
        raise InputError(f"{path}, line 1: a column is named twice; expected {_ACCEPTED}")
    names = [name for name in _NAME_COLUMNS if name in columns]
    if not names or "corepower" not in columns:
        raise InputError(f"{path}, line 1: expected {_ACCEPTED}; found {', '.join(columns) or 'nothing'}")
    try:
        for raw in reader:
            row = {key: (raw.get(column) or "").strip() for key, column in columns.items()}
            if not any(row.values()):
                continue
            where = f"{path}, line {reader.line_num}"
            if None in raw:
                raise InputError(
                    f"{where}: more cells than the header has columns; "
                    "write decimals with a point, and text that holds the separator in quotes"
                )
            level = row.get("level") or _NAME_COLUMNS[names[0]] or defaults["level"] or ""
            yield _row(where, {**row, "name": row[names[0]], "level": level}, defaults, path.name)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; expected comma-separated text") from error


def _row(
    where: str, row: Mapping[str, str], defaults: Mapping[str, str | None], source: str
) -> dict[str, object]:
    if not row["name"]:
        raise InputError(f"{where}: the name is empty; every row names a queue or CPU model")
    if row["level"] not in ("site", "cpu_model", ""):
        raise InputError(f"{where}, column level: '{row['level']}' is neither site nor cpu_model")
    benchmark = _benchmark(row.get("benchmark") or defaults["benchmark"] or "")
    if benchmark not in BENCHMARKS:
        found = f"'{benchmark}'" if benchmark else "none"
        raise InputError(
            f"{where}: the benchmark must be named, HS06 or HS23; found {found}; "
            "add a column benchmark or give --benchmark"
        )
    return {
        "level": row["level"],
        "name": row["name"],
        "corepower": _number(where, "corepower", row["corepower"]),
        "benchmark": benchmark,
        "valid_from": _time(where, "valid_from", row.get("valid_from") or defaults["valid_from"]),
        "rc_site": row.get("rc_site") or None,
        "parent_corepower": _number(where, "parent_corepower", row.get("parent_corepower", "")),
        "served_corepower": _number(where, "served_corepower", row.get("served_corepower", "")),
        "source": row.get("source") or source,
        "import_id": row.get("import_id"),
        "imported_at": _time(where, "imported_at", row["imported_at"]) if row.get("imported_at") else None,
    }


def _time(where: str, column: str, text: str | None) -> datetime:
    try:
        return parse_time(text or "1970-01-01")
    except WindowError as error:
        raise InputError(
            f"{where}, column {column}: '{(text or '')[:_SHOWN]}' is no ISO date or time of the years 1 to "
            "9999 in UTC, such as 2018-08-01"
        ) from error


def _number(where: str, column: str, text: str) -> float | None:
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
            f"{where}, column {column}: '{text[:_SHOWN]}' is no corepower; expected a score per core, "
            f"above 0 and below {_LARGEST:g}, or nothing"
        )
    return value


def _cric(text: str, path: Path, defaults: Mapping[str, str | None]) -> Iterator[dict[str, object]]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {error.lineno}: not JSON ({error.msg}); expected CRIC queues"
        ) from error
    except RecursionError as error:
        raise InputError(f"{path}: nested too deeply to be a queue description of CRIC") from error
    except ValueError as error:
        raise InputError(f"{path}: not JSON that can be read ({error}); expected CRIC queues") from error
    if "\\ud" in text.lower():
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{path}: half of a surrogate pair in a text; accepted: whole characters"
            ) from error
    queues = document
    if isinstance(document, dict):
        queues = [document] if "corepower" in document else list(document.values())
    if not isinstance(queues, list):
        raise InputError(f"{path}: expected a CRIC queue, a list of them, or a mapping by name")
    for number, queue in enumerate(queues, 1):
        if not isinstance(queue, dict) or not (queue.get("name") or queue.get("nickname")):
            raise InputError(f"{path}, queue {number}: no name; expected a CRIC queue description")
        yield _queue(f"{path}, queue {queue.get('name') or queue.get('nickname')}", queue, defaults)


def _queue(where: str, queue: Mapping[str, object], defaults: Mapping[str, str | None]) -> dict[str, object]:
    """CRIC serves ``corepower`` to jobs; what the parents declare is shown beside it, never substituted."""
    data = queue.get("corepower_data")
    details: Mapping[str, object] = data if isinstance(data, dict) else {}
    parents = (
        details.get(key) for key in ("parent_rc_site_corepower", "parent_site_corepower", "parent_corepower")
    )
    parent = next((str(value) for value in parents if value is not None), "")
    moment = defaults["valid_from"] or str(queue.get("last_modified") or "")
    served = _number(where, "corepower", str(queue.get("corepower") or ""))
    return {
        "level": "site",
        "name": str(queue.get("name") or queue.get("nickname")),
        "corepower": served,
        "benchmark": defaults["benchmark"] or "HS06",
        "valid_from": _time(where, "last_modified", moment),
        "rc_site": str(queue["rc_site"]) if queue.get("rc_site") else None,
        "parent_corepower": _number(where, "parent corepower", parent),
        "served_corepower": served,
        "source": "CRIC",
    }
