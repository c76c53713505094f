"""Permissions of new files: private by default, for they contain names of people.

The umask is ignored; existing modes are kept. One decision per process.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from esjobs.core.errors import EsjobsError

Share = Literal["nobody", "group", "all"]
"""Accounts that may read new files, beside their owner."""

_MASKS: dict[Share, int] = {"nobody": 0o077, "group": 0o027, "all": 0o022}


@dataclass
class _Process:
    """Decision of this process, and its umask while ``n_masked`` threads have another one."""

    share: Callable[[], Share] = lambda: "nobody"
    n_masked: int = 0
    umask: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


_process = _Process()


def share_with(share: Share | Callable[[], Share]) -> None:
    """Share new files; a function is called for the first file."""
    _process.share = share if callable(share) else lambda: share


def mask() -> int:
    """Return the umask of new files and folders."""
    try:
        return _MASKS[_process.share()]
    except EsjobsError:
        # a user with broken settings gets an error of them, and files of their own
        return _MASKS["nobody"]


def file_mode() -> int:
    """Return the mode of a new file."""
    return 0o666 & ~mask()


def make_folder(folder: Path) -> list[Path]:
    """Create a folder and its missing parents; return those created, innermost first. Raises OSError."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    mode = 0o777 & ~mask()
    for each in reversed(missing):
        try:
            each.mkdir(mode=mode)
        # another process made it meanwhile, with modes of its own
        except FileExistsError:
            continue
        # mkdir applies the umask of the process to the mode; this does not
        each.chmod(mode)
    folder.mkdir(exist_ok=True)
    return missing


def mask_like(file: Path) -> int:
    """Return the umask of an existing file; of a missing one :func:`mask`."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return mask()
    # who may read files has to enter folders
    return 0o777 & ~(mode | (mode & 0o444) >> 2)


@contextlib.contextmanager
def masked(umask: int) -> Iterator[None]:
    """Set the umask for a library call; process-wide, so the first of several threads decides."""
    with _process.lock:
        if _process.n_masked == 0:
            # the umask belongs to the process: nested calls must restore it once, at the end
            _process.umask = os.umask(umask)
        _process.n_masked += 1
    try:
        yield
    finally:
        with _process.lock:
            _process.n_masked -= 1
            if _process.n_masked == 0:
                os.umask(_process.umask)
