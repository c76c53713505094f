"""Files to jobs: every row is stored, updates a job, or is rejected with a reason, a file and a line."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core import tables
from esjobs.core.arrow import table_schema
from esjobs.core.errors import InputError, NoResultError, StoreError, UsageError
from esjobs.core.identity import content_id
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.ingest.base import Parsed, Source
from esjobs.steps.aggregate import retired_days
from esjobs.steps.publication import read_table, rows_table
from esjobs.store.base import JobStore, Retired

Progress = Callable[[str, int, int], None]


class _Books:
    """Counts what passes while the store pulls batches."""

    def __init__(self) -> None:
        self.rows_in = 0
        self.reasons: Counter[str] = Counter()
        self.rejects: list[pa.Table] = []
        self.notes: dict[str, None] = {}
        self.first: datetime | None = None
        self.last: datetime | None = None

    def add(self, parsed: Parsed, load_id: str) -> None:
        self.rows_in += parsed.rows_in
        self.notes.update(dict.fromkeys(parsed.notes))
        if parsed.rejects:
            self.reasons.update(reject.reason for reject in parsed.rejects)
            self.rejects.append(
                rows_table(
                    tables.REJECTS,
                    (
                        {
                            "load_id": load_id,
                            "reason": reject.reason,
                            "file": reject.file,
                            "line": reject.line,
                            "field": reject.field,
                            "detail": reject.detail,
                            "excerpt": reject.excerpt,
                        }
                        for reject in parsed.rejects
                    ),
                )
            )
        if parsed.batch.num_rows:
            ends = pc.min_max(parsed.batch.column("end_time")).as_py()
            self.first = min(filter(None, (self.first, ends["min"])))
            self.last = max(filter(None, (self.last, ends["max"])))


def ingest(
    store: JobStore,
    source: Source,
    paths: Sequence[Path],
    fill: Mapping[str, object],
    *,
    dry_run: bool = False,
    now: datetime,
    progress: Progress | None = None,
) -> RunReport:
    """Read files of one format into the store, all of them or none.

    ``fill``: canonical values for fields that a row lacks. The load's id follows from the contents, so that
    loading the same files again updates the same rows; the account of the load in ``loads`` and ``rejects``
    stays the one of the first time, the report tells what the second one did. With ``dry_run``
    nothing is written and rows that would be stored or updated are counted as ``acceptable``.

    Raises :class:`InputError` when a file cannot be read to its end; the store is then as it was.
    """
    began = time.perf_counter()
    if not paths:
        raise UsageError("ingest needs at least one file")
    load_id = _load_id(source, paths, fill)
    books = _Books()

    def batches() -> Iterator[pa.RecordBatch]:
        for number, path in enumerate(paths):
            if progress:
                progress(path.name, number, len(paths))
            for parsed in source.parse(path, fill):
                books.add(parsed, load_id)
                if parsed.batch.num_rows:
                    yield parsed.batch
        if progress:
            progress("storing", len(paths), len(paths))

    if dry_run:
        acceptable = sum(batch.num_rows for batch in batches())
        return _report(
            load_id, books, {"acceptable": acceptable}, acceptable, began, rows_become="acceptable rows"
        )

    def load_row(state: str, **counts: object) -> pa.Table:
        row = {
            "load_id": load_id,
            "state": state,
            "format": source.name,
            "files": ", ".join(path.name for path in paths),
            "filled": ", ".join(f"{name}={value}" for name, value in fill.items()) or None,
            "loaded_at": now,
            **counts,
        }
        return rows_table(tables.LOADS, [row])

    known = read_table(store, tables.LOADS, [In("load_id", (load_id,))])
    if not known.num_rows:
        store.publish([store.replace(tables.LOADS, load_id, load_row("started").to_batches())])
    try:
        counts = store.put_jobs(batches(), load_id)
    except BaseException:
        if not known.num_rows:
            with contextlib.suppress(StoreError):  # the entry then says that the load never ended
                store.publish([Retired(tables.LOADS, load_id)])
        raise
    rejects = [*books.rejects, _superseded(counts.superseded_rows, load_id)]
    if counts.superseded:
        books.reasons["superseded"] += counts.superseded
    if _is_complete(known):
        notes = [f"load {load_id} was read before: esjobs show loads keeps the account of the first time"]
    else:
        complete = load_row(
            "complete",
            rows_in=books.rows_in,
            stored=counts.stored,
            updated=counts.updated,
            rejected=books.reasons.total(),
            first_end=books.first,
            last_end=books.last,
        )
        store.publish(
            [
                store.replace(tables.LOADS, load_id, complete.to_batches()),
                store.replace(tables.REJECTS, load_id, pa.concat_tables(rejects).to_batches()),
            ]
        )
        notes = ["the refused rows, with reason, file and line: esjobs show rejects"] if books.reasons else []
    kept = {"stored": counts.stored, "updated": counts.updated}
    return _report(load_id, books, kept, counts.stored + counts.updated, began, notes)


def _is_complete(known: pa.Table) -> bool:
    """Whether a load is listed as one that came to its end: what its account says is history."""
    return "complete" in known.column("state").to_pylist()


def _load_id(source: Source, paths: Sequence[Path], fill: Mapping[str, object]) -> str:
    files = []
    for path in paths:
        digest = blake2b(digest_size=16)
        try:
            with path.open("rb") as stream:
                while chunk := stream.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}; give an existing file") from error
        files.append([path.name, digest.hexdigest()])
    filled = {name: str(value) for name, value in fill.items()}
    return content_id({"format": source.name, "files": files, "fill": filled})


def _superseded(rows: pa.Table, load_id: str) -> pa.Table:
    count = rows.num_rows
    columns = {
        "load_id": pa.array([load_id] * count, pa.string()),
        "reason": pa.array(["superseded"] * count, pa.string()),
        "file": rows.column("origin_file"),
        "line": rows.column("origin_line"),
        "field": pa.array(["end_time"] * count, pa.string()),
        "detail": pa.array(["a newer end time of the same job is stored"] * count, pa.string()),
        "excerpt": rows.column("job_id"),
    }
    return pa.table(columns).cast(table_schema(tables.REJECTS))


def _report(
    load_id: str,
    books: _Books,
    counts: dict[str, int],
    rows_out: int,
    began: float,
    notes: Sequence[str] = (),
    rows_become: str = "rows",
) -> RunReport:
    dropped = {reason: count for reason, count in books.reasons.most_common() if count}
    seconds = time.perf_counter() - began
    return RunReport(
        "ingest",
        load_id,
        books.rows_in,
        rows_out,
        seconds,
        rows_become=rows_become,
        dropped=dropped,
        counts=counts,
        notes=(*_grouped(books.notes), *notes),
    )


def _grouped(notes: Iterable[str]) -> tuple[str, ...]:
    """Say once what is true of several files; a note is ``file: text``."""
    files: dict[str, list[str]] = {}
    for note in notes:
        file, _, text = note.partition(": ")
        files.setdefault(text, []).append(file)
    return tuple(
        f"{names[0] if len(names) == 1 else f'{len(names)} files'}: {text}" for text, names in files.items()
    )


def undo(store: JobStore, load_id: str) -> RunReport:
    """Take a load back: its jobs go, what they had replaced returns, its rejects and its entry go.

    Raises :class:`NoResultError` when no such load is listed. Buckets of the days concerned become stale;
    those of days that have no jobs any more go with the load.
    """
    began = time.perf_counter()
    known = read_table(store, tables.LOADS, [In("load_id", (load_id,))])
    if not known.num_rows:
        raise NoResultError(f"no load '{load_id}'; list them with: esjobs show loads")
    removed = store.undo_load(load_id)
    stored = set(store.day_fingerprints(None).column("day").to_pylist())
    aggregated = set(read_table(store, tables.DAYS, columns=["day"]).column("day").to_pylist())
    emptied = retired_days(aggregated - stored)
    store.publish([Retired(tables.LOADS, load_id), Retired(tables.REJECTS, load_id), *emptied])
    return RunReport(
        "undo",
        load_id,
        removed,
        removed,
        time.perf_counter() - began,
        rows_are="rows of the load",
        rows_become="taken back",
    )
