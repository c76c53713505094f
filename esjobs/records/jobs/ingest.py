"""Files to jobs and other rows: each is stored, updates another, or is refused with reason, file and line."""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import cast

import pyarrow as pa

from esjobs.core.errors import InputError, StoreError, UsageError
from esjobs.core.identity import content_id
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.publish.publication import read_table, rows_table
from esjobs.records.ingest.base import Source
from esjobs.records.ingest.reading.inputs import Input, inputs
from esjobs.records.jobs.gaps import change_notes
from esjobs.records.jobs.given_rows import Put
from esjobs.records.jobs.reading import JOBS, Progress, Reading
from esjobs.records.jobs.rejects import RejectSpool
from esjobs.schema.jobs import LOAD_COUNTS, LOADS, REJECTS
from esjobs.store.base import Change, Hide, JobStore

_NAMED = 100
"""Files of a load that its account names."""

_NOT_COMPARED = (
    "not compared with the store: an acceptable row is stored, updates its job where it has values, or is "
    "rejected as superseded"
)
_ROWS_NOT_COMPARED = (
    "not compared with the store: an acceptable row is stored, or replaces the one that an earlier load of "
    "the same put there"
)
"""What a dry run does not know, of jobs and of rows of other tables."""


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

    ``open_store`` is called when the first job that can be stored has been read, or none was found: a file
    that cannot be read neither makes nor locks a store, nor does waiting for a pipe, nor a dry run.
    ``-`` among the paths is standard input.

    ``fill``: typed values for fields that a row lacks. The load's id follows from the contents, so that
    loading the same files again updates the same rows; the account of the load in ``loads``, ``load_tables``
    and ``rejects`` stays the one of the first time, the report tells what the second one did. Of a load that
    brings nothing but rows of entered tables these rows are the account. With ``dry_run``
    nothing is written, the store is not asked, and rows that are sound are counted as ``acceptable``.

    Raises :class:`InputError` when a file cannot be read to its end; the store is then as it was.
    """
    began = time.perf_counter()
    if not paths:
        raise UsageError("ingest needs at least one file")
    listed_by = getattr(source, "files", None)
    paths = list(paths if listed_by is None else listed_by(paths))
    accept, most = getattr(source, "accept", None), getattr(source, "most", None)
    with inputs(paths, accept, most=most) as files:
        load_id = _load_id(source, files, fill)
        with (
            RejectSpool(load_id) as spool,
            Reading(source, files, fill, spool, progress, keep=not dry_run) as reading,
        ):
            jobs = reading.jobs_if_any()
            if fill and JOBS not in reading.rows_in and reading.given and not hasattr(source, "settable"):
                raise UsageError(
                    f"{', '.join(fill)} cannot be set: the source {source.name} gave no jobs to fill, only "
                    f"rows of {', '.join(table.name for table in reading.given)}; leave it out"
                )
            if dry_run:
                for _ in jobs or ():
                    pass
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
    """What became of all rows, and of those of each table where there is another than jobs."""
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


def _store(
    store: JobStore,
    listed: Mapping[str, object],
    jobs: Iterable[pa.RecordBatch] | None,
    reading: Reading,
    spool: RejectSpool,
) -> tuple[dict[str, Put], list[str]]:
    """Put the rows, and the account of the load (``listed``: what is known of it); its books, and notes.

    ``jobs`` None: there are none, and jobs are not touched.
    """
    load_id = str(listed["load_id"])
    known = read_table(store, LOADS, [In("load_id", (load_id,))])
    changes: list[Change] = []
    books: dict[str, Put] = {}
    notes: list[str] = []
    jobs_changed: int | None = None
    if jobs is not None and not known.num_rows:
        store.publish([store.replace(LOADS, load_id, _load_row(listed, state="started"))])
    try:
        if jobs is not None:
            counts = store.put_jobs(jobs, load_id)
            reading.supersede(counts.superseded_rows)
            books[JOBS] = Put(counts.stored, counts.updated, counts.unchanged)
            # of a load that broke off, the first attempt may have put the jobs: what it changed nobody knows
            jobs_changed = counts.jobs_changed or (None if known.num_rows else 0)
            notes.extend(change_notes(counts))
        elif reading.rows_in[JOBS] or not reading.given:
            books[JOBS] = Put(0, 0, 0)
            jobs_changed = 0
        for table, given in reading.given.items():
            written, books[table.name], remarks = given.write(store, load_id, _moment(listed))
            changes.extend(written)
            notes.extend(remarks)
    except BaseException:
        if not known.num_rows:
            with contextlib.suppress(StoreError):  # the entry then says that the load never ended
                if JOBS in books and jobs is not None:
                    store.undo_load(load_id)
                if jobs is not None:
                    store.publish([Hide(LOADS, load_id)])
        raise
    if _is_complete(known):
        notes.append(f"load {load_id} was read before: esjobs show loads keeps the account of the first time")
    elif JOBS in books or any(not table.entered for table in reading.given):
        changes += _account(store, listed, reading, spool, books, jobs_changed)
        if reading.reasons:
            notes.append("the refused rows, with reason, file and line: esjobs show rejects")
    if changes:
        store.publish(changes)
    return books, notes


def _account(
    store: JobStore,
    listed: Mapping[str, object],
    reading: Reading,
    spool: RejectSpool,
    books: Mapping[str, Put],
    jobs_changed: int | None,
) -> list[Change]:
    """The entries of a load that came to its end."""
    load_id = str(listed["load_id"])
    complete = _load_row(
        listed,
        state="complete",
        rows_in=reading.rows_in.total(),
        stored=sum(put.stored for put in books.values()),
        updated=sum(put.updated for put in books.values()),
        rejected=reading.rejected.total(),
        first_end=reading.first,
        last_end=reading.last,
        jobs_changed=jobs_changed,
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
    """The names of the files of a load, those of an archive of many thousand not all."""
    names = ", ".join(file.name for file in files[:_NAMED])
    return names if len(files) <= _NAMED else f"{names} and {len(files) - _NAMED:,} more"


def _load_row(listed: Mapping[str, object], **known: object) -> list[pa.RecordBatch]:
    return list(rows_table(LOADS, [{**listed, **known}]).to_batches())


def _moment(listed: Mapping[str, object]) -> datetime:
    return cast("datetime", listed["loaded_at"])


def _is_complete(known: pa.Table) -> bool:
    """Whether a load is listed as one that came to its end: what its account says is history."""
    return "complete" in known.column("state").to_pylist()


def _load_id(source: Source, files: Sequence[Input], fill: Mapping[str, object]) -> str:
    contents = []
    for file in files:
        digest = blake2b(digest_size=16)
        try:
            with file.open("rb") as stream:
                while chunk := stream.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise InputError(f"cannot read {file}: {error.strerror}; give an existing file") from error
        contents.append((file.name, digest.hexdigest()))
    facts = getattr(source, "load_facts", None)
    if facts is not None:
        return content_id(facts(contents, fill))
    filled = {name: str(value) for name, value in fill.items()}
    return content_id({"format": source.name, "files": contents, "fill": filled})


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
        notes = (f"every row was refused; the first, {first.file} line {first.line}: {first.detail}", *notes)
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
    """Say once what is true of several files; a note is ``file: text``."""
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
