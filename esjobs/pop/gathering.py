"""Collection of reports from spools: copied, stored, then removed at their origin."""

import json
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from esjobs.core.errors import InputError
from esjobs.core.identity import content_id
from esjobs.core.report import RunReport
from esjobs.core.text import visible
from esjobs.pop.settings import SpoolSettings, TalpSettings
from esjobs.pop.spools import Seen, Spool, spool_of
from esjobs.records.ingest.formats.talp import Talp
from esjobs.records.ingest.formats.talp_names import OURS
from esjobs.store.base import JobStore

_log = logging.getLogger(__name__)

_PER_LOAD = 500  # Files of a load
_COPIES = "esjobs-talp-"
_LEFT_S = 86_400.0  # Folders of copies unchanged for so long were left by a killed process
_REMEMBERED = 10_000  # Junk files of a spool that are logged once only; of more, some are logged again

_COUNTS = (
    *("gathered", "junk", "new junk files", "still being written", "unreadable", "not removed"),
    *("regions rejected", "spools not read"),
)

Store = Callable[[Sequence[Path], str | None], RunReport]
"""Stores files as reports of jobs of a source; raises if it fails."""


def gather(
    store: JobStore, settings: TalpSettings, spools: Sequence[SpoolSettings], put: Store, now: float
) -> RunReport:
    """Collect finished reports of spools; each is removed after the store has acknowledged it.

    Files with other names are not opened; invalid reports stay; both are counted, and logged once. Unreadable
    files and spools are counted; a spool that fails does not affect others.

    Raises :class:`InputError` if no spool can be read, and errors of the store: then nothing is removed, and
    storing again changes nothing.
    """
    began = time.perf_counter()
    _sweep_copies(now)
    counts = dict.fromkeys(_COUNTS, 0)
    notes: list[str] = []
    failures: list[InputError] = []
    for chosen in spools:
        try:
            _gather_one(store, spool_of(chosen, settings, now), chosen.source, put, counts, notes)
        except InputError as error:
            failures.append(error)
            notes.append(str(error))
            counts["spools not read"] += 1
    if counts["regions rejected"]:
        notes.append("rejected parts of reports and their reasons: esjobs show rejects")
    # one dead host must not stop the others; no host at all is an error
    if failures and len(failures) == len(spools):
        raise failures[0]
    n_in = sum(counts[name] for name in ("gathered", "junk", "still being written", "unreadable"))
    return RunReport(
        "talp gather",
        content_id({"spools": [each.folder for each in spools]}),
        n_in,
        counts["gathered"],
        time.perf_counter() - began,
        rows_are="files",
        rows_become="reports stored",
        counts=counts,
        notes=tuple(notes),
    )


def _gather_one(
    store: JobStore, spool: Spool, source: str | None, put: Store, counts: dict[str, int], notes: list[str]
) -> None:
    seen = spool.files()
    key = f"talp.junk.{content_id({'spool': spool.name})}"
    before = store.value(key)
    remembered = _remembered(before)
    named = {name for name, each in seen.items() if each.regular and OURS.fullmatch(name)}
    junk = {name: each.mark for name, each in seen.items() if name not in named}
    # checked every time: permissions change without a change of the mark
    locked = sorted(name for name in named if not seen[name].readable)
    named.difference_update(locked)
    if locked:
        counts["unreadable"] += len(locked)
        notes.append(f"{spool.name}: {len(locked):,} reports cannot be read and remain: {_some(locked)}")
    # an invalid report is not opened again until it changes
    junk |= {name: seen[name].mark for name in named if remembered.get(name) == seen[name].mark}
    ready = sorted(name for name in named if name not in junk and seen[name].settled)
    counts["still being written"] += sum(not seen[name].settled for name in named - junk.keys())
    for start in range(0, len(ready), _PER_LOAD):
        junk |= _take(spool, ready[start : start + _PER_LOAD], seen, source, put, counts)
    counts["junk"] += len(junk)
    _report_junk(spool, [name for name, mark in junk.items() if remembered.get(name) != mark], counts, notes)
    # bounded: a spool full of junk must not grow the value with every night
    after = json.dumps(dict(sorted(junk.items())[:_REMEMBERED])) if junk else None
    if after != before:
        store.compare_and_set(key, before, after)


def _report_junk(spool: Spool, fresh: list[str], counts: dict[str, int], notes: list[str]) -> None:
    counts["new junk files"] += len(fresh)
    for name in fresh[:20]:
        _log.warning("%s in %s is not a report of TALP; the file remains", visible(name), spool.name)
    if fresh:
        notes.append(f"{spool.name}: {len(fresh):,} files are not reports and remain: {_some(fresh)}")


def _take(
    spool: Spool,
    names: Sequence[str],
    seen: Mapping[str, Seen],
    source: str | None,
    put: Store,
    counts: dict[str, int],
) -> dict[str, str]:
    """Store and remove some files; return the marks of those that are not reports."""
    with tempfile.TemporaryDirectory(prefix=_COPIES) as folder:
        copies = Path(folder)
        marks = spool.copy(names, copies)
        rows = {name: sum(part.batch.num_rows for part in Talp().parse(copies / name, {})) for name in marks}
        good = {name: mark for name, mark in marks.items() if rows[name]}
        if good:
            # first stored, then removed: a crash between stores them again, which changes nothing
            stored = put([copies / name for name in good], source)
            failed = spool.remove(good, copies)
            counts["gathered"] += len(good)
            counts["regions rejected"] += stored.n_dropped
            counts["not removed"] += len(failed)
            if failed:
                what = "stored files have changed since, or could not be removed"
                _log.warning("%s: %d %s", spool.name, len(failed), what)
    return {name: seen[name].mark for name in marks if name not in good}


def _sweep_copies(now: float) -> None:
    """Remove copies left by killed processes; unstored files are still in their spool."""
    with suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            with suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                old = about.st_mtime < now - _LEFT_S
                ours = entry.name.startswith(_COPIES) and about.st_uid == os.getuid()
                if ours and old and stat.S_ISDIR(about.st_mode):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _remembered(text: str | None) -> dict[str, str]:
    with suppress(ValueError):
        remembered = json.loads(text or "{}")
        if isinstance(remembered, dict):
            return remembered
    return {}


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(visible(name)[:80] for name in names[:3])
    return shown if len(names) <= 3 else f"{shown}, ..."
