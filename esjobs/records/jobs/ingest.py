"""Files to jobs and other rows: each is stored, updates another, or is refused with reason, file and line."""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import cast

import pyarrow as pa

from esjobs.core.errors import InputError, StoreError, UsageError
from esjobs.core.identity import content_id
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.publish.publication import read_table, rows_table
from esjobs.records.ingest.base import Source, load_facts
from esjobs.records.ingest.reading.inputs import Input, inputs
from esjobs.records.jobs.gaps import change_notes
from esjobs.records.jobs.reading import JOBS, Progress, Reading
from esjobs.records.jobs.rejects import RejectSpool
from esjobs.records.jobs.table_rows import Put
from esjobs.schema.jobs import LOAD_COUNTS, LOADS, REJECTS
from esjobs.store.base import Change, Hide, JobStore

# Files of a load that its account names.
_NAMED = 100

# What a dry run does not know, of jobs and of rows of other tables.
_NOT_COMPARED = (
    "not compared with the store: an acceptable row is stored, updates its job where it has values, or is "
    "rejected as superseded"
)
_ROWS_NOT_COMPARED = (
    "not compared with the store: an acceptable row is stored, or replaces the row of an earlier load"
)


def ingest(
    open_store: Callable[[], JobStore],
    source: Source,
    paths: Sequence[Path],
    fill: Mapping[str, object],
    *,
    dry_run: bool = False,
    now: datetime,
    progress: Progress | None = None,
) -> RunReport:
    """Read files of one format into the store, all of them or none: jobs, and rows of other tables.

    ``open_store`` is called when the first job has been read, or none was found: a broken file, a wait for a
    pipe and a dry run neither make nor lock a store. ``-`` is standard input. ``fill``: typed values for
    missing fields.

    The id of the load follows from the contents: the same files update the same rows. ``loads``,
    ``load_tables`` and ``rejects`` keep the account of the first time. ``dry_run``: nothing is written, good
    rows are counted as ``acceptable``. Raises :class:`InputError` for a file that cannot be read to its end;
    the store is unchanged then.
    """
    began = time.perf_counter()
    if not paths:
        raise UsageError("ingest requires at least one file")
    # parts that a source may lack: files behind those named, a look at first bytes, a limit of streams
    listed_by = getattr(source, "files", None)
    paths = list(paths if listed_by is None else listed_by(paths))
    accept, most = getattr(source, "accept", None), getattr(source, "most", None)
    with inputs(paths, accept, most=most) as files:
        load_id = _load_id(source, files, fill)
        with (
            RejectSpool(load_id) as spool,
            Reading(source, files, fill, spool, progress, keep=not dry_run) as reading,
        ):
            # reads up to the first job: most broken files fail here, before a store is opened
            jobs = reading.jobs_if_any()
            _require_used(fill, source, reading)
            if dry_run:
                # to the end, for the rows that would be rejected
                deque(jobs or (), maxlen=0)
                acceptable = reading.accepted.total()
                counts = {"acceptable": acceptable}
                unknown = _NOT_COMPARED if reading.rows_in[JOBS] else _ROWS_NOT_COMPARED
                return _report(load_id, reading, counts, acceptable, began, [unknown], "acceptable rows")
            listed = {
                "load_id": load_id,
                "format": source.name,
                "files": _names(files),
                "filled": ", ".join(f"{name}={value}" for name, value in fill.items()) or None,
                "loaded_at": now,
            }
            books, notes = _store(open_store(), listed, jobs, reading, spool)
            counts = _counts(books)
    return _report(load_id, reading, counts, counts["stored"] + counts["updated"], began, notes)


def _counts(books: Mapping[str, Put]) -> dict[str, int]:
    totals = {
        "stored": sum(put.stored for put in books.values()),
        "updated": sum(put.updated for put in books.values()),
    }
    if JOBS in books and books[JOBS].updated:
        totals["unchanged"] = books[JOBS].unchanged or 0
    if set(books) <= {JOBS}:
        return totals
    for name, put in books.items():
        totals |= {f"{name} stored": put.stored, f"{name} updated": put.updated}
    return totals


def _require_used(fill: Mapping[str, object], source: Source, reading: Reading) -> None:
    if fill and JOBS not in reading.rows_in and reading.tables and not hasattr(source, "settable"):
        raise UsageError(
            f"{', '.join(fill)} cannot be set: source {source.name} yielded no jobs, only rows of "
            f"{', '.join(table.name for table in reading.tables)}; omit it"
        )


@dataclass
class _Written:
    """Writes of a load so far. ``jobs_changed``: None if nobody knows."""

    books: dict[str, Put] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    jobs_changed: int | None = None


def _store(
    store: JobStore,
    listed: Mapping[str, object],
    jobs: Iterable[pa.RecordBatch] | None,
    reading: Reading,
    spool: RejectSpool,
) -> tuple[dict[str, Put], list[str]]:
    # ``jobs`` None: none were read, and stored jobs are not touched
    load_id = str(listed["load_id"])
    existing = read_table(store, LOADS, [In("load_id", (load_id,))])
    enters = jobs is not None and not existing.num_rows
    # an entry before the first row: a load that is killed can be found, and undone
    if enters:
        store.publish([store.replace(LOADS, load_id, _load_row(listed, state="started"))])
    done = _Written()
    try:
        _write(store, listed, jobs, reading, done, first=not existing.num_rows)
    except BaseException:
        if enters:
            with contextlib.suppress(StoreError):  # the entry then says that the load never ended
                if JOBS in done.books:
                    store.undo_load(load_id)
                store.publish([Hide(LOADS, load_id)])
        raise
    # rows were written again, but the account of the first time says what they changed
    if "complete" in existing.column("state").to_pylist():
        done.notes.append(
            f"these files were already loaded ({load_id}); esjobs show loads keeps the first account"
        )
    elif _is_accounted(done, reading):
        done.changes += _account(store, listed, reading, spool, done)
        if reading.reasons:
            done.notes.append("rejected rows with reason, file and line: esjobs show rejects")
    if done.changes:
        store.publish(done.changes)
    return done.books, done.notes


