"""Reports of TALP, the monitor of the DLB library: JSON of every version that writes it, 3.3 and later.

What a report holds is told by its keys, never by its version: ``Application`` and ``Process`` (3.5 and
later), ``Application`` and ``region`` (3.5 alpha), ``popMetrics``, ``popRaw``, ``node``, ``region`` (3.3,
3.4). Each region, node and process becomes a row of ``talp_reports`` with its raw times and what was printed
of it; the efficiencies that people see are made from the raw times by ``esjobs talp join``.

The job's id and the number of the launch come from the file's name (``talp_names``) or from ``--set``. Times
without a zone are taken for UTC; reports without a time have that of the file.

DLB does not escape names of regions: one with a quote makes a report that is no JSON, which is refused.
Counters that are negative, because they passed the end of their range, are left out and the row says so.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from esjobs.core.errors import InputError
from esjobs.core.fields import Field
from esjobs.records.ingest.base import FIRST_YEAR, LAST_YEAR, Parsed
from esjobs.records.ingest.formats import job_files
from esjobs.records.ingest.formats.job_files import Books, NoJobIdError
from esjobs.records.ingest.formats.talp_names import report_name
from esjobs.records.ingest.formats.talp_regions import Refused, regions_of
from esjobs.records.ingest.reading.inputs import Input
from esjobs.schema.pop import POP_REPORTS

# Keys of which every report has one.
_LAYOUTS = ("Application", "Process", "popMetrics", "popRaw", "region", "node")
_NOT_JSON = ". TALP does not escape quotes or backslashes in region names; rename such regions"


class Talp:
    """The format ``talp``."""

    name = "talp"
    default_source = "talp"
    settable: ClassVar[tuple[Field, ...]] = (
        job_files.JOB_ID,
        Field("source", "keyword", "", "source of the job records; default: a job is searched by its id"),
        Field("step", "keyword", "", "launch of the job, if the file name does not contain it"),
        Field("time", "time", "", "time of the report, if it does not contain one"),
    )

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        try:
            yield _parsed(file, fill)
        except (InputError, ValueError, RecursionError) as error:
            yield job_files.damaged(file, error, POP_REPORTS)


def _parsed(file: Input, fill: Mapping[str, object]) -> Parsed:
    document = _document(file)
    named = report_name(file.name)
    job_id = fill.get("job_id") or named.job_id
    if not job_id:
        raise NoJobIdError(
            f"{file.name} does not name its job; add --set job_id=ID, or rename it to "
            "talp.JOB.STEP.HOST.PID.json"
        )
    books = Books(file.name)
    time, time_from = _time(document, file, fill, books)
    step = str(fill.get("step") or named.step)
    common = {
        "report": _identity(document, str(job_id), step),
        "job_id": str(job_id),
        "step": step,
        "time": time,
        "day": time.date(),
        "source": fill.get("source"),
        "dlb_version": _text(document.get("dlbVersion")),
        "file": file.name,
        "time_from": time_from,
    }
    rows = []
    for region in regions_of(document, named.part_of):
        if isinstance(region, Refused):
            books.refuse(
                region.reason, region.field, f"{region.detail} (region {region.name!r})", region.name
            )
            continue
        rows.append({**common, **region})
    if not rows and not books.rejects:
        raise InputError(f"{file.name} has no regions; it is incomplete or not a report of TALP")
    negative = sum(row["counters"] == "bad" for row in rows)
    books.repair("rows with negative counters of cycles or instructions; the counters are ignored", negative)
    return Parsed.of(rows, books.rejects, (), POP_REPORTS, books.repaired)


def _document(file: Input) -> dict[str, Any]:
    decode = partial(json.loads, object_pairs_hook=_once, parse_constant=_no_number)
    document = job_files.document(job_files.text_of(job_files.content(file), file), file, decode, _NOT_JSON)
    if not isinstance(document, dict) or not any(key in document for key in _LAYOUTS):
        raise InputError(f"{file.name} is not a report of TALP: none of {', '.join(_LAYOUTS)} found")
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # of two regions of one name one would be lost
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice[:60]!r} occurs twice")
    return made


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _identity(document: Mapping[str, Any], job_id: str, step: str) -> str:
    # Contents have the time, processes and nanoseconds in them: two runs are never equal.
    content = json.dumps([job_id, step, document], sort_keys=True, separators=(",", ":"))
    return hashlib.sha1(content.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _time(
    document: Mapping[str, Any], file: Input, fill: Mapping[str, object], books: Books
) -> tuple[datetime, str]:
    written = document.get("timestamp")
    if isinstance(written, str):
        with contextlib.suppress(ValueError, OverflowError):
            time = datetime.fromisoformat(written)
            # a local time without a zone is taken for UTC
            time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
            if FIRST_YEAR <= time.year <= LAST_YEAR:
                return time, "report"
        books.repair("invalid times, replaced by other times of the report", 1)
    supplied = fill.get("time")
    if isinstance(supplied, datetime):
        return supplied, "given"
    path = getattr(file, "path", file)
    if isinstance(path, Path):
        with contextlib.suppress(OSError, ValueError, OverflowError):
            # whole seconds: file systems differ in what they keep beyond
            return datetime.fromtimestamp(int(path.stat().st_mtime), UTC), "file"
    raise InputError(f"{file.name} has no time; add --set time=TIME")


def _text(value: object) -> str | None:
    return value[:100].encode(errors="replace").decode() if isinstance(value, str) and value else None
