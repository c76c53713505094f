"""Rights of new files: names of people stand in them, so their owner alone may read them unless it is said.

The umask decides nothing: it is often 022 where nobody has thought of it. What exists keeps its mode. There
is one decision per process, as there is one umask.
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
    """The decision of this process, and its umask while ``n_masked`` threads have another one."""

    share: Callable[[], Share] = lambda: "nobody"
    n_masked: int = 0
    umask: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


_process = _Process()


def share_with(share: Share | Callable[[], Share]) -> None:
    """Share new files with these; a function is called when the first file is made."""
    _process.share = share if callable(share) else lambda: share


def mask() -> int:
    """The rights that new files and folders do not have, as a umask."""
    try:
        return _MASKS[_process.share()]
    except EsjobsError:
        # whoever has broken settings gets an error of them, and files of their own
        return _MASKS["nobody"]


def file_mode() -> int:
    """The mode of a new file."""
    return 0o666 & ~mask()


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and those above it that are missing; the ones made, innermost first. Raises OSError."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    mode = 0o777 & ~mask()
    for each in reversed(missing):
        try:
            each.mkdir(mode=mode)
        except FileExistsError:
            continue
        each.chmod(mode)
    folder.mkdir(exist_ok=True)
    return missing


def mask_like(file: Path) -> int:
    """The mask of what stands beside a file and has the same in it; of a new file :func:`mask`."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return mask()
    # who may read files has to enter folders
    return 0o777 & ~(mode | (mode & 0o444) >> 2)


@contextlib.contextmanager
def masked(umask: int) -> Iterator[None]:
    """Set the umask for what a library makes; other threads have it too, and the first of several decides."""
    with _process.lock:
        if _process.n_masked == 0:
            _process.umask = os.umask(umask)
        _process.n_masked += 1
    try:
        yield
    finally:
        with _process.lock:
            _process.n_masked -= 1
            if _process.n_masked == 0:
                os.umask(_process.umask)
