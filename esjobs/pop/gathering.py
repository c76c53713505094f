"""Reports from spools into the store: copied, stored, and only then removed where they came from."""

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

_AT_ONCE = 500
"""Files of a load."""
_COPIES = "esjobs-talp-"
_LEFT_S = 86_400.0
"""Folders of copies that did not change for so long belong to nobody any more."""
_REMEMBERED = 10_000
"""Files of a spool that are known to be none of ours; of more, some are logged again."""

_COUNTS = (
    *("gathered", "junk", "new junk", "still being written", "not readable", "not removed"),
    *("regions rejected", "spools not read"),
)

Store = Callable[[Sequence[Path], str | None], RunReport]
"""Stores files as reports of jobs of a source; raises when the store has not got them."""


def gather(
    store: JobStore, settings: TalpSettings, spools: Sequence[SpoolSettings], put: Store, now: float
) -> RunReport:
    """Take the finished reports of spools; each is removed after the store has acknowledged it.

    What has another name than reports have is not opened; what has one and is no report stays, too. Both are
    counted, and logged the first time. What may not be read stays and is counted. A spool that cannot be read
    is counted, its reason is among the notes, and it does not keep the others from it.

    Raises :class:`InputError` when no spool could be read, and whatever the store raises: then nothing of the
    load is removed, and it is stored again the next time, which changes nothing.
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
        notes.append("what of a report could not be stored, and why: esjobs show rejects")
    if failures and len(failures) == len(spools):
        raise failures[0]
    n_in = sum(counts[name] for name in ("gathered", "junk", "still being written", "not readable"))
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
    known = _remembered(before)
    named = {name for name, each in seen.items() if each.regular and OURS.fullmatch(name)}
    junk = {name: each.mark for name, each in seen.items() if name not in named}
    # looked at again every time: rights change without a mark that moves
    locked = sorted(name for name in named if not seen[name].readable)
    named.difference_update(locked)
    if locked:
        counts["not readable"] += len(locked)
        notes.append(f"{spool.name}: {len(locked):,} reports may not be read, and stay: {_some(locked)}")
    # one that was looked at and is no report is not opened again until it changes
    junk |= {name: seen[name].mark for name in named if known.get(name) == seen[name].mark}
    ready = sorted(name for name in named if name not in junk and seen[name].settled)
    counts["still being written"] += sum(not seen[name].settled for name in named - junk.keys())
    for place in range(0, len(ready), _AT_ONCE):
        refused = _take(spool, ready[place : place + _AT_ONCE], seen, source, put, counts)
        junk |= refused
    fresh = {name: mark for name, mark in junk.items() if known.get(name) != mark}
    for name in list(fresh)[:20]:
        _log.warning("%s in %s is no report of TALP and stays there", visible(name), spool.name)
    counts["junk"] += len(junk)
    counts["new junk"] += len(fresh)
    if fresh:
        notes.append(f"{spool.name}: {len(fresh):,} files are no reports, and stay: {_some(list(fresh))}")
    after = json.dumps(dict(sorted(junk.items())[:_REMEMBERED])) if junk else None
    if after != before:
        store.compare_and_set(key, before, after)


def _take(
    spool: Spool,
    names: Sequence[str],
    seen: Mapping[str, Seen],
    source: str | None,
    put: Store,
    counts: dict[str, int],
) -> dict[str, str]:
    """Store some files and remove them; the marks of those that are no reports."""
    with tempfile.TemporaryDirectory(prefix=_COPIES) as folder:
        copies = Path(folder)
        marks = spool.copy(names, copies)
        good = {name: mark for name, mark in marks.items() if _is_report(copies / name)}
        if good:
            stored = put([copies / name for name in good], source)
            failed = spool.remove(good, copies)
            counts["gathered"] += len(good)
            counts["regions rejected"] += stored.n_dropped
            counts["not removed"] += len(failed)
            if failed:
                told = "%s: %d files are stored, but have changed since, or could not be removed"
                _log.warning(told, spool.name, len(failed))
    return {name: seen[name].mark for name in marks if name not in good}


def _sweep_copies(now: float) -> None:
    """Remove folders of copies that killed processes have left; what was not stored is still in its spool."""
    with suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            with suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                old = about.st_mtime < now - _LEFT_S
                ours = entry.name.startswith(_COPIES) and about.st_uid == os.getuid()
                if ours and old and stat.S_ISDIR(about.st_mode):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _is_report(path: Path) -> bool:
    """Whether a file has anything that can be stored."""
    return any(parsed.batch.num_rows for parsed in Talp().parse(path, {}))


def _remembered(text: str | None) -> dict[str, str]:
    with suppress(ValueError):
        known = json.loads(text or "{}")
        if isinstance(known, dict):
            return known
    return {}


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(visible(name)[:80] for name in names[:3])
    return shown if len(names) <= 3 else f"{shown}, ..."
