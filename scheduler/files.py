"""Ingest step of a night: new or changed files."""

import glob
import json
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path

from esjobs.core.errors import InputError
from esjobs.core.identity import content_id
from esjobs.records.ingest.formats import sources
from esjobs.records.loading import load_files, prepared
from esjobs.records.night import NightAccount, NightStep, NightWork
from esjobs.store.base import JobStore
from scheduler.settings import NightlyFiles, NightsSettings

_KEY = "files that nights have read"
_NIGHT = "{night}"
# Of more files, those that changed longest ago are forgotten. Read again, a file changes nothing.
_MOST_REMEMBERED = 5_000


def ingest_files(work: NightWork) -> NightAccount:
    """Read the new or changed files named in the settings.

    Raises :class:`InputError` for files of which every row was rejected, after all others were read: they are
    read again by the next attempt.
    """
    settings = work.settings.section(NightsSettings)
    seen: dict[str, str] = json.loads(work.store.value(_KEY) or "{}")
    rows_in = rows_out = 0
    refused: list[str] = []
    notes = [f"file not found: {name}" for name in lacking(settings.ingest, work.night)]
    for source in settings.ingest:
        for path in sorted(set(_paths(source, work.night, settings.late_days))):
            name, state = content_id({"path": str(path), "fill": source.identity}), _state(path)
            if seen.get(name) == state:
                continue
            chosen = prepared(work.context, sources.source(source.format), source.map)
            report = load_files(work.context, chosen, [path], source.fill)
            # not remembered: a wrong map or fill is corrected in the settings, the file stays
            if report.fruitless:
                why = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items())
                refused.append(f"{path.name}: every row was rejected ({why})")
                continue
            rows_in += report.rows_in
            rows_out += report.rows_out
            notes.append(f"{path.name}: {report.rows_in} rows, {report.n_dropped} rejected, {report.run}")
            # after each file: a night that is cut off does not start over
            seen = _remember(work.store, name, state)
    if refused:
        raise InputError(f"{'; '.join(refused)}; correct the files, or their entry in nights.ingest")
    return NightAccount(rows_in, rows_out, tuple(notes))


def names_night(source: NightlyFiles) -> bool:
    """True if every file name of a source contains the day."""
    return all(_NIGHT in pattern for pattern in source.files)


def lacking(sources: Iterable[NightlyFiles], night: date) -> list[str]:
    """Return the sources without a file for this night; files of earlier days do not count."""
    return [
        " ".join(pattern.replace(_NIGHT, str(night)) for pattern in source.files)
        for source in sources
        if next(_paths(source, night, 0), None) is None
    ]


def files_inputs(work: NightWork) -> str:
    """Return a digest of the files and of the way they are read."""
    settings = work.settings.section(NightsSettings)
    return content_id(
        {
            "files": [
                [*source.identity, str(path), _state(path)]
                for source in settings.ingest
                for path in sorted(set(_paths(source, work.night, settings.late_days)))
            ]
        }
    )


def _paths(source: NightlyFiles, night: date, late_days: int) -> Iterator[Path]:
    for pattern in source.files:
        days = [night - timedelta(days=back) for back in range(late_days, -1, -1)]
        # a pattern without the day is the same on all days
        for written in dict.fromkeys(pattern.replace(_NIGHT, str(day)) for day in days):
            yield from (Path(name) for name in glob.glob(written) if Path(name).is_file())


def _state(path: Path) -> str:
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}; fix this and run the night again: esjobs rerun DATE"
        ) from error
    return f"{found.st_size} {found.st_mtime_ns}"


def _remember(store: JobStore, name: str, state: str) -> dict[str, str]:
    # again when another process has written in between
    while True:
        text = store.value(_KEY)
        seen: dict[str, str] = {**json.loads(text or "{}"), name: state}
        if len(seen) > _MOST_REMEMBERED:
            changed_ns = {other: int(each.partition(" ")[2]) for other, each in seen.items() if other != name}
            del seen[min(changed_ns, key=changed_ns.__getitem__)]
        if store.compare_and_set(_KEY, text, json.dumps(seen, sort_keys=True)):
            return seen


INGEST = NightStep("ingest", ingest_files, inputs=files_inputs, needs=(), idle=True, first=True)
