"""Jobs with similar programs, by symbols of executables, else by names."""

import heapq
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.arrays import Floats
from esjobs.core.errors import NoResultError, StoreError
from esjobs.core.query import In
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.jobs.resolution import require_one_source, select
from esjobs.schema.similar import EXECUTABLES
from esjobs.similar.learned import LearnedSimilarity
from esjobs.similar.similar import SHOWN_SCORES, scores_of
from esjobs.similar.static import StaticSimilarity
from esjobs.store.base import JobStore

_RECORD = ("user", "project", "application", "executable")
_N_SHARED = 5
UNSCANNED = "whose program was not scanned"
AMBIGUOUS = "with several programs of the recorded name"
UNNAMED = "whose record has no program"
NAMELESS = "whose program has no symbols"

COLUMNS = pa.schema(
    [
        ("rank", pa.int64()),
        ("job_id", pa.string()),
        ("similarity", pa.float64()),
        ("by", pa.string()),
        ("program", pa.string()),
        ("shared", pa.string()),
        *((name, pa.string()) for name in _RECORD),
        *((name, pa.float64()) for name in SHOWN_SCORES),
        ("source", pa.string()),
    ]
)
"""Columns of the answer. ``by``: symbols; name or module if a program has none (``similarity`` is null).
``shared``: symbols that contribute most.
"""


@dataclass(frozen=True)
class SimilarPrograms:
    """Nearest jobs (``COLUMNS``), nearest first.

    ``program``: of the job. ``left_out``: jobs not compared by symbols, by reason; those of the same name or
    module are rows nevertheless.
    """

    rows: pa.Table
    program: str
    n_compared: int
    left_out: Mapping[str, int]


class Programs:
    """Scanned executables, found by the names in job records.

    Memory: all names of symbols.
    """

    def __init__(self, store: JobStore) -> None:
        wanted = ["path", "name", "module", "digest", "packed"]
        rows = read_table(store, EXECUTABLES, (), wanted).to_pylist()
        self.rows: list[dict[str, Any]] = sorted(rows, key=lambda row: str(row["path"]))
        self._by_path = {row["path"]: index for index, row in enumerate(self.rows)}
        self._by_name: dict[str, list[int]] = {}
        for index, row in enumerate(self.rows):
            self._by_name.setdefault(row["name"], []).append(index)
        # versions and copies share a list: one fingerprint may have 100,000 names
        same: dict[str | None, list[str] | None] = {None: None}
        for row in self.rows:
            if row["digest"] not in same:
                same[row["digest"]] = unpacked(row["packed"])
        self.fingerprints = [same[row["digest"]] for row in self.rows]

    def executable_of(self, executable: str | None, application: str | None) -> int | str:
        """Return the index of the executable a job ran, or the reason why it is unknown.

        By path, else by file name of the executable, then of the application, if all scanned files of that
        name have the same symbols.
        """
        if executable in self._by_path:
            return self._by_path[executable]
        named = [name for each in (executable, application) if (name := PurePosixPath(each or "").name)]
        for name in named:
            indices = self._by_name.get(name, [])
            if indices:
                same_symbols = len({self.rows[index]["digest"] for index in indices}) == 1
                return indices[0] if same_symbols else AMBIGUOUS
        return UNSCANNED if named else UNNAMED


def similarity_of(
    fingerprints: Sequence[Sequence[str] | None], method: str
) -> StaticSimilarity | LearnedSimilarity:
    """Return the similarities among fingerprints by a method of the settings."""
    return LearnedSimilarity(fingerprints) if method == "doc2vec" else StaticSimilarity(fingerprints)


def unpacked(packed: bytes) -> list[str]:
    """Return the names of a stored fingerprint; raises :class:`StoreError` for damaged bytes."""
    try:
        return zlib.decompress(packed).decode().split("\0")
    except (zlib.error, UnicodeDecodeError) as error:
        raise StoreError("a stored list of symbols is damaged; scan again: esjobs symbols scan") from error


def _nothing_similar(job_id: str, left_out: Mapping[str, int]) -> str:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
    return (
        f"no job to compare '{job_id}' with: {reasons or 'no other job is stored'}; scan executables: esjobs "
        "symbols scan"
    )