def _is_accounted(done: _Written, reading: Reading) -> bool:
    # rows that people entered are their own account
    return JOBS in done.books or not all(table.entered for table in reading.tables)


def _write(
    store: JobStore,
    listed: Mapping[str, object],
    jobs: Iterable[pa.RecordBatch] | None,
    reading: Reading,
    done: _Written,
    *,
    first: bool,
) -> None:
    load_id = str(listed["load_id"])
    if jobs is not None:
        counts = store.put_jobs(jobs, load_id)
        reading.supersede(counts.superseded_rows)
        done.books[JOBS] = Put(counts.stored, counts.updated, counts.unchanged)
        # of a load that broke off, the first attempt may have put the jobs: what it changed nobody knows
        done.jobs_changed = counts.jobs_changed or (0 if first else None)
        done.notes += change_notes(counts)
    elif reading.rows_in[JOBS] or not reading.tables:
        done.books[JOBS] = Put(0, 0, 0)
        done.jobs_changed = 0
    for table, rows in reading.tables.items():
        written, put, remarks = rows.write(store, load_id, cast("datetime", listed["loaded_at"]))
        done.books[table.name] = put
        done.changes += written
        done.notes += remarks


def _account(
    store: JobStore,
    listed: Mapping[str, object],
    reading: Reading,
    spool: RejectSpool,
    done: _Written,
) -> list[Change]:
    load_id, books = str(listed["load_id"]), done.books
    complete = _load_row(
        listed,
        state="complete",
        rows_in=reading.rows_in.total(),
        stored=sum(put.stored for put in books.values()),
        updated=sum(put.updated for put in books.values()),
        rejected=reading.rejected.total(),
        first_end=reading.first,
        last_end=reading.last,
        jobs_changed=done.jobs_changed,
        unchanged=books[JOBS].unchanged if JOBS in books else None,
        **(reading.gaps.columns() if JOBS in books else {}),
    )
    by_table = [
        {
            "load_id": load_id,
            "table_name": name,
            "rows_in": reading.rows_in[name],
            "stored": put.stored,
            "updated": put.updated,
            "rejected": reading.rejected[name],
            "unchanged": put.unchanged,
        }
        for name, put in books.items()
    ]
    return [
        store.replace(LOADS, load_id, complete),
        store.replace(REJECTS, load_id, spool.batches()),
        store.replace(LOAD_COUNTS, load_id, rows_table(LOAD_COUNTS, by_table).to_batches()),
    ]


def _names(files: Sequence[Input]) -> str:
    # an archive has thousands of files: the first ones are named
    names = ", ".join(file.name for file in files[:_NAMED])
    return names if len(files) <= _NAMED else f"{names} and {len(files) - _NAMED:,} more"


def _load_row(listed: Mapping[str, object], **existing: object) -> list[pa.RecordBatch]:
    return list(rows_table(LOADS, [{**listed, **existing}]).to_batches())


def _load_id(source: Source, files: Sequence[Input], fill: Mapping[str, object]) -> str:
    contents = []
    for file in files:
        digest = blake2b(digest_size=16)
        try:
            with file.open("rb") as stream:
                while chunk := stream.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise InputError(f"cannot read {file}: {error.strerror}; use an existing file") from error
        # with the name, in which some formats have facts: PanDA the task
        contents.append((file.name, digest.hexdigest()))
    facts = getattr(source, "load_facts", partial(load_facts, source.name))
    return content_id(facts(contents, fill))


def _report(
    load_id: str,
    reading: Reading,
    counts: dict[str, int],
    rows_out: int,
    began: float,
    notes: Sequence[str] = (),
    rows_become: str = "rows",
) -> RunReport:
    dropped = {reason: count for reason, count in reading.reasons.most_common() if count}
    repaired = (f"{what}: {count:,}" for what, count in reading.repaired.items())
    seconds = time.perf_counter() - began
    first = reading.first_refused
    if reading.all_refused and first is not None:
        notes = (f"every row was rejected; first: {first.file} line {first.line}: {first.detail}", *notes)
    return RunReport(
        "ingest",
        load_id,
        reading.rows_in.total(),
        rows_out,
        seconds,
        rows_become=rows_become,
        dropped=dropped,
        counts=counts,
        notes=(*_grouped(reading.notes), *repaired, *reading.gaps.notes(), *notes),
        fruitless=reading.all_refused,
    )


def _grouped(notes: Iterable[str]) -> tuple[str, ...]:
    # a note is ``file: text``; the same text of several files is said once
    files: dict[str, list[str]] = {}
    for note in notes:
        file, colon, text = note.partition(": ")
        if not colon:  # true of all files, or of none
            file, text = "", note
        files.setdefault(text, []).append(file)
    return tuple(
        text if names == [""] else f"{names[0] if len(names) == 1 else f'{len(names)} files'}: {text}"
        for text, names in files.items()
    )
