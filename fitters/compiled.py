"""Compilation by Numba; nothing else in the package imports it.

Only loops that NumPy cannot do in one pass are compiled (`layout.kernels`, `fit.kernels`), since every line
of them costs time to compile, some 2 s together, once per machine. One set of types throughout, so that each
is compiled once: codes int32, positions int64, everything else float64, contiguous and writeable; what is not
there is an array of length 0. Output comes from outside, zeroed where it is added to: allocating inside costs
compile time.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile a function at its first call and cache the code in :func:`cache_folder`."""
    folder = _folder()
    if folder is None:
        return numba.njit(error_model="numpy", nogil=True)(function)  # type: ignore[no-any-return]
    with _caching_in(folder):
        return numba.njit(cache=True, error_model="numpy", nogil=True)(function)  # type: ignore[no-any-return]


def cache_folder() -> Path | None:
    """Return the folder of compiled code; None where none is safe: then each process compiles.

    It is ``$NUMBA_CACHE_DIR``, else ``esjobs/kernels-VERSION`` below ``$XDG_CACHE_HOME`` or ``~/.cache``,
    never the installed package: that would leave files behind when the package is removed.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen)
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        # all files of a reproducible wheel have one time, by which Numba would not tell versions apart
        folder = base / "esjobs" / f"kernels-{_version()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _only_ours(folder) and os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):
        return None


# once a process: there are some thirty kernels, and a version is looked for in all installed packages
_folder = cache(cache_folder)


def _version() -> str:
    try:
        return version("esjobs")
    except PackageNotFoundError:
        return "source"


def _only_ours(folder: Path) -> bool:
    # the files hold code that is executed: nobody else may write them
    found = folder.stat()
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o022


@contextmanager
def _caching_in(folder: Path) -> Iterator[None]:
    # Numba chooses the folder while it decorates; other users of Numba in this process keep theirs
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before