def similar_programs(
    store: JobStore,
    job_id: str,
    source: str | None = None,
    *,
    window: Window | None = None,
    top: int | None = 10,
    method: str = "tf-idf",
) -> SimilarPrograms:
    """Return the ``top`` jobs of a window (None: all) whose programs are most similar to that of a job.

    Most similar first. Jobs without symbols follow if they have the same program name, then the same module.
    Raises :class:`NoResultError` for an unknown job, a record without a program, or no result;
    :class:`UsageError` for an ambiguous job. Cost: executables once, jobs once.
    """
    target = _job(store, job_id, source)
    programs = Programs(store)
    index = programs.executable_of(target["executable"], target["application"])
    if not _name(target):
        raise NoResultError(
            f"the record of job '{job_id}' has no program (executable, application); compare time series: "
            "esjobs similar --dynamic"
        )
    # learned vectors cannot say why programs are similar: shared symbols are those of the weights, always
    weighted = StaticSimilarity(programs.fingerprints)
    near = np.full(len(programs.rows), np.nan)
    if isinstance(index, int):
        similarity = weighted if method == "tf-idf" else similarity_of(programs.fingerprints, method)
        near = similarity.similarity(index)
    best, n_compared, left_out = _ranked(store, programs, target, index, near, window, top)
    if not best:
        raise NoResultError(_nothing_similar(job_id, left_out))
    scores = scores_of(store, {row["job_id"] for row in best})
    rows = []
    for rank, row in enumerate(best, start=1):
        other = row.pop("place")
        shared = None
        if row["by"] == "symbols" and isinstance(index, int):
            shared = ", ".join(each.name for each in weighted.shared(index, other, _N_SHARED))
        measured = scores.get((row["source"], row["job_id"]), {})
        rows.append({**measured, **row, "rank": rank, "shared": shared})
    return SimilarPrograms(
        pa.Table.from_pylist(rows, schema=COLUMNS), _name(target), n_compared, dict(left_out)
    )


def _job(store: JobStore, job_id: str, source: str | None) -> dict[str, Any]:
    where = [In("job_id", (job_id,)), *([] if source is None else [In("source", (source,))])]
    rows = select(store, ["source", "job_id", *_RECORD], None, where=where).read_all().to_pylist()
    if not rows:
        raise NoResultError(f"no record of job '{job_id}' is stored; list jobs: esjobs jobs")
    require_one_source(job_id, sorted(str(row["source"]) for row in rows))
    return dict(rows[0])


def _name(job: Mapping[str, Any]) -> str:
    """Return the program's name in the record, "" if it has none."""
    named = (PurePosixPath(job[field] or "").name for field in ("executable", "application"))
    return next(filter(None, named), "")


def _ranked(
    store: JobStore,
    programs: Programs,
    target: Mapping[str, Any],
    index: int | str,
    near: Floats,
    window: Window | None,
    top: int | None,
) -> tuple[list[dict[str, Any]], int, Counter[str]]:
    """Return the nearest jobs, the number compared, and the others by reason."""
    left_out: Counter[str] = Counter()
    n_compared = 0
    unknown = None
    if not isinstance(index, int):
        unknown = f"with this job, {index}"
    elif np.isnan(near).all():
        unknown = f"with this job, {NAMELESS}"
    module = programs.rows[index]["module"] if isinstance(index, int) else None
    measured: dict[tuple[str | None, str | None], tuple[int | str, float | None, str | None]] = {}
    kept: list[dict[str, Any]] = []

    def judged(job: Mapping[str, Any]) -> tuple[int | str, float | None, str | None]:
        other = programs.executable_of(job["executable"], job["application"])
        if isinstance(other, int) and not np.isnan(near[other]):
            return other, float(near[other]), "symbols"
        if _name(job) == _name(target):
            return other, None, "name"
        if module is not None and isinstance(other, int) and programs.rows[other]["module"] == module:
            return other, None, "module"
        return other, None, None

    for batch in select(store, ["source", "job_id", *_RECORD], window):
        for job in batch.to_pylist():
            if (job["source"], job["job_id"]) == (target["source"], target["job_id"]):
                continue
            key = (job["executable"], job["application"])
            # many jobs, few programs
            if key not in measured:
                measured[key] = judged(job)
            other, value, by = measured[key]
            if by == "symbols":
                n_compared += 1
            else:
                # where nothing is known of the program asked for, that is why, and no fault of the others
                left_out[unknown or (NAMELESS if isinstance(other, int) else other)] += 1
            if by is not None:
                program = programs.rows[other]["path"] if isinstance(other, int) else None
                kept.append({**job, "similarity": value, "by": by, "place": other, "program": program})
        # memory stays bounded by the answer, not by the window
        if top is not None and len(kept) > 4 * top + 10_000:
            kept = heapq.nsmallest(top, kept, key=_order)
    return heapq.nsmallest(len(kept) if top is None else top, kept, key=_order), n_compared, left_out


_FIRST = {"symbols": 0, "name": 1, "module": 2}


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (_FIRST[row["by"]], -(row["similarity"] or 0.0), str(row["source"]), row["job_id"])
