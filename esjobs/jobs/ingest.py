"""Files to jobs: every row is stored, updates a job, or is rejected with a reason, a file and a line."""

import contextlib
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import InputError, NoResultError, StoreError, UsageError
from esjobs.core.identity import content_id
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.ingest.base import Parsed, Source
from esjobs.ingest.reading.inputs import Input, inputs
from esjobs.ingest.reading.opening import require_readable
from esjobs.jobs.aggregate import retired_days
from esjobs.jobs.gaps import Gaps, change_notes
from esjobs.jobs.rejects import SUPERSEDED, RejectSpool, superseded
from esjobs.jobs.tables import DAYS, LOADS, REJECTS
from esjobs.runs.publication import read_table, rows_table
from esjobs.store.base import JobStore, Retired

Progress = Callable[[str, int, int], None]

_NOT_COMPARED = (
    "not compared with the store: an acceptable row is stored, updates its job where it has values, or is "
    "rejected as superseded"
)
"""What a dry run does not know."""


class _Reading:
    """Reads the files of a load and counts what passes while the store pulls batches."""

    def __init__(
        self,
        source: Source,
        files: Sequence[Input],
        fill: Mapping[str, object],
        spool: RejectSpool,
        progress: Progress | None,
    ) -> None:
        self._source = source
        self._files = files
        self._fill = fill
        self._spool = spool
        self._progress = progress
        self.rows_in = 0
        self.reasons: Counter[str] = Counter()
        self.notes: dict[str, None] = {}
        self.gaps = Gaps()
        self.first: datetime | None = None
        self.last: datetime | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The acceptable rows of all files, in their order."""
        for number, file in enumerate(self._files):
            if self._progress:
                self._progress(file.name, number, len(self._files))
            for parsed in self._source.parse(file, self._fill):
                self._count(parsed)
                if parsed.batch.num_rows:
                    yield parsed.batch
        if self._progress:
            self._progress("storing", len(self._files), len(self._files))

    def _count(self, parsed: Parsed) -> None:
        self.rows_in += parsed.rows_in
        self.notes.update(dict.fromkeys(parsed.notes))
        self._spool.add(parsed.rejects)
        for reject in parsed.rejects:
            self.reasons[reject.reason] += reject.n_rows
        if parsed.batch.num_rows:
            self.gaps.add(parsed.batch)
            ends = pc.min_max(parsed.batch.column("end_time")).as_py()
            self.first = min(filter(None, (self.first, ends["min"])))
            self.last = max(filter(None, (self.last, ends["max"])))


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
    """Read files of one format into the store, all of them or none.

    ``open_store`` is called when the first row that can be stored has been read, or none was found: a file
    that cannot be read neither makes nor locks a store, nor does waiting for a pipe, nor a dry run.
    ``-`` among the paths is standard input.

    ``fill``: canonical values for fields that a row lacks. The load's id follows from the contents, so that
    loading the same files again updates the same rows; the account of the load in ``loads`` and ``rejects``
    stays the one of the first time, the report tells what the second one did. With ``dry_run``
    nothing is written, the store is not asked, and rows that are sound are counted as ``acceptable``.

    Raises :class:`InputError` when a file cannot be read to its end; the store is then as it was.
    """
    began = time.perf_counter()
    if not paths:
        raise UsageError("ingest needs at least one file")
    with inputs(paths, require_readable) as files:
        load_id = _load_id(source, files, fill)
        with RejectSpool(load_id) as spool:
            reading = _Reading(source, files, fill, spool, progress)
            batches = iter(reading.batches())
            # What is wrong with the first file shows here, before a store is made or locked.
            first = list(itertools.islice(batches, 1))
            if dry_run:
                acceptable = sum(batch.num_rows for batch in itertools.chain(first, batches))
                counts = {"acceptable": acceptable}
                return _report(
                    load_id, reading, counts, acceptable, began, [_NOT_COMPARED], "acceptable rows"
                )
            listed = {
                "load_id": load_id,
                "format": source.name,
                "files": ", ".join(file.name for file in files),
                "filled": ", ".join(f"{name}={value}" for name, value in fill.items()) or None,
                "loaded_at": now,
            }
            counts, notes = _store(open_store(), listed, itertools.chain(first, batches), reading, spool)
    return _report(load_id, reading, counts, sum(counts.values()), began, notes)


def _store(
    store: JobStore,
    listed: Mapping[str, object],
    batches: Iterable[pa.RecordBatch],
    reading: _Reading,
    spool: RejectSpool,
) -> tuple[dict[str, int], list[str]]:
    """Put the rows, and the account of the load (``listed``: what is known of it); its counts, and notes."""

    def load_row(state: str, **counts: object) -> list[pa.RecordBatch]:
        return list(rows_table(LOADS, [{**listed, "state": state, **counts}]).to_batches())

    load_id = str(listed["load_id"])
    known = read_table(store, LOADS, [In("load_id", (load_id,))])
    if not known.num_rows:
        store.publish([store.replace(LOADS, load_id, load_row("started"))])
    try:
        counts = store.put_jobs(batches, load_id)
    except BaseException:
        if not known.num_rows:
            with contextlib.suppress(StoreError):  # the entry then says that the load never ended
                store.publish([Retired(LOADS, load_id)])
        raise
    if counts.superseded:
        reading.reasons[SUPERSEDED] += counts.superseded
        spool.add(superseded(counts.superseded_rows))
    if _is_complete(known):
        notes = [f"load {load_id} was read before: esjobs show loads keeps the account of the first time"]
    else:
        complete = load_row(
            "complete",
            rows_in=reading.rows_in,
            stored=counts.stored,
            updated=counts.updated,
            rejected=reading.reasons.total(),
            first_end=reading.first,
            last_end=reading.last,
            jobs_changed=counts.jobs_changed,
            **reading.gaps.columns(),
        )
        store.publish(
            [
                store.replace(LOADS, load_id, complete),
                store.replace(REJECTS, load_id, spool.batches()),
            ]
        )
        notes = (
            ["the refused rows, with reason, file and line: esjobs show rejects"] if reading.reasons else []
        )
    return {"stored": counts.stored, "updated": counts.updated}, [*change_notes(counts), *notes]


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
        contents.append([file.name, digest.hexdigest()])
    filled = {name: str(value) for name, value in fill.items()}
    return content_id({"format": source.name, "files": contents, "fill": filled})


def _report(
    load_id: str,
    reading: _Reading,
    counts: dict[str, int],
    rows_out: int,
    began: float,
    notes: Sequence[str] = (),
    rows_become: str = "rows",
) -> RunReport:
    dropped = {reason: count for reason, count in reading.reasons.most_common() if count}
    seconds = time.perf_counter() - began
    return RunReport(
        "ingest",
        load_id,
        reading.rows_in,
        rows_out,
        seconds,
        rows_become=rows_become,
        dropped=dropped,
        counts=counts,
        notes=(*_grouped(reading.notes), *reading.gaps.notes(), *notes),
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
    known = read_table(store, LOADS, [In("load_id", (load_id,))])
    if not known.num_rows:
        raise NoResultError(f"no load '{load_id}'; list them with: esjobs show loads")
    removed = store.undo_load(load_id)
    stored = set(store.day_fingerprints(None).column("day").to_pylist())
    aggregated = set(read_table(store, DAYS, columns=["day"]).column("day").to_pylist())
    emptied = retired_days(aggregated - stored)
    store.publish([Retired(LOADS, load_id), Retired(REJECTS, load_id), *emptied])
    return RunReport(
        "undo",
        load_id,
        removed,
        removed,
        time.perf_counter() - began,
        rows_are="rows of the load",
        rows_become="taken back",
    )
