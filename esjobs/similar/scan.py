"""Scan of executables: files become rows of ``executables``, or are rejected with a reason."""

import hashlib
import os
import stat
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError, UsageError
from esjobs.core.identity import content_id
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.publish.publication import count_rows, rows_table, tidy
from esjobs.schema.similar import EXECUTABLES
from esjobs.similar.symbols import NoProgramError, Symbols, read_symbols
from esjobs.store.base import JobStore

# Files published in one step, and bytes of their packed names, which bound the memory
_PER_STEP, _PER_STEP_B = 100, 32 * 2**20
_LONGEST_PATH = 4096


def scan(store: JobStore, paths: Sequence[Path], *, module: str | None, now: datetime) -> RunReport:
    """Store the symbol names of all programs at ``paths``; folders are searched.

    Known files are updated; files met twice are rejected. Links to folders are not followed. Files = stored +
    updated + rejected. Raises :class:`InputError` for a missing path, :class:`UsageError` for an unreadable
    module name.
    """
    began = time.perf_counter()
    _require_readable(module)
    for path in paths:
        _require_reachable(path)
    rejected: Counter[str] = Counter()
    counts = Counter({"stored": 0, "updated": 0, "stripped": 0, "without symbols": 0})
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    n_files = 0
    for met in _files(paths, rejected):
        n_files += 1
        try:
            real = _resolved(met)  # several links to one file are one program
            if real in seen:
                raise NoProgramError("already scanned")
            seen.add(real)
            row = _row(real, read_symbols(Path(real)), module, now)
        except NoProgramError as error:
            rejected[str(error)] += 1
            continue
        counts["stripped"] += row["stripped"]
        counts["without symbols"] += not row["n_symbols"]
        rows.append(row)
        if len(rows) == _PER_STEP or sum(len(each["packed"] or b"") for each in rows) > _PER_STEP_B:
            _publish(store, rows, counts)
            rows = []
    _publish(store, rows, counts)
    tidy(store)
    return RunReport(
        "symbols scan",
        content_id({"paths": [str(path).encode("utf-8", "replace").decode() for path in paths]}),
        n_files + rejected[_FOLDER] + rejected[_LINK],
        counts["stored"] + counts["updated"],
        time.perf_counter() - began,
        rows_are="files",
        dropped=dict(+rejected),
        counts=dict(counts),
    )


def _require_readable(module: str | None) -> None:
    if module is not None and not (module.strip() and module.isprintable()):
        raise UsageError("the module has no readable name; specify it as in 'module load': gromacs/2024.1")


def _require_reachable(path: Path) -> None:
    try:
        os.lstat(path)
    except PermissionError as error:
        raise InputError(f"a folder above '{_text(path)}' cannot be searched") from error
    except (OSError, ValueError) as error:
        raise InputError(f"'{_text(path)}' not found; use an existing file or folder") from error


_FOLDER = "an unreadable folder"
_LINK = "a link to a folder, not followed"


def _files(paths: Sequence[Path], rejected: Counter[str]) -> Iterator[str]:
    """Yield every file below paths; unreadable folders are counted."""

    def unreadable(_: OSError) -> None:
        rejected[_FOLDER] += 1

    for path in paths:
        if not path.is_dir():
            yield os.fspath(path)
            continue
        for folder, folders, names in os.walk(path, onerror=unreadable):
            folders.sort()  # in place, which os.walk follows: the same order everywhere
            rejected[_LINK] += sum(os.path.islink(os.path.join(folder, name)) for name in folders)
            yield from (os.path.join(folder, name) for name in sorted(names))


def _resolved(path: str) -> str:
    """Return the regular file behind links."""
    try:
        real = os.path.realpath(path, strict=True)
        status = os.stat(real)
    except (OSError, ValueError) as error:
        raise NoProgramError("a broken or circular link") from error
    if not stat.S_ISREG(status.st_mode):
        raise NoProgramError("not a regular file")
    return real


def _row(real: str, symbols: Symbols, module: str | None, now: datetime) -> dict[str, Any]:
    path = _text(real)
    joined = "\0".join(symbols.names).encode()
    return {
        # of the bytes: paths need not be valid text
        "executable": hashlib.blake2b(os.fsencode(real), digest_size=12).hexdigest(),
        "path": path[:_LONGEST_PATH],
        "name": path.rsplit("/", 1)[-1],
        "module": module,
        "symbols_from": symbols.symbols_from,
        "stripped": symbols.stripped,
        "n_symbols": symbols.n_symbols,
        "n_kept": len(symbols.names),
        "digest": hashlib.blake2b(joined, digest_size=12).hexdigest() if joined else None,
        "size_b": float(symbols.size_b),
        "packed": zlib.compress(joined, 6) if joined else None,
        "scanned_at": now,
    }


def _publish(store: JobStore, rows: Sequence[dict[str, Any]], counts: Counter[str]) -> None:
    if not rows:
        return
    ids = tuple(row["executable"] for row in rows)
    n_stored = count_rows(store, EXECUTABLES, [In("executable", ids)])
    store.publish(
        [
            store.replace(EXECUTABLES, row["executable"], rows_table(EXECUTABLES, [row]).to_batches())
            for row in rows
        ]
    )
    counts["updated"] += n_stored
    counts["stored"] += len(rows) - n_stored


def _text(path: str | Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")
